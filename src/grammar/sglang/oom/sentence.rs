//! The grammar of torch's out-of-memory sentence: which figures it holds, in every wording.
//!
//! The sentence changed with the generations of torch (1.x in brackets and semicolons, 2.x in prose) and with the device
//! (CUDA, HIP, NPU, XPU), lists other processes or not, and arrives wrapped, cut at either end, or in pieces. So it is
//! read clause by clause, in any order: an amount has its meaning by the words in front of it or behind it, and an
//! amount whose words are missing has none.

use crate::event::Value;
use crate::grammar::sglang::clause::{RawField, measure};
use crate::quantity::{Convention, Decimal, Quantity};
use nom::branch::alt;
use nom::bytes::complete::tag_no_case;
use nom::character::complete::{char, digit1, multispace0, multispace1};
use nom::combinator::{eof, not, peek, recognize, rest, value, verify};
use nom::sequence::{pair, preceded, terminated};
use nom::{IResult, Parser};

/// Clauses that name an amount before they print it: the field, and the words. `capacty` is torch 2.1's spelling.
const AHEAD: [(&str, &str); 5] = [
    ("asked", "tried to allocate"),
    ("total", "total capacity of"),
    ("total", "total capacty of"),
    ("free", "of which"),
    ("in use", "this process has"),
];

/// Clauses that name an amount behind it.
const BEHIND: [(&str, &str); 8] = [
    ("total", "total capacity"),
    ("free", "free"),
    ("allowed", "allowed"),
    ("allocated", "is allocated by pytorch"),
    ("allocated", "already allocated"),
    ("private pools", "allocated in private pools"),
    ("reserved unallocated", "is reserved by pytorch but unallocated"),
    ("reserved", "reserved in total by pytorch"),
];

/// Words between the figures, which show that a line is a piece of the sentence although no figure in it is whole.
const WORDS: [&str; 16] = [
    "out of memory",
    "total capacity",
    "of which",
    "is free",
    "including non-pytorch memory",
    "this process has",
    "memory in use",
    "of the allocated memory",
    "is allocated by pytorch",
    "allocated in private pools",
    "(e.g., cuda graphs)",
    "reserved by pytorch but unallocated",
    "already allocated",
    "reserved in total by pytorch",
    "if reserved memory is",
    "to avoid fragmentation",
];

/// How many of the sentence's usual words are in the text: more of them make one way of joining pieces better than another.
pub(in crate::grammar::sglang) fn words_met(text: &str) -> usize {
    let text = text.to_ascii_lowercase();
    WORDS.iter().filter(|words| text.contains(*words)).count()
}

/// Whether torch's sentence lacks its end, which every wording has: what is reserved. The end may stand in the next line.
pub(in crate::grammar::sglang) fn lacks_end(text: &str, fields: &[RawField]) -> bool {
    let has = |name: &str| fields.iter().any(|field| field.name == name);
    let begun = text.contains("out of memory. T") || has("asked");
    begun && !has("reserved") && !has("reserved unallocated")
}

/// No device has this much: torch prints 2^64 bytes (`17179869184.00 GiB`) for a process whose memory it could not ask.
const IMPOSSIBLE: i128 = 1 << 62;

/// A figure on its way to a field: what it is, and the text from it on.
#[derive(Debug, Clone, PartialEq)]
struct Figure<'t> {
    name: &'static str,
    value: Value,
    from: &'t str,
    length: usize,
}

/// The figures of the sentence: `asked`, `gpu`, `total`, `free`, `in use`, `allocated`, `private pools`,
/// `reserved unallocated`, `reserved`, `allowed`, and for each other process on the device `process` (its id)
/// and `process memory`. An amount asked for that the line was cut in is [`Value::Cut`], as is a process's that torch
/// could not tell.
pub(in crate::grammar::sglang) fn figures(text: &str) -> Vec<RawField> {
    let mut fields: Vec<RawField> = Vec::new();
    let mut at = text;
    while !at.is_empty() {
        match clause(at) {
            Ok((behind, figures)) => {
                for figure in figures {
                    let repeated = figure.name == "gpu" && fields.iter().any(|field| field.name == "gpu");
                    if !repeated {
                        fields.push(field(text, figure));
                    }
                }
                // A clause that the text's end completes takes nothing: go on behind its first word all the same.
                at = if behind.len() < at.len() { behind } else { next_word(at) };
            }
            Err(_) => at = next_word(at),
        }
    }
    fields
}

fn field(text: &str, figure: Figure<'_>) -> RawField {
    let start = text.len() - figure.from.len();
    RawField {
        name: figure.name.to_owned(),
        value: figure.value,
        start,
        length: figure.length,
        key_start: start,
    }
}

/// The text from the next word or number on.
fn next_word(text: &str) -> &str {
    let word = |character: char| character.is_alphanumeric() || character == '.';
    let behind = text.trim_start_matches(word);
    let next = behind.trim_start_matches(|character| !word(character));
    if next.len() < text.len() { next } else { "" }
}

/// One clause at the beginning of `text`.
fn clause(text: &str) -> IResult<&str, Vec<Figure<'_>>> {
    alt((other_process, named_ahead, asked_cut, named_behind, device)).parse(text)
}

/// These words, whatever blanks stand between them, letter case aside, and no letter behind.
fn words<'t>(expected: &'static str) -> impl FnMut(&'t str) -> IResult<&'t str, &'t str> {
    move |text| {
        let mut rest = text;
        for (index, word) in expected.split(' ').enumerate() {
            if index > 0 {
                rest = multispace1::<&str, nom::error::Error<&str>>(rest)?.0;
            }
            rest = tag_no_case(word).parse(rest)?.0;
        }
        peek(not(verify(rest_char, |next: &char| next.is_alphanumeric()))).parse(rest)?;
        Ok((rest, text.get(..text.len() - rest.len()).unwrap_or_default()))
    }
}

fn rest_char(text: &str) -> IResult<&str, char> {
    nom::character::complete::anychar(text)
}

/// An amount with its unit, and the text from it on.
fn amount(text: &str) -> IResult<&str, (Quantity, &str, usize)> {
    let refused = || nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Digit));
    let (value, length) = measure(text, Convention::Binary).ok_or_else(refused)?;
    let Value::Memory(quantity) = value else { return Err(refused()) };
    Ok((text.get(length..).unwrap_or_default(), (quantity, text, length)))
}

/// `Tried to allocate 2.00 GiB`, `total capacity of …`, `of which … is free`, `this process has …`.
fn named_ahead(text: &str) -> IResult<&str, Vec<Figure<'_>>> {
    for (name, expected) in AHEAD {
        if let Ok((behind, (quantity, from, length))) =
            preceded(pair(words(expected), multispace1), amount).parse(text)
        {
            return Ok((behind, vec![Figure { name, value: Value::Memory(quantity), from, length }]));
        }
    }
    Err(nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Alt)))
}

/// `Tried to allocate`, and then the end, or a number that lost its unit.
fn asked_cut(text: &str) -> IResult<&str, Vec<Figure<'_>>> {
    let (from, _) = pair(words("tried to allocate"), multispace0).parse(text)?;
    let number =
        recognize(pair(digit1, nom::combinator::opt(pair(char('.'), nom::character::complete::digit0))));
    let (_, printed) = terminated(alt((number, eof)), (multispace0, alt((eof, cut_unit)))).parse(from)?;
    Ok((
        from.get(printed.len()..).unwrap_or_default(),
        vec![Figure { name: "asked", value: Value::Cut, from, length: printed.len() }],
    ))
}

/// The beginning of a unit at the end of the text.
fn cut_unit(text: &str) -> IResult<&str, &str> {
    verify(rest, |left: &str| matches!(left, "K" | "M" | "G" | "Ki" | "Mi" | "Gi" | ".")).parse(text)
}

/// `23.69 GiB total capacity`, `… already allocated`, `… is reserved by PyTorch but unallocated`.
fn named_behind(text: &str) -> IResult<&str, Vec<Figure<'_>>> {
    let (behind, (quantity, from, length)) = terminated(amount, multispace1).parse(text)?;
    for (name, expected) in BEHIND {
        if let Ok((behind, _)) = words(expected)(behind) {
            return Ok((behind, vec![Figure { name, value: Value::Memory(quantity), from, length }]));
        }
    }
    Err(nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Alt)))
}

/// `Process 1234 has 518.00 MiB memory in use`.
fn other_process(text: &str) -> IResult<&str, Vec<Figure<'_>>> {
    let (id_from, _) = pair(words("process"), multispace1).parse(text)?;
    let (behind, id) = digit1(id_from)?;
    let (behind, (quantity, from, length)) =
        preceded((multispace1, words("has"), multispace1), amount).parse(behind)?;
    let Some(number) = Decimal::parse(id) else {
        return Err(nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Digit)));
    };
    let value = if quantity.low() < IMPOSSIBLE { Value::Memory(quantity) } else { Value::Cut };
    Ok((
        behind,
        vec![
            Figure { name: "process", value: Value::Number(number), from: id_from, length: id.len() },
            Figure { name: "process memory", value, from, length },
        ],
    ))
}

/// `GPU 0`, `NPU 0`, `XPU 0`: the device that was asked, as the process counts devices.
fn device(text: &str) -> IResult<&str, Vec<Figure<'_>>> {
    let kind = alt((
        value((), tag_no_case::<_, _, nom::error::Error<&str>>("gpu")),
        value((), tag_no_case("npu")),
        value((), tag_no_case("xpu")),
    ));
    let (from, _) = pair(kind, multispace1).parse(text)?;
    let (behind, number) = terminated(
        digit1,
        peek(not(verify(rest_char, |next: &char| next.is_alphanumeric() || *next == '.'))),
    )
    .parse(from)?;
    let Some(decimal) = Decimal::parse(number) else {
        return Err(nom::Err::Error(nom::error::Error::new(text, nom::error::ErrorKind::Digit)));
    };
    Ok((behind, vec![Figure { name: "gpu", value: Value::Number(decimal), from, length: number.len() }]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Unit;
    use proptest::prelude::*;

    fn memory(digits: &str, unit: Unit) -> Value {
        Value::Memory(Quantity::from_print(&Decimal::parse(digits).unwrap(), unit).unwrap())
    }

    fn named(text: &str) -> Vec<(String, Value)> {
        figures(text).into_iter().map(|field| (field.name, field.value)).collect()
    }

    fn names(text: &str) -> Vec<String> {
        named(text).into_iter().map(|(name, _)| name).collect()
    }

    const SECOND: &str = "CUDA out of memory. Tried to allocate 28.00 MiB. GPU 3 has a total capacity of 139.80 GiB of \
        which 2.75 MiB is free. Process 1957 has 518.00 MiB memory in use. Including non-PyTorch memory, this process \
        has 139.28 GiB memory in use. Of the allocated memory 138.51 GiB is allocated by PyTorch, with 22.00 MiB \
        allocated in private pools (e.g., CUDA Graphs), and 36.28 MiB is reserved by PyTorch but unallocated.";

    #[test]
    fn the_sentence_of_torch_2_gives_its_figures() {
        assert_eq!(
            named(SECOND),
            [
                ("asked", memory("28.00", Unit::Mib)),
                ("gpu", Value::Number(Decimal::new(3, 0))),
                ("total", memory("139.80", Unit::Gib)),
                ("free", memory("2.75", Unit::Mib)),
                ("process", Value::Number(Decimal::new(1957, 0))),
                ("process memory", memory("518.00", Unit::Mib)),
                ("in use", memory("139.28", Unit::Gib)),
                ("allocated", memory("138.51", Unit::Gib)),
                ("private pools", memory("22.00", Unit::Mib)),
                ("reserved unallocated", memory("36.28", Unit::Mib)),
            ]
            .map(|(name, value)| (name.to_owned(), value))
        );
    }

    #[test]
    fn the_sentence_of_torch_1_gives_its_figures() {
        let text = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.44 GiB already \
                    allocated; 1.80 GiB free; 22.11 GiB reserved in total by PyTorch) If reserved memory is >> allocated \
                    memory try setting max_split_size_mb to avoid fragmentation.";
        assert_eq!(names(text), ["asked", "gpu", "total", "allocated", "free", "reserved"]);
        let allowed = "Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.44 GiB already allocated; 1.80 GiB \
                       free; 20.00 GiB allowed; 22.11 GiB reserved in total by PyTorch)";
        assert_eq!(names(allowed), ["asked", "gpu", "total", "allocated", "free", "allowed", "reserved"]);
    }

    #[test]
    fn other_devices_word_it_alike() {
        let npu = "NPU out of memory. Tried to allocate 20.00 MiB (NPU 0; 60.97 GiB total capacity; 58.53 GiB already \
                   allocated; 58.53 GiB current active; 12.72 MiB free; 59.34 GiB reserved in total by PyTorch)";
        assert_eq!(names(npu), ["asked", "gpu", "total", "allocated", "free", "reserved"]);
        let xpu = "XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.91 GiB. Of the allocated \
                   memory 14.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.";
        assert_eq!(names(xpu), ["asked", "gpu", "total", "allocated", "reserved unallocated"]);
        let misspelt =
            "Tried to allocate 20.00 MiB. GPU 1 has a total capacty of 79.15 GiB of which 3.12 MiB is free.";
        assert_eq!(names(misspelt), ["asked", "gpu", "total", "free"]);
    }

    #[test]
    fn several_processes_are_kept_apart_and_an_unknown_one_is_unknown() {
        let text = "Process 5 has 1.00 GiB memory in use. Process 66 has 17179869184.00 GiB memory in use.";
        assert_eq!(
            named(text),
            [
                ("process", Value::Number(Decimal::new(5, 0))),
                ("process memory", memory("1.00", Unit::Gib)),
                ("process", Value::Number(Decimal::new(66, 0))),
                ("process memory", Value::Cut),
            ]
            .map(|(name, value)| (name.to_owned(), value))
        );
    }

    #[test]
    fn a_cut_amount_is_unknown() {
        for text in [
            "Tried to allocate 224.0",
            "Tried to allocate",
            "Tried to allocate 224.00 Mi",
            "Tried to allocate 224.",
        ] {
            assert_eq!(named(text), [("asked".to_owned(), Value::Cut)], "{text}");
        }
        assert_eq!(names("of which 14.31 MiB is free. this process has 139.7"), ["free"]);
        assert_eq!(
            names("31 MiB is free. Including non-PyTorch memory, this process has 139.78 GiB memory in use."),
            ["in use"]
        );
    }

    #[test]
    fn blanks_and_letter_case_do_not_matter() {
        assert_eq!(
            names("TRIED TO  ALLOCATE 2.00 GiB. gpu 0 has a total\tcapacity of 79.10 GiB"),
            ["asked", "gpu", "total"]
        );
    }

    proptest! {
        #[test]
        fn figures_lie_inside_the_text(text in "(tried to allocate |GPU |process |[0-9]{1,20}| GiB| MiB|\\.| has | free|é|;|\\(){0,24}") {
            for field in figures(&text) {
                prop_assert!(text.get(field.start..field.end()).is_some());
            }
        }

        #[test]
        fn no_cut_makes_a_figure_differ(at in 0..SECOND.len()) {
            let whole = named(SECOND);
            let (front, back) = SECOND.split_at(at);
            for (name, value) in named(front) {
                prop_assert!(value == Value::Cut || whole.contains(&(name, value)));
            }
            // What lost its beginning may have lost digits: only the first figure of the rest can.
            for (name, value) in named(back).into_iter().skip(1) {
                prop_assert!(whole.contains(&(name, value)));
            }
        }
    }
}
