//! Text for people: wrapping, and making input harmless before it reaches a terminal.
//!
//! Separate because reports, explanations and error messages all need the same two things, and because there must be one
//! place only that decides what a terminal may see of a log.

use unicode_width::UnicodeWidthChar;
use unicode_width::UnicodeWidthStr;

/// Text that can do nothing to a terminal: control characters become their visible pictures, characters that reorder or
/// hide text become `�`.
pub fn harmless(text: &str) -> String {
    text.chars().map(harmless_character).collect()
}

fn harmless_character(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('�'),
        '\u{7f}' => '\u{2421}',
        // C1 controls, bidirectional marks and overrides, zero-width characters, line separators, tags.
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => '�',
        _ => character,
    }
}

/// Columns that a text takes on a terminal.
pub fn width_of(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Wraps a paragraph at blanks; its own leading blanks indent every line.
pub fn wrap(paragraph: &str, width: usize) -> String {
    let indent = paragraph.len() - paragraph.trim_start_matches(' ').len();
    let body = wrap_behind(paragraph.trim_start_matches(' '), width, indent);
    format!("{}{body}", " ".repeat(indent))
}

/// Wraps a text that begins at column `behind`; further lines are indented to it.
pub fn wrap_behind(text: &str, width: usize, behind: usize) -> String {
    let room = width.saturating_sub(behind).max(20);
    let mut wrapped = String::new();
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = width_of(word);
        if used > 0 && used + 1 + length > room {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(behind));
            used = 0;
        } else if used > 0 {
            wrapped.push(' ');
            used += 1;
        }
        used = push_broken(&mut wrapped, word, room, behind, used);
    }
    wrapped
}

/// Appends a word, broken where it alone is wider than the room. Returns the column that the last line got to.
fn push_broken(wrapped: &mut String, word: &str, room: usize, behind: usize, used: usize) -> usize {
    let mut column = used;
    for character in word.chars() {
        let width = character.width().unwrap_or(0);
        if column + width > room && column > 0 {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(behind));
            column = 0;
        }
        wrapped.push(character);
        column += width;
    }
    column
}

/// The text cut to `columns`, with `…` where something is missing.
pub fn shorten(text: &str, columns: usize) -> String {
    if width_of(text) <= columns {
        return text.to_string();
    }
    let mut short = String::new();
    let mut used = 0;
    for character in text.chars() {
        let width = character.width().unwrap_or(0);
        if used + width + 1 > columns {
            break;
        }
        short.push(character);
        used += width;
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_moves_a_cursor_survives() {
        let hostile = "a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}cod\u{200b}e\r";
        let shown = harmless(hostile);
        assert!(!shown.chars().any(|character| character.is_control()));
        assert!(!shown.contains('\u{202e}') && !shown.contains('\u{200b}'));
        assert!(shown.starts_with("a␛[31mred␇"));
    }

    #[test]
    fn paragraphs_wrap_and_keep_their_indent() {
        assert_eq!(wrap("  one two three four five six", 24), "  one two three four\n  five six");
        assert_eq!(shorten("abcdef", 4), "abc…");
    }

    proptest! {
        #[test]
        fn wrapped_lines_fit(text in "[a-z ]{0,200}", width in 30usize..120) {
            for line in wrap(&text, width).lines() {
                prop_assert!(width_of(line) <= width.max(20 + text.len() - text.trim_start_matches(' ').len()));
            }
        }
    }
}
