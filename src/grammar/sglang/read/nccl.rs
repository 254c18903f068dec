//! What NCCL puts before its words: the machine, the process and the device that a communicator's line is of.
//!
//! NCCL logs beside SGLang, without its prefix, and only where `NCCL_DEBUG=INFO` is set. Its lines name what nothing else
//! in the log does: a rank's process id and the card that it runs on.

use super::known::from_catalogue;
use super::{Reading, shift};
use crate::event::Value;
use crate::grammar::sglang::clause::RawField;
use crate::quantity::Decimal;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{char, digit1, space1};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

/// The words between a line's prefix and its message.
const SIGN: &str = " NCCL INFO ";

/// `host:pid:thread [device] NCCL INFO `: the process id's digits.
fn prefix(input: &str) -> IResult<&str, &str> {
    let host = take_while1(|letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    let device = delimited(char('['), digit1, char(']'));
    let pid = delimited(char(':'), digit1, (char(':'), digit1));
    terminated(preceded(host, pid), (space1, device, tag(SIGN))).parse(input)
}

/// A line of NCCL that the catalogue knows, its process id among the fields. `None` for any other line.
pub(super) fn from_nccl(text: &str) -> Option<Reading> {
    // Cheap, and most lines end here.
    text.contains(SIGN).then_some(())?;
    // What a launcher puts before (Ray, a time of its own) ends in white space.
    let words = text.split_inclusive(' ').scan(0, |at, word| {
        let start = *at;
        *at += word.len();
        Some(start)
    });
    let (rest, pid) = words.take(MOST_WORDS_BEFORE).find_map(|at| prefix(text.get(at..)?).ok())?;
    let start = text.len() - rest.len();
    let mut reading = from_catalogue(rest).0?;
    shift(&mut reading.fields, start);
    reading.fields.insert(0, pid_field(text, pid)?);
    Some(reading)
}

/// More words than this before NCCL's prefix are prose that quotes it.
const MOST_WORDS_BEFORE: usize = 6;

fn pid_field(text: &str, pid: &str) -> Option<RawField> {
    let start = (pid.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let value = Value::Number(Decimal::parse(pid)?);
    Some(RawField { name: "pid".to_owned(), value, start, length: pid.len(), key_start: start })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "gpu-01:4711:4902 [3] NCCL INFO ncclCommInitRank comm 0x55d0 rank 3 nranks 8 cudaDev 3 nvmlDev 5 \
                        busId 9b000 commId 0x7c1f - Init START";

    fn values(text: &str) -> Vec<(String, Value)> {
        let fields = from_nccl(text).map(|reading| reading.fields).unwrap_or_default();
        fields.into_iter().map(|field| (field.name, field.value)).collect()
    }

    #[test]
    fn a_communicators_line_tells_process_and_card() {
        let number = |text: &str| Value::Number(Decimal::parse(text).expect("a number"));
        let values = values(LINE);
        let of = |name: &str| values.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        assert_eq!(of("pid"), Some(number("4711")));
        assert_eq!(of("rank"), Some(number("3")));
        assert_eq!(of("nranks"), Some(number("8")));
        assert_eq!(of("nvmlDev"), Some(number("5")));
        assert_eq!(of("busId"), Some(Value::Word("9b000".to_owned())));
    }

    #[test]
    fn a_launchers_own_prefix_may_stand_before() {
        assert_eq!(values(&format!("(Engine pid=12) {LINE}")), values(LINE));
        assert_eq!(values(&format!("[2026-12-04 10:00:00] {LINE}")), values(LINE));
    }

    #[test]
    fn other_lines_of_nccl_are_none() {
        for line in [
            "gpu-01:4711:4902 [3] NCCL INFO Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM",
            "he wrote NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000",
        ] {
            assert!(from_nccl(line).is_none(), "{line}");
        }
    }

    #[test]
    fn fields_stand_where_their_values_are() {
        let reading = from_nccl(LINE).expect("known");
        for field in reading.fields {
            let printed = LINE.get(field.start..field.start + field.length).unwrap_or_default();
            match field.value {
                Value::Number(number) => assert_eq!(Decimal::parse(printed), Some(number)),
                Value::Word(word) => assert_eq!(printed, word),
                _ => {}
            }
        }
    }
}
