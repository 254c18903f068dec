//! Text that remembers which column of its physical line each piece came from, and the cleaning of raw bytes to it.
//!
//! Separate because everything after it cuts text into pieces, and each piece must still know where it stood although
//! escape sequences, control characters and entities in front of it are gone.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while_m_n};
use nom::character::complete::satisfy;
use nom::combinator::value;
use nom::{IResult, Parser};
use std::ops::Range;

/// Text with the columns it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    string: String,
    /// From which byte on which column counts; between, columns advance with the bytes. Rising, the first at 0.
    origins: Vec<(usize, u64)>,
}

impl Text {
    /// Text that stands at a column as it is.
    pub fn new(string: String, column: u64) -> Text {
        Text { string, origins: vec![(0, column)] }
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.string
    }

    /// The text itself, without its columns.
    pub fn into_string(self) -> String {
        self.string
    }

    /// The column of a byte of the text.
    pub fn column(&self, index: usize) -> u64 {
        let later = self.origins.partition_point(|(from, _)| *from <= index);
        let known = later.checked_sub(1).and_then(|last| self.origins.get(last));
        known.map_or(1, |(from, column)| column + (index - from) as u64)
    }

    /// A part of the text, with its columns; empty where the range is none of it.
    pub fn part(&self, range: Range<usize>) -> Text {
        let string = self.string.get(range.clone()).unwrap_or_default().to_owned();
        let mut origins = vec![(0, self.column(range.start))];
        let low = self.origins.partition_point(|(from, _)| *from <= range.start);
        let high = self.origins.partition_point(|(from, _)| *from < range.end);
        let inside = self.origins.get(low..high).unwrap_or_default();
        origins.extend(inside.iter().map(|(from, column)| (from - range.start, *column)));
        Text { string, origins }
    }

    /// The text from `start` on.
    pub fn from(&self, start: usize) -> Text {
        self.part(start..self.string.len())
    }

    /// Appends what continues this text in a later physical line. Its own columns are forgotten.
    pub fn append(&mut self, later: &str) {
        self.string.push_str(later);
    }

    fn push(&mut self, piece: &str, column: u64) {
        if piece.is_empty() {
            return;
        }
        let at = self.string.len();
        if at == 0 {
            self.origins = vec![(0, column)];
        } else if self.column(at) != column {
            self.origins.push((at, column));
        }
        self.string.push_str(piece);
    }
}

/// What becomes of something in the raw text.
#[derive(Clone, Copy)]
enum Fate {
    Dropped,
    Replaced(&'static str),
}

/// Makes text of raw bytes whose first stands at `column`: invalid UTF-8 and bidirectional controls are replaced,
/// escape sequences and control characters removed, HTML entities resolved. Tabs and line breaks stay.
pub(super) fn clean(bytes: &[u8], column: u64) -> Text {
    let mut text = Text::new(String::with_capacity(bytes.len()), column);
    let mut column = column;
    for chunk in bytes.utf8_chunks() {
        clean_valid(chunk.valid(), column, &mut text);
        column += chunk.valid().len() as u64;
        if !chunk.invalid().is_empty() {
            text.push("\u{fffd}", column);
            column += chunk.invalid().len() as u64;
        }
    }
    text
}

/// The same for a string.
pub(super) fn clean_str(string: &str, column: u64) -> Text {
    let mut text = Text::new(String::with_capacity(string.len()), column);
    clean_valid(string, column, &mut text);
    text
}

fn clean_valid(input: &str, column: u64, text: &mut Text) {
    let mut run = 0;
    let mut at = 0;
    while let Some(offset) = input.get(at..).and_then(|rest| rest.find(suspicious)) {
        at += offset;
        let rest = input.get(at..).unwrap_or_default();
        let Ok((after, fate)) = disturbance(rest) else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        text.push(input.get(run..at).unwrap_or_default(), column + run as u64);
        if let Fate::Replaced(by) = fate {
            text.push(by, column + at as u64);
        }
        at = input.len() - after.len();
        run = at;
    }
    text.push(input.get(run..).unwrap_or_default(), column + run as u64);
}

/// Characters that may begin a disturbance.
fn suspicious(character: char) -> bool {
    matches!(character, '\\' | '&' | '[') || is_dropped(character) || is_bidirectional(character)
}

/// Control characters but tab and line breaks, the byte order mark, and the blank without width.
fn is_dropped(character: char) -> bool {
    let kept = matches!(character, '\t' | '\n' | '\r');
    character.is_control() && !kept || matches!(character, '\u{feff}' | '\u{200b}')
}

/// Characters that turn the direction of what follows: they could make a report show what the log does not say.
fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// One disturbance and what becomes of it.
fn disturbance(input: &str) -> IResult<&str, Fate> {
    alt((
        value(Fate::Dropped, escape_sequence),
        value(Fate::Dropped, written_escape_sequence),
        value(Fate::Dropped, orphaned_colour),
        entity,
        value(Fate::Dropped, satisfy(is_dropped)),
        value(Fate::Replaced("\u{fffd}"), satisfy(is_bidirectional)),
    ))
    .parse(input)
}

/// A terminal's escape sequence: colours and cursor movements, titles and links, character sets.
fn escape_sequence(input: &str) -> IResult<&str, ()> {
    let (input, _) = satisfy(|character| character == '\u{1b}').parse(input)?;
    let title = |input| (tag("]"), title_text, alt((tag("\u{7}"), tag("\u{1b}\\")))).parse(input);
    let character_set =
        |input| (satisfy(|c| matches!(c, '(' | ')' | '#')), satisfy(|c| c.is_ascii_graphic())).parse(input);
    alt((
        control_sequence,
        value((), title),
        value((), character_set),
        value((), satisfy(|c| matches!(c, '7' | '8' | '=' | '>' | 'M' | 'c'))),
        value((), tag("")),
    ))
    .parse(input)
}

/// A title or a link; the length is limited, or each unfinished one would be searched to the end of the text.
fn title_text(input: &str) -> IResult<&str, &str> {
    take_while_m_n(0, 2048, |character: char| !character.is_control()).parse(input)
}

/// What follows the escape character of a colour or a cursor movement.
fn control_sequence(input: &str) -> IResult<&str, ()> {
    let (input, _) = tag("[").parse(input)?;
    let (input, _) = take_while_m_n(0, 64, |c: char| matches!(c, ' '..='?')).parse(input)?;
    value((), satisfy(|c| matches!(c, '@'..='~'))).parse(input)
}

/// The same where the escape character has been written out: `\u001b[36m`.
fn written_escape_sequence(input: &str) -> IResult<&str, ()> {
    let escape = alt((tag("\\u001b"), tag("\\u001B"), tag("\\x1b"), tag("\\x1B"), tag("\\033")));
    value((), (escape, control_sequence)).parse(input)
}

/// A colour whose escape character got lost on the way: `[36m`.
fn orphaned_colour(input: &str) -> IResult<&str, ()> {
    let (input, _) = tag("[").parse(input)?;
    let (input, _) = take_while_m_n(1, 3, |c: char| c.is_ascii_digit()).parse(input)?;
    let (input, _) = take_while(|c: char| c.is_ascii_digit() || c == ';').parse(input)?;
    value((), tag("m")).parse(input)
}

/// An HTML entity of those that a pasted log has.
fn entity(input: &str) -> IResult<&str, Fate> {
    let named = |name, by| value(Fate::Replaced(by), tag(name));
    alt((
        named("&lt;", "<"),
        named("&gt;", ">"),
        named("&amp;", "&"),
        named("&quot;", "\""),
        named("&#39;", "'"),
        named("&#x27;", "'"),
        named("&nbsp;", " "),
    ))
    .parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn disturbances_go_and_columns_stay() {
        for (raw, cleaned, needle, column) in [
            ("\u{1b}[36m(A pid=1)\u{1b}[0m [x]", "(A pid=1) [x]", "[x]", 20),
            ("\\u001b[36mA\\u001b[0m b", "A b", "b", 22),
            ("[1;33mwarn[0m b", "warn b", "b", 15),
            ("\u{1b}]0;title\u{7}b", "b", "b", 11),
            ("a\u{0}\u{8}b", "ab", "b", 4),
            ("&lt;b&gt; &amp;amp; &quot;c&#39;", "<b> &amp; \"c'", "c", 27),
            ("\u{feff}b", "b", "b", 4),
            ("a\u{202e}b", "a\u{fffd}b", "b", 5),
            ("\u{1b}(Bb", "b", "b", 4),
            ("[18:43:27 TP1] b", "[18:43:27 TP1] b", "b", 16),
            ("\u{1b}]endless b", "]endless b", "b", 11),
            ("a\u{1b}", "a", "a", 1),
        ] {
            let text = clean(raw.as_bytes(), 1);
            assert_eq!(text.as_str(), cleaned, "{raw:?}");
            assert_eq!(text.column(text.as_str().find(needle).unwrap()), column, "{raw:?}");
        }
        let text = clean(b"caf\xe9 b", 11);
        assert_eq!((text.as_str(), text.column(7)), ("caf\u{fffd} b", 16));
    }

    proptest! {
        #[test]
        fn no_control_character_survives_and_columns_rise(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = clean(&bytes, 1);
            prop_assert!(!text.as_str().contains(|c: char| is_dropped(c) || is_bidirectional(c)));
            let columns: Vec<u64> = text.as_str().char_indices().map(|(index, _)| text.column(index)).collect();
            prop_assert!(columns.is_sorted());
            prop_assert!(columns.iter().all(|column| *column <= bytes.len() as u64));
        }

        #[test]
        fn a_part_keeps_its_columns(text in "[a\u{1b}\\[m&lt;█ ]{0,40}", from in 0usize..40) {
            let text = clean(text.as_bytes(), 5);
            prop_assume!(text.as_str().is_char_boundary(from));
            let part = text.from(from);
            for (index, _) in part.as_str().char_indices() {
                prop_assert_eq!(part.column(index), text.column(from + index));
            }
        }
    }
}
