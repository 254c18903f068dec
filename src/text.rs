//! The gate between input and terminal: every string that is shown passes through here.
//!
//! Log lines, process names and file names are hostile until cleaned: control characters could drive the terminal, and
//! direction overrides could show another text than the one that was read. Widths are display columns as
//! `unicode-width` counts them, never bytes or characters.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands in the place of a character that must not reach the terminal.
const REPLACEMENT: char = '\u{FFFD}';

/// Width of a text in columns.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text with everything invisible or harmful taken out: control characters become `U+FFFD`, tabs a space, and
/// format characters (direction overrides, joiners, variation selectors, tags) go. With `ascii`, symbols become what a
/// keyboard has, and letters beyond ASCII `?`.
pub(crate) fn clean(text: &str, ascii: bool) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => cleaned.push(' '),
            control if control.is_control() || matches!(control, '\u{2028}' | '\u{2029}') => {
                cleaned.push(if ascii { '?' } else { REPLACEMENT })
            }
            invisible if is_invisible(invisible) || is_noncharacter(invisible) => {}
            letter if ascii && !letter.is_ascii() => cleaned.push_str(in_ascii(letter)),
            letter => cleaned.push(letter),
        }
    }
    cleaned
}

/// Characters that take no room of their own and change how others are shown, and fillers that look like nothing.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{00AD}' | '\u{034F}' | '\u{0600}'..='\u{0605}' | '\u{061C}' | '\u{06DD}' | '\u{070F}' | '\u{115F}' | '\u{1160}'
        | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Code points that are no characters: neither XML nor HTML may hold them.
fn is_noncharacter(character: char) -> bool {
    matches!(character, '\u{FDD0}'..='\u{FDEF}') || u32::from(character) & 0xFFFE == 0xFFFE
}

/// What a keyboard has for a symbol.
fn in_ascii(character: char) -> &'static str {
    match character {
        '±' => "+-",
        '−' | '–' | '—' | '─' => "-",
        '│' | '╷' | '·' => "|",
        '×' => "x",
        '÷' => "/",
        '≤' => "<=",
        '≥' => ">=",
        '≠' => "!=",
        '→' => "->",
        '↔' => "<->",
        '…' => "...",
        '✔' => "ok",
        '▲' => "!",
        '✘' => "x",
        '█' | '▉' | '▊' | '▋' | '▌' => "#",
        '▍' | '▎' | '▏' => "-",
        _ => "?",
    }
}

/// The longest beginning of `text` that is at most `columns` wide, and the rest.
pub(crate) fn split_at_width(text: &str, columns: usize) -> (&str, &str) {
    let mut taken = 0;
    for (position, character) in text.char_indices() {
        taken += character.width().unwrap_or(0);
        if taken > columns {
            return text.split_at_checked(position).unwrap_or((text, ""));
        }
    }
    (text, "")
}

/// The text, cut at its end to `columns`, with `mark` where something is missing.
pub(crate) fn cut(text: &str, columns: usize, mark: &str) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let (kept, _) = split_at_width(text, columns.saturating_sub(width(mark)));
    format!("{kept}{mark}")
}

/// The text, cut at its beginning to `columns`: what stands nearest to the end is kept.
pub(crate) fn cut_front(text: &str, columns: usize, mark: &str) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let room = columns.saturating_sub(width(mark));
    let mut taken = 0;
    let mut from = text.len();
    for (position, character) in text.char_indices().rev() {
        taken += character.width().unwrap_or(0);
        if taken > room {
            break;
        }
        from = position;
    }
    format!("{mark}{}", text.get(from..).unwrap_or_default())
}

/// The text with spaces behind it up to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text with spaces before it up to `columns`.
pub(crate) fn pad_front(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Breaks a text into lines of at most `columns`, at spaces; a word longer than a line is broken inside.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    flow(text.split(' ').filter(|word| !word.is_empty()), " ", columns)
}

/// Sets pieces one after the other, `separator` between them, into lines of at most `columns`. A line ends after a piece,
/// never before its separator; a piece longer than a line is broken at its spaces, else inside.
pub(crate) fn flow<'a>(
    pieces: impl IntoIterator<Item = &'a str>,
    separator: &str,
    columns: usize,
) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for piece in pieces {
        let needed = if line.is_empty() { 0 } else { width(&line) + width(separator) } + width(piece);
        if needed <= columns {
            if !line.is_empty() {
                line.push_str(separator);
            }
            line.push_str(piece);
            continue;
        }
        if !line.is_empty() {
            line.push_str(separator.trim_end());
            lines.push(std::mem::take(&mut line));
        }
        if width(piece) <= columns {
            line.push_str(piece);
        } else if separator != " " && piece.contains(' ') {
            let mut broken = wrap(piece, columns);
            line = broken.pop().unwrap_or_default();
            lines.append(&mut broken);
        } else {
            let mut rest = piece;
            while width(rest) > columns {
                let (head, tail) = split_at_width(rest, columns);
                // A character wider than the line itself: it goes whole, so that the loop ends.
                let (head, tail) = if head.is_empty() { (rest, "") } else { (head, tail) };
                lines.push(head.to_string());
                rest = tail;
            }
            line.push_str(rest);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_characters_do_not_pass() {
        assert_eq!(clean("\u{1b}[31mred\u{7}", false), "\u{FFFD}[31mred\u{FFFD}");
        assert_eq!(clean("a\u{202E}cod.exe\u{200B}", false), "acod.exe");
        assert_eq!(clean("\u{9b}2J\tx\r\n", false), "\u{FFFD}2J x\u{FFFD}\u{FFFD}");
        assert_eq!(clean("15 ± 5 · 模型", true), "15 +- 5 | ??");
    }

    #[test]
    fn cuts_count_columns_not_characters() {
        assert_eq!(cut("模型模型", 5, "…"), "模型…");
        assert_eq!(cut_front("模型模型", 5, "…"), "…模型");
        assert_eq!(cut("short", 5, "…"), "short");
        assert_eq!(pad("模", 4), "模  ");
        assert_eq!(pad_front("模", 4), "  模");
    }

    #[test]
    fn words_are_wrapped_and_long_ones_broken() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(flow(["a b", "c d"], " · ", 5), ["a b ·", "c d"]);
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left_and_lines_keep_their_width(text in any::<String>(), columns in 2usize..40) {
            let cleaned = clean(&text, false);
            prop_assert!(!cleaned.chars().any(|character| character.is_control()));
            prop_assert_eq!(clean(&cleaned, false), cleaned.clone());
            prop_assert!(clean(&text, true).is_ascii());
            prop_assert!(width(&cut(&cleaned, columns, "…")) <= columns);
            prop_assert!(width(&cut_front(&cleaned, columns, "…")) <= columns);
            prop_assert!(wrap(&cleaned, columns).iter().all(|line| width(line) <= columns));
        }
    }
}
