//! The general clause parser: a label, then `key=value` and `key: value` fields in any order.
//!
//! It knows no line of SGLang in particular, only how SGLang writes figures, so that a field that moves, is new
//! or stands behind another separator costs nothing. What a label means is the catalogue's business.

mod value;

pub(crate) use value::{grouped, measure, number};

use crate::event::Value;
use crate::quantity::Convention;
use nom::bytes::complete::{take_while, take_while_m_n, take_while1};
use nom::character::complete::char;
use nom::combinator::recognize;
use nom::{IResult, Parser};
use value::value;

/// Keys written with a blank before `=`, and before `: ` without a separator in front.
const SPACED_KEYS: [&str; 6] =
    ["avail mem", "mem usage", "VA upper bound", "Time elapsed", "K size", "V size"];

/// More words than this before a colon are prose, not a key.
const MOST_KEY_WORDS: usize = 4;

/// A longer key is prose too.
const LONGEST_KEY: usize = 48;

/// A field by byte offsets into the text it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawField {
    /// The key as printed.
    pub name: String,
    /// The value.
    pub value: Value,
    /// Where the value begins.
    pub start: usize,
    /// How many bytes it covers, unit included.
    pub length: usize,
    /// Where the key begins.
    pub key_start: usize,
}

impl RawField {
    /// Where the value ends.
    pub fn end(&self) -> usize {
        self.start + self.length
    }
}

/// Whether `text` ends in `tail`, letter case aside, at a word boundary.
fn ends_in(text: &str, tail: &str) -> bool {
    let Some(at) = text.len().checked_sub(tail.len()) else { return false };
    text.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(tail))
        && text.get(..at).is_some_and(|front| !front.ends_with(char::is_alphanumeric))
}

/// A spaced key that the phrase ends in: where it begins.
fn spaced_key(phrase: &str) -> Option<usize> {
    SPACED_KEYS.iter().find(|key| ends_in(phrase, key)).map(|key| phrase.len() - key.len())
}

/// The key that stands before `=` at the end of `phrase`: where it begins.
pub(crate) fn key_before_equals(phrase: &str) -> Option<usize> {
    if let Some(start) = spaced_key(phrase) {
        return Some(start);
    }
    let start = phrase.rfind([' ', '\t', ',', ';', '`', '\'', '"', '<', '>']).map_or(0, |at| at + 1);
    let last = phrase.get(start..)?;
    // `local_gpu_memory * 0.9=`: a product is one key.
    if number(last).is_ok_and(|(rest, _)| rest.is_empty()) {
        let front = phrase.get(..start)?.strip_suffix(" * ")?;
        return Some(front.rfind([' ', '(', ',']).map_or(0, |at| at + 1)).filter(|at| *at < front.len());
    }
    let opening = last.find(|character: char| !matches!(character, '(' | '[' | '{'))?;
    last.get(opening..)?
        .starts_with(|character: char| character.is_alphabetic() || matches!(character, '_' | '#' | '-'))
        .then_some(start + opening)
}

/// The key that `phrase` is, before a colon: where it begins. Behind a separator or another value the whole
/// phrase is the key; at the beginning of a line its words are the label, unless they end in a known key.
pub(crate) fn key_before_colon(phrase: &str, opened: bool) -> Option<usize> {
    let start = phrase.len() - phrase.trim_start().len();
    let words = phrase.get(start..)?;
    let short = words.len() <= LONGEST_KEY && words.split_whitespace().count() <= MOST_KEY_WORDS;
    let begins =
        words.starts_with(|character: char| character.is_alphabetic() || matches!(character, '#' | '_'));
    if opened && short && begins { Some(start) } else { spaced_key(phrase) }
}

/// A call such as `len(reqs)`, whose bracket opens no clause: the bytes from its bracket on.
fn call_arguments(input: &str) -> IResult<&str, &str> {
    recognize((
        char('('),
        take_while_m_n(0, 40, |character: char| !matches!(character, '(' | ')' | ' ' | '=')),
        char(')'),
    ))
    .parse(input)
}

/// Whether the text at `at` is at its end or at a blank.
fn blank_or_end(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// The fields of `text` from byte `from` on. `convention` says what `GB` means on this line.
pub(crate) fn fields(text: &str, from: usize, convention: Convention) -> Vec<RawField> {
    let mut found: Vec<RawField> = Vec::new();
    // Where the words that may turn out to be a key begin, and whether something separates them from the label.
    let (mut phrase_start, mut opened) = (from, from > 0);
    let mut at = from;
    while let Some((mark_at, mark)) = text
        .get(at..)
        .and_then(|rest| rest.char_indices().find(|(_, mark)| "=:,.;()".contains(*mark)))
        .map(|(offset, mark)| (at + offset, mark))
    {
        let after = mark_at + 1;
        let phrase = text.get(phrase_start..mark_at).unwrap_or_default();
        let key = match mark {
            '=' if text.get(after..).is_some_and(|rest| rest.starts_with('=')) => {
                at = after + 1;
                continue;
            }
            '=' => key_before_equals(phrase),
            ':' if blank_or_end(text, after) => key_before_colon(phrase, opened),
            _ => None,
        };
        if let Some(key) = key {
            let field = field(text, phrase_start + key, mark_at, convention);
            at = field.end().max(after);
            (phrase_start, opened) = (at, true);
            found.push(field);
            continue;
        }
        let before = phrase.chars().next_back();
        if mark == '('
            && before.is_some_and(char::is_alphanumeric)
            && let Some((_, call)) = text.get(mark_at..).and_then(|rest| call_arguments(rest).ok())
        {
            at = mark_at + call.len();
            continue;
        }
        at = after;
        if matches!(mark, '(' | ')') || (mark != '=' && blank_or_end(text, after)) {
            (phrase_start, opened) = (after, true);
        }
    }
    found
}

/// The field whose key begins at `key_start` and whose `=` or `:` stands at `mark_at`.
fn field(text: &str, key_start: usize, mark_at: usize, convention: Convention) -> RawField {
    let name = text.get(key_start..mark_at).unwrap_or_default().trim().to_owned();
    let behind = text.get(mark_at + 1..).unwrap_or_default();
    let skipped = take_while::<_, _, nom::error::Error<&str>>(|c| matches!(c, ' ' | '\t' | '~'))
        .parse(behind)
        .map_or(0, |(_, skipped)| skipped.len());
    let start = mark_at + 1 + skipped;
    let (value, length) = value(text.get(start..).unwrap_or_default(), convention);
    RawField { name, value, start, length, key_start }
}

/// The label of a text whose first key begins at `end`: its words without trailing punctuation.
pub(crate) fn label(text: &str, end: usize) -> &str {
    text.get(..end).unwrap_or(text).trim_matches(|c: char| c.is_whitespace() || ".,:;(-|".contains(c))
}

/// A Python exception's name at the beginning of a line: dotted words.
pub(crate) fn dotted_name(input: &str) -> IResult<&str, &str> {
    take_while1(|character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.'))
        .parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{Decimal, Quantity, Unit};
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<(String, Value)> {
        fields(text, 0, Convention::Binary).into_iter().map(|field| (field.name, field.value)).collect()
    }

    fn gib(text: &str) -> Value {
        Value::Memory(Quantity::from_print(&Decimal::parse(text).unwrap(), Unit::Gib).unwrap())
    }

    fn count(text: &str) -> Value {
        Value::Number(Decimal::parse(text).unwrap())
    }

    fn word(text: &str) -> Value {
        Value::Word(text.to_owned())
    }

    fn pairs(expected: &[(&str, Value)]) -> Vec<(String, Value)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn separators_and_order_do_not_matter() {
        assert_eq!(
            read("Capture cuda graph end. Time elapsed: 3.44 s. mem usage=0.08 GB. avail mem=34.60 GB."),
            pairs(&[
                ("Time elapsed", count("3.44")),
                ("mem usage", gib("0.08")),
                ("avail mem", gib("34.60"))
            ])
        );
        assert_eq!(
            read("Something new, avail mem=4.38GB, mem usage=-1.86 GB"),
            pairs(&[("avail mem", gib("4.38")), ("mem usage", gib("-1.86"))])
        );
    }

    #[test]
    fn keys_may_hold_blanks_and_signs() {
        assert_eq!(
            read("KV Cache is allocated. dtype: torch.bfloat16, #tokens: 731957, K size: 44.68 GB"),
            pairs(&[
                ("dtype", word("torch.bfloat16")),
                ("#tokens", count("731957")),
                ("K size", gib("44.68"))
            ])
        );
        assert_eq!(
            read(
                "Mamba Cache is allocated. conv_state size: 0.12GB, ssm_state size: 3.00GB intermediate_ssm_state_cache size: 0.50GB "
            ),
            pairs(&[
                ("conv_state size", gib("0.12")),
                ("ssm_state size", gib("3.00")),
                ("intermediate_ssm_state_cache size", gib("0.50")),
            ])
        );
        assert_eq!(
            read("processes. local_gpu_memory=70.1, local_gpu_memory * 0.9=63.09"),
            pairs(&[("local_gpu_memory", count("70.1")), ("local_gpu_memory * 0.9", count("63.09"))])
        );
    }

    #[test]
    fn lists_groups_and_calls_are_single_values() {
        assert_eq!(
            read("begin. bs=[1, 2, 4], avail mem=1.00 GB"),
            pairs(&[
                ("bs", Value::List(vec!["1".into(), "2".into(), "4".into()])),
                ("avail mem", gib("1.00")),
            ])
        );
        assert_eq!(
            read("Capturing batches (bs=8 avail_mem=34.66 GB): 12%|x| 1/8"),
            pairs(&[("bs", count("8")), ("avail_mem", gib("34.66"))])
        );
        assert_eq!(
            read("x. len(reqs)=5, n='a, b=c'"),
            pairs(&[("len(reqs)", count("5")), ("n", word("a, b=c"))])
        );
    }

    #[test]
    fn prose_with_colons_has_no_fields() {
        for text in [
            "Using fallback: nothing",
            "Failed to load https://example.org/a.b",
            "127.0.0.1:80 - x",
            "Possible solutions:",
        ] {
            assert_eq!(read(text), vec![], "{text}");
        }
    }

    #[test]
    fn missing_and_beheaded_values_are_cut() {
        assert_eq!(read("x. avail mem="), pairs(&[("avail mem", Value::Cut)]));
        assert_eq!(read("x. available_gpu_mem=.20 GB"), pairs(&[("available_gpu_mem", Value::Cut)]));
        assert_eq!(read("x. bs=[1, 2, "), pairs(&[("bs", Value::Cut)]));
        assert_eq!(read("x. #tokens: "), pairs(&[("#tokens", Value::Cut)]));
    }

    #[test]
    fn rates_are_not_amounts() {
        assert_eq!(measure("4.98 GB/s", Convention::Binary), Some((count("4.98"), 4)));
        assert_eq!(measure("4.98 GB", Convention::Decimal).unwrap().1, 7);
    }

    proptest! {
        #[test]
        fn fields_lie_inside_the_text_and_never_panic(text in "[a-z =:,.;()\\[\\]{}'\"0-9GBé#*-]{0,80}") {
            let mut last = 0;
            for field in fields(&text, 0, Convention::Binary) {
                prop_assert!(field.key_start >= last && field.start > field.key_start);
                prop_assert!(text.get(field.start..field.end()).is_some());
                last = field.end();
            }
        }
    }
}
