//! The general clause parser: a label, then `key=value` and `key: value` fields in any order.
//!
//! It knows no line of SGLang in particular, only how SGLang writes figures, so that a field that moves, is new
//! or stands behind another separator costs nothing. What a label means is the catalogue's business.

use crate::event::Value;
use crate::quantity::{Convention, Decimal, Quantity, Unit};
use nom::branch::alt;
use nom::bytes::complete::{is_not, tag, take_while, take_while_m_n, take_while1};
use nom::character::complete::{alpha1, char, digit1, one_of};
use nom::combinator::{not, opt, peek, recognize, verify};
use nom::sequence::{pair, preceded, terminated};
use nom::{IResult, Parser};

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

/// A number as Python prints it, as text: sign, digits, decimals, exponent.
pub(crate) fn number(input: &str) -> IResult<&str, &str> {
    recognize((
        opt(one_of("+-")),
        digit1,
        opt(pair(char('.'), digit1)),
        opt((one_of("eE"), opt(one_of("+-")), digit1)),
    ))
    .parse(input)
}

/// A number that lost its beginning (`.20`): what it was is unknown.
fn beheaded_number(input: &str) -> IResult<&str, &str> {
    recognize(pair(char('.'), digit1)).parse(input)
}

/// A unit word directly behind its number or after blanks, ended by something that is no part of a word. A rate
/// (`GB/s`) is not an amount.
fn unit_word(input: &str) -> IResult<&str, &str> {
    preceded(
        take_while(|character| character == ' '),
        terminated(alt((alpha1, tag("%"))), peek(not(alt((recognize(one_of("_/")), digit1))))),
    )
    .parse(input)
}

/// A number with whatever unit follows it: the value, and how many bytes both take.
pub(crate) fn measure(text: &str, convention: Convention) -> Option<(Value, usize)> {
    let (rest, digits) = number(text).ok()?;
    let decimal = Decimal::parse(digits)?;
    let plain = digits.len();
    if let Ok((after, word)) = unit_word(rest) {
        let whole = text.len() - after.len();
        if let Some(unit) = Unit::named(word, convention) {
            return Some((Quantity::from_print(&decimal, unit).map_or(Value::Cut, Value::Memory), whole));
        }
        if matches!(word, "s" | "ms" | "sec" | "seconds" | "%") {
            return Some((Value::Number(decimal), whole));
        }
    }
    Some((Value::Number(decimal), plain))
}

/// A number that ends where a value can end: `0/8`, `127.0.0.1` and `8b` are words.
fn numeric_value(text: &str, convention: Convention) -> Option<(Value, usize)> {
    if let Ok((_, cut)) = beheaded_number(text) {
        return Some((Value::Cut, cut.len()));
    }
    let (value, length) = measure(text, convention)?;
    let rest = text.get(length..)?;
    let mut following = rest.chars();
    let ends = match following.next() {
        None => true,
        Some('.') => following.next().is_none_or(char::is_whitespace),
        Some(next) => !(next.is_alphanumeric() || matches!(next, '_' | '/' | ':' | '-' | '%')),
    };
    // A unit that was cut (`20.6 G`, `20.6 Gi`) stands behind a blank and so passes: its number has no unit.
    ends.then_some((value, length))
}

/// The length of a bracketed group at the beginning of `text`, quotes inside respected. `None` where it is
/// never closed.
fn group_length(text: &str) -> Option<usize> {
    let mut open: Vec<char> = Vec::new();
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        if let Some(mark) = quote {
            if escaped {
                escaped = false;
            } else if character == '\\' {
                escaped = true;
            } else if character == mark {
                quote = None;
            }
        } else {
            match character {
                '\'' | '"' if !before.is_alphanumeric() => quote = Some(character),
                '[' => open.push(']'),
                '{' => open.push('}'),
                '(' => open.push(')'),
                ']' | '}' | ')' if open.last() == Some(&character) => {
                    open.pop();
                }
                _ => {}
            }
        }
        if open.is_empty() && quote.is_none() {
            return Some(at + character.len_utf8());
        }
        before = character;
    }
    None
}

/// Splits the inside of a list at its top-level commas.
fn list_items(inside: &str) -> Vec<String> {
    let mut items = Vec::new();
    let (mut depth, mut from) = (0usize, 0usize);
    for (at, character) in inside.char_indices() {
        match character {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.push(inside.get(from..at).unwrap_or_default().trim().to_owned());
                from = at + 1;
            }
            _ => {}
        }
    }
    items.push(inside.get(from..).unwrap_or_default().trim().to_owned());
    items.retain(|item| !item.is_empty());
    items
}

/// A list, a quoted string or another bracketed group. An unclosed one is cut, and reaches to the end.
pub(crate) fn grouped(text: &str) -> Option<(Value, usize)> {
    let first = text.chars().next()?;
    if !matches!(first, '[' | '{' | '(' | '\'' | '"') {
        return None;
    }
    let Some(length) = group_length(text) else {
        return Some((Value::Cut, text.len()));
    };
    let inside = text.get(1..length - 1).unwrap_or_default();
    Some(match first {
        '[' => (Value::List(list_items(inside)), length),
        '\'' | '"' => (Value::Word(inside.to_owned()), length),
        _ => (Value::Word(text.get(..length).unwrap_or_default().to_owned()), length),
    })
}

/// A bare word: to a blank, or to punctuation that a blank or the end follows.
fn word(input: &str) -> IResult<&str, &str> {
    verify(is_not(" \t"), |word: &str| !word.is_empty()).parse(input)
}

/// The value at the beginning of `text`, and how many bytes it takes. Nothing there: cut.
fn value(text: &str, convention: Convention) -> (Value, usize) {
    if let Some(found) = numeric_value(text, convention).or_else(|| grouped(text)) {
        return found;
    }
    let printed = word(text).map_or("", |(_, word)| word).trim_end_matches([',', '.', ';', ')', ':']);
    if printed.is_empty() || printed == "-" {
        return (Value::Cut, printed.len());
    }
    (Value::Word(printed.to_owned()), printed.len())
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
        if mark == '(' && before.is_some_and(char::is_alphanumeric) {
            if let Some((_, call)) = text.get(mark_at..).and_then(|rest| call_arguments(rest).ok()) {
                at = mark_at + call.len();
                continue;
            }
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
