//! Python string literals: the part of a repr that may hold any delimiter, so it has its own rules.

use nom::bytes::complete::{tag, take_while_m_n};
use nom::character::complete::{anychar, one_of};
use nom::combinator::{map, map_opt, opt};
use nom::sequence::preceded;
use nom::{IResult, Parser, branch::alt};

/// A string or bytes literal, unescaped: `'it\'s'`, `"it's"`, `b'\x00'`. Each byte of a bytes literal becomes the
/// character of the same number.
pub(super) fn string(input: &str) -> IResult<&str, String> {
    let (rest, _) = opt(one_of("bBuU")).parse(input)?;
    let (rest, quote) = one_of("'\"")(rest)?;
    string_body(quote, rest)
}

/// The characters up to the closing quote, and the quote.
fn string_body(quote: char, input: &str) -> IResult<&str, String> {
    let mut text = String::new();
    let mut rest = input;
    loop {
        let (after, character) = anychar(rest)?;
        match character {
            _ if character == quote => return Ok((after, text)),
            '\\' => {
                let (after, unescaped) = escape(rest)?;
                text.push_str(&unescaped);
                rest = after;
            }
            _ => {
                text.push(character);
                rest = after;
            }
        }
    }
}

/// One backslash escape. An unknown one stands for itself, backslash included, as in Python.
fn escape(input: &str) -> IResult<&str, String> {
    preceded(
        tag("\\"),
        alt((
            map(simple_escape, String::from),
            map(preceded(tag("x"), |rest| code_point(2, rest)), String::from),
            map(preceded(tag("u"), |rest| code_point(4, rest)), String::from),
            map(preceded(tag("U"), |rest| code_point(8, rest)), String::from),
            map(octal_escape, String::from),
            map(anychar, |other| format!("\\{other}")),
        )),
    )
    .parse(input)
}

/// An escape of one letter.
fn simple_escape(input: &str) -> IResult<&str, char> {
    map_opt(anychar, |letter| {
        Some(match letter {
            '\\' | '\'' | '"' => letter,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            _ => return None,
        })
    })
    .parse(input)
}

/// Exactly `digits` hexadecimal digits as a character; half of a surrogate pair becomes the replacement character.
fn code_point(digits: usize, input: &str) -> IResult<&str, char> {
    map_opt(take_while_m_n(digits, digits, |c: char| c.is_ascii_hexdigit()), |text: &str| {
        Some(char::from_u32(u32::from_str_radix(text, 16).ok()?).unwrap_or(char::REPLACEMENT_CHARACTER))
    })
    .parse(input)
}

/// Up to three octal digits as a character: `\0`.
fn octal_escape(input: &str) -> IResult<&str, char> {
    map_opt(take_while_m_n(1, 3, |c: char| c.is_digit(8)), |text: &str| {
        char::from_u32(u32::from_str_radix(text, 8).ok()?)
    })
    .parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<String> {
        string(text).ok().map(|(_, text)| text)
    }

    #[test]
    fn either_quote_holds_the_other() {
        assert_eq!(read("'plain'").as_deref(), Some("plain"));
        assert_eq!(read("\"it's\"").as_deref(), Some("it's"));
        assert_eq!(read(r"'it\'s a \\ and \n'").as_deref(), Some("it's a \\ and \n"));
        assert_eq!(read("b'ab\\x00'").as_deref(), Some("ab\0"));
    }

    #[test]
    fn escapes_of_python_are_undone() {
        assert_eq!(read(r"'\x41\u00e9\U0001f600\101\0'").as_deref(), Some("Aé😀A\0"));
        assert_eq!(read(r"'\ud800'").as_deref(), Some("\u{fffd}"));
        assert_eq!(read(r"'\q \x4'").as_deref(), Some("\\q \\x4"), "unknown escapes stand for themselves");
    }

    #[test]
    fn a_string_without_its_end_is_no_string() {
        for text in ["'", "'abc", r"'abc\'", "abc'", ""] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn quoting_then_reading_is_the_identity(text in any::<String>()) {
            let quoted = format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
            prop_assert_eq!(string(&quoted), Ok(("", text)));
        }
    }
}
