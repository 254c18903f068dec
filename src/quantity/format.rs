//! The one place where amounts become text: MiB with thousands separators, the tolerance where it matters.

use super::{GIB, MIB, Quantity};

/// A tolerance below this many bytes is not worth showing: it would print as `± 0`.
const SHOWN_TOLERANCE: i128 = MIB / 2;

/// Groups the digits of an integer by thousands: `15288` becomes `15,288`.
pub fn group_digits(number: i128) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if number < 0 {
        grouped.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Half of the interval's width in whole MiB, rounded up; `None` where it is too small to matter.
fn tolerance(quantity: Quantity) -> Option<i128> {
    (quantity.width() > 2 * SHOWN_TOLERANCE)
        .then(|| (quantity.width() / 2).div_euclid(MIB) + i128::from((quantity.width() / 2) % MIB >= MIB / 2))
}

/// The midpoint in whole MiB, rounded to the nearest, halves towards zero, without tolerance: `15,288`. An idle card's
/// `0MiB` is an interval up to 1, and still reads `0`.
pub fn mib_whole(quantity: Quantity) -> String {
    let twice = quantity.low() + quantity.high();
    let nearest = (twice.abs() + MIB - 1).div_euclid(2 * MIB);
    group_digits(if twice < 0 { -nearest } else { nearest })
}

/// The midpoint in MiB with its tolerance where the print was coarse: `15,288 ± 5`.
pub fn mib_text(quantity: Quantity) -> String {
    match tolerance(quantity) {
        Some(tolerance) => format!("{} ± {}", mib_whole(quantity), group_digits(tolerance)),
        None => mib_whole(quantity),
    }
}

/// As [`mib_text`], with an explicit sign: for differences (`+2`, `-84 ± 10`).
pub fn signed_mib_text(quantity: Quantity) -> String {
    let text = mib_text(quantity);
    if text.starts_with('-') || text == "0" || text.starts_with("0 ") { text } else { format!("+{text}") }
}

/// The midpoint in GiB with two decimals, as SGLang prints it: for quoting the log's own measure.
pub fn gib_text(quantity: Quantity) -> String {
    format!("{:.2} GiB", (quantity.low() + quantity.high()) as f64 / (2 * GIB) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::{Decimal, Unit};
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(group_digits(0), "0");
        assert_eq!(group_digits(999), "999");
        assert_eq!(group_digits(1000), "1,000");
        assert_eq!(group_digits(-1234567), "-1,234,567");
    }

    #[test]
    fn tolerance_is_shown_where_it_matters() {
        let print = Quantity::from_print(&Decimal::parse("14.93").unwrap(), Unit::Gib).unwrap();
        assert_eq!(mib_text(print), "15,288 ± 5");
        assert_eq!(mib_text(Quantity::exact_mib(616)), "616");
        assert_eq!(signed_mib_text(Quantity::exact_mib(2)), "+2");
        assert_eq!(signed_mib_text(Quantity::exact_mib(-84)), "-84");
        assert_eq!(gib_text(Quantity::exact_mib(1536)), "1.50 GiB");
    }

    #[test]
    fn halves_round_towards_zero_and_negatives_keep_their_sign() {
        assert_eq!(mib_whole(Quantity::whole_mib(0)), "0");
        assert_eq!(mib_whole(Quantity::exact(MIB / 2 + 1)), "1");
        assert_eq!(mib_whole(Quantity::exact(-MIB)), "-1");
    }
}
