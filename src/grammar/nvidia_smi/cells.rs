//! The small rules that every form of a dump shares: figures of memory, unknown cells, UUIDs, bus ids, process
//! ids.
//!
//! Separate because the same cell stands in a table, in CSV, in XML and in `-q` text, and an unknown cell that one
//! form took for 0 would be an error in all that follows.

use crate::observe::BusId;
use crate::quantity::{Convention, Decimal, Quantity, Unit};
use nom::branch::alt;
use nom::bytes::complete::{tag, tag_no_case, take_while_m_n, take_while1};
use nom::character::complete::{alpha1, char, digit1, space0};
use nom::combinator::{all_consuming, map_opt, opt, recognize, value};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

/// The ways in which instruments say that they don't know. Longer ones first: the first that fits is taken.
const UNKNOWN_WORDS: [&str; 13] = [
    "Requested functionality has been deprecated",
    "Not available in WDDM driver model",
    "Insufficient Permissions",
    "GPU requires reset",
    "Not Supported",
    "Not Available",
    "Unknown Error",
    "GPU is lost",
    "Not Found",
    "ERR!",
    "N/A",
    "n/a",
    "-",
];

/// More digits than this are no figure of memory.
const MOST_DIGITS: usize = 15;

/// `N/A`, `[Not Supported]`, `ERR!` and their like.
pub(super) fn unknown_word(input: &str) -> IResult<&str, ()> {
    fn word(input: &str) -> IResult<&str, ()> {
        for known in UNKNOWN_WORDS {
            let matched: IResult<&str, &str> = tag_no_case(known).parse(input);
            if let Ok((rest, _)) = matched {
                return Ok((rest, ()));
            }
        }
        Err(nom::Err::Error(nom::error::make_error(input, nom::error::ErrorKind::Alt)))
    }
    alt((delimited(char('['), word, char(']')), word)).parse(input)
}

/// A number and, behind it, a word that may be a unit: `122316MiB`, `119.5 GiB`, `12345`.
fn number_and_unit(input: &str) -> IResult<&str, (&str, Option<Unit>)> {
    let number = recognize((digit1, opt((char('.'), digit1))));
    let unit = map_opt(preceded(space0, alpha1), |word| Unit::named(word, Convention::Binary));
    (number, opt(unit)).parse(input)
}

/// The amount that `number` in `unit` stands for. Whole MiB get the tolerance of the instrument's own rounding.
fn amount_of(number: &str, unit: Unit) -> Option<Quantity> {
    if number.len() > MOST_DIGITS {
        return None;
    }
    match unit {
        Unit::Byte => number.parse::<i128>().ok().map(Quantity::exact),
        Unit::Mib if !number.contains('.') => number.parse::<i128>().ok().map(Quantity::whole_mib),
        _ => Quantity::from_print(&Decimal::parse(number)?, unit),
    }
}

/// An amount with its unit: `122316MiB`, `122316 MiB`, `119.5GiB`, `12345 MB`.
pub(super) fn amount(input: &str) -> IResult<&str, Quantity> {
    map_opt(number_and_unit, |(number, unit)| amount_of(number, unit?)).parse(input)
}

/// An amount, or a word for not knowing it (`None`).
pub(super) fn amount_or_unknown(input: &str) -> IResult<&str, Option<Quantity>> {
    alt((amount.map(Some), value(None, unknown_word))).parse(input)
}

/// `used / total`, each with its unit or the left one with the right one's. At least one must carry a unit.
fn pair(input: &str) -> IResult<&str, (Option<Quantity>, Option<Quantity>)> {
    let slash = || delimited(space0, char('/'), space0);
    let shared_unit = map_opt(
        (terminated(digit1, slash()), number_and_unit),
        |(left, (right, unit)): (&str, (&str, Option<Unit>))| {
            let unit = unit?;
            Some((Some(amount_of(left, unit)?), Some(amount_of(right, unit)?)))
        },
    );
    let own_units = map_opt((terminated(amount_or_unknown, slash()), amount_or_unknown), |(left, right)| {
        (left.is_some() || right.is_some()).then_some((left, right))
    });
    alt((shared_unit, own_units)).parse(input)
}

/// A whole cell that is an amount or unknown. `None` where it is neither, for instance cut.
pub(super) fn amount_cell(cell: &str) -> Option<Option<Quantity>> {
    whole(amount_or_unknown, cell)
}

/// A whole cell of whole MiB whose unit may stand in the header instead.
pub(super) fn mib_cell(cell: &str) -> Option<Option<Quantity>> {
    amount_cell(cell).or_else(|| mib_number(cell).map(Some))
}

/// A bare number of MiB.
pub(super) fn mib_number(cell: &str) -> Option<Quantity> {
    whole(digit1, cell).and_then(|number| amount_of(number, Unit::Mib))
}

/// A bare number of bytes: exact.
pub(super) fn bytes_number(cell: &str) -> Option<Quantity> {
    whole(digit1, cell).and_then(|number| amount_of(number, Unit::Byte))
}

/// A whole cell that is `used / total`.
pub(super) fn pair_cell(cell: &str) -> Option<(Option<Quantity>, Option<Quantity>)> {
    whole(pair, cell)
}

/// Whether a whole cell says that the instrument does not know.
pub(super) fn is_unknown(cell: &str) -> bool {
    whole(unknown_word, cell).is_some()
}

/// A figure that nvidia-smi cut itself: it prints eight characters of `122306MiB`, as `12230...`.
///
/// What is shown are the leading digits of a six-digit figure, so the true one is known to ten MiB.
pub(super) fn cut_figure(token: &str) -> Option<Quantity> {
    let shown = whole(terminated(digit1, alt((tag("..."), tag("…")))), token)?;
    let hidden = match shown.len() {
        5 => 10,
        4 => 100,
        _ => return None,
    };
    let low = shown.parse::<i128>().ok()? * hidden;
    Some(Quantity::whole_mib(low).hull(Quantity::whole_mib(low + hidden - 1)))
}

/// A device, instance or process number, or a word for not knowing it.
pub(super) fn number_cell<N: std::str::FromStr>(cell: &str) -> Option<Option<N>> {
    let cell = cell.trim();
    if is_unknown(cell) {
        return Some(None);
    }
    number(cell).map(Some)
}

/// A whole cell of digits.
pub(super) fn number<N: std::str::FromStr>(cell: &str) -> Option<N> {
    whole(digit1, cell).and_then(|digits: &str| digits.parse().ok())
}

/// `GPU-…` or `MIG-…`, as printed.
pub(super) fn uuid_cell(cell: &str) -> Option<&str> {
    let body = take_while1(|letter: char| letter.is_ascii_alphanumeric() || "-/".contains(letter));
    whole(recognize((alt((tag("GPU-"), tag("MIG-"))), body)), cell)
        .filter(|uuid| uuid.contains(|letter: char| letter.is_ascii_digit()))
}

/// `00000000:00:06.0`, also with a domain of four digits or none.
pub(super) fn bus_id(input: &str) -> IResult<&str, BusId> {
    fn hexadecimal(least: usize, most: usize) -> impl FnMut(&str) -> IResult<&str, u32> {
        move |input| {
            map_opt(take_while_m_n(least, most, |digit: char| digit.is_ascii_hexdigit()), |digits| {
                u32::from_str_radix(digits, 16).ok()
            })
            .parse(input)
        }
    }
    let domain = opt(terminated(hexadecimal(4, 8), char(':')));
    let byte = || map_opt(hexadecimal(2, 2), |byte| u8::try_from(byte).ok());
    let function = map_opt(hexadecimal(1, 1), |digit| u8::try_from(digit).ok());
    (domain, terminated(byte(), char(':')), terminated(byte(), char('.')), function)
        .map(|(domain, bus, device, function)| BusId { domain: domain.unwrap_or(0), bus, device, function })
        .parse(input)
}

/// A whole cell that is a bus id.
pub(crate) fn bus_id_cell(cell: &str) -> Option<BusId> {
    whole(bus_id, cell)
}

/// The first bus id that stands as a word of the cell.
pub(super) fn bus_id_within(cell: &str) -> Option<BusId> {
    cell.split_whitespace().find_map(bus_id_cell)
}

/// A parser's answer if it takes the whole cell, blanks around it aside.
pub(super) fn whole<'a, T>(
    parser: impl Parser<&'a str, Output = T, Error = nom::error::Error<&'a str>>,
    cell: &'a str,
) -> Option<T> {
    all_consuming(parser).parse(cell.trim()).ok().map(|(_, value)| value)
}

/// How far into `text` its own part `part` begins, in bytes: 0 for a text from elsewhere.
pub(super) fn offset(text: &str, part: &str) -> usize {
    let distance = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    if distance <= text.len() { distance } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::MIB;
    use proptest::prelude::*;

    #[test]
    fn an_amount_is_read_with_and_without_a_blank() {
        for cell in ["122316MiB", "122316 MiB", " 122316  MiB ", "122316 MB"] {
            assert_eq!(amount_cell(cell), Some(Some(Quantity::whole_mib(122_316))), "{cell}");
        }
        assert!(amount_cell("119.5GiB").unwrap().unwrap().contains(122_368 * MIB));
    }

    #[test]
    fn unknown_cells_are_unknown_and_never_zero() {
        for cell in [
            "N/A",
            "[N/A]",
            "Not Supported",
            "[Not Supported]",
            "[Insufficient Permissions]",
            "[Unknown Error]",
            "ERR!",
            "[GPU is lost]",
            "-",
            "Not available in WDDM driver model",
        ] {
            assert_eq!(amount_cell(cell), Some(None), "{cell}");
            assert!(is_unknown(cell));
        }
    }

    #[test]
    fn a_cut_cell_is_no_smaller_number() {
        for cell in ["1223", "122316M", "122316Mi", "", "MiB", "12230..."] {
            assert_eq!(amount_cell(cell), None, "{cell}");
        }
        assert_eq!(pair_cell("122316MiB / 1437"), None);
    }

    #[test]
    fn pairs_share_a_unit_or_have_their_own() {
        let mib = |mib| Some(Quantity::whole_mib(mib));
        assert_eq!(pair_cell("122316MiB / 143771MiB"), Some((mib(122_316), mib(143_771))));
        assert_eq!(pair_cell("12345 / 143771 MB"), Some((mib(12_345), mib(143_771))));
        assert_eq!(pair_cell("283/196592 MB"), Some((mib(283), mib(196_592))));
        assert_eq!(pair_cell("N/A / 16160MiB"), Some((None, mib(16_160))));
        assert_eq!(pair_cell("ERR! / 16160MiB"), Some((None, mib(16_160))));
        assert_eq!(pair_cell("N/A / N/A"), None, "that may be watts as well");
        assert_eq!(pair_cell("125W / 700W"), None);
    }

    #[test]
    fn a_six_digit_figure_that_was_cut_is_known_to_ten_mib() {
        let quantity = cut_figure("12337...").unwrap();
        assert!(quantity.contains(123_370 * MIB) && quantity.contains(123_379 * MIB));
        assert!(!quantity.contains(12_337 * MIB));
        assert!(!quantity.contains(123_381 * MIB));
        assert_eq!(cut_figure("123..."), None);
        assert_eq!(cut_figure("12337"), None);
    }

    #[test]
    fn bus_ids_of_both_widths_are_one() {
        assert_eq!(bus_id_cell("00000000:C1:06.0"), bus_id_cell("0000:c1:06.0"));
        assert!(bus_id_cell("00000000:C1:06.0").is_some());
        assert_eq!(bus_id_cell("13:51:19"), None);
        assert_eq!(bus_id_within("00000000:00:06.0 Off"), bus_id_cell("00:06.0"));
    }

    #[test]
    fn uuids_begin_with_their_kind() {
        assert!(uuid_cell("GPU-00000000-0000-4000-8000-000000000000").is_some());
        assert!(uuid_cell("MIG-GPU-00000000-0000-4000-8000-000000000000/7/0").is_some());
        assert_eq!(uuid_cell("GPU-Util"), None);
    }

    proptest! {
        #[test]
        fn no_cell_panics(cell in "\\PC*") {
            let _ = (amount_cell(&cell), mib_cell(&cell), pair_cell(&cell), cut_figure(&cell));
            let _ = (bytes_number(&cell), uuid_cell(&cell), bus_id_within(&cell), number_cell::<u32>(&cell));
        }

        #[test]
        fn printed_pairs_are_read_back(used in 0i128..10_000_000, total in 0i128..10_000_000) {
            let expected = Some((Some(Quantity::whole_mib(used)), Some(Quantity::whole_mib(total))));
            prop_assert_eq!(pair_cell(&format!("{used}MiB / {total}MiB")), expected);
        }
    }
}
