//! Values: numbers with or without a unit, lists, quoted strings, groups and words.

use crate::event::Value;
use crate::quantity::{Convention, Decimal, Quantity, Unit};
use nom::branch::alt;
use nom::bytes::complete::{is_not, tag, take_while};
use nom::character::complete::{alpha1, char, digit1, one_of};
use nom::combinator::{not, opt, peek, recognize, verify};
use nom::sequence::{pair, preceded, terminated};
use nom::{IResult, Parser};

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
pub(super) fn value(text: &str, convention: Convention) -> (Value, usize) {
    if let Some(found) = numeric_value(text, convention).or_else(|| grouped(text)) {
        return found;
    }
    let printed = word(text).map_or("", |(_, word)| word).trim_end_matches([',', '.', ';', ')', ':']);
    if printed.is_empty() || printed == "-" {
        return (Value::Cut, printed.len());
    }
    (Value::Word(printed.to_owned()), printed.len())
}
