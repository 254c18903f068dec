//! Words of the input as Markdown text: shown as they are, and never obeyed.
//!
//! Markdown's own signs get a backslash or an entity. What GitHub makes of plain text (mentions, links, references to
//! tickets) has no escape, so an invisible word joiner takes such words apart.

use crate::text;

/// Joins two characters without being seen, and keeps `@name`, `www.` and `://` from being recognised.
const WORD_JOINER: char = '\u{2060}';

/// The text as it may stand inside a paragraph, a list item or a table cell.
pub(super) fn inline(words: &str) -> String {
    let cleaned = text::clean(words, false);
    let mut escaped = String::with_capacity(cleaned.len() + 8);
    let rule = cleaned.chars().all(|character| matches!(character, '-' | '=' | ' '));
    let mut before = ' ';
    let mut rest = cleaned.chars().peekable();
    while let Some(character) = rest.next() {
        let next = rest.peek().copied().unwrap_or(' ');
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' if next.is_alphanumeric() || next == '#' => escaped.push_str("&amp;"),
            '`' | '*' | '[' | ']' | '|' | '~' | '$' => escaped.extend(['\\', character]),
            '_' if !(before.is_alphanumeric() && next.is_alphanumeric()) => escaped.push_str("\\_"),
            '\\' if next.is_ascii_punctuation() || next == ' ' => escaped.push_str("\\\\"),
            '#' => escaped.extend(['\\', '#', WORD_JOINER]),
            '@' => escaped.extend(['@', WORD_JOINER]),
            ':' if next == '/' => escaped.extend([':', WORD_JOINER]),
            '.' if before.eq_ignore_ascii_case(&'w') => escaped.extend(['.', WORD_JOINER]),
            // At the beginning of a line these make lists, rules and headings.
            '-' | '+' if escaped.trim_end().is_empty() && (next == ' ' || rule) => {
                escaped.extend(['\\', character])
            }
            '=' if escaped.trim_end().is_empty() && rule => escaped.push_str("\\="),
            plain => escaped.push(plain),
        }
        before = character;
    }
    let mut escaped = escaped.trim().to_string();
    // `1. ` and `1) ` at the beginning make a list.
    let digits = escaped.chars().take_while(char::is_ascii_digit).count();
    let mut behind = escaped.chars().skip(digits);
    if digits > 0 && matches!(behind.next(), Some('.' | ')')) && behind.next().is_none_or(|next| next == ' ')
    {
        escaped.insert(digits, '\\');
    }
    escaped
}

/// A block of text as it is. The fence is longer than any run of backticks inside.
pub(super) fn fence(lines: &[String]) -> String {
    let longest = lines.iter().map(|line| longest_run(line)).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let mut block = format!("{fence}text\n");
    for line in lines {
        block.push_str(line.trim_end());
        block.push('\n');
    }
    block + &fence + "\n"
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    /// The text that a renderer shows, and whether anything but text is in it.
    fn rendered(markdown: &str) -> (String, bool) {
        let mut shown = String::new();
        let mut only_text = true;
        let github = Options::ENABLE_TABLES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_GFM
            | Options::ENABLE_MATH;
        for event in Parser::new_ext(markdown, github) {
            match event {
                Event::Text(text) => shown.push_str(&text),
                Event::Start(Tag::Paragraph) | Event::End(_) => {}
                _ => only_text = false,
            }
        }
        (shown, only_text)
    }

    #[test]
    fn markdown_is_shown_and_not_obeyed() {
        for words in [
            "# heading",
            "*bold* _it_ __b__ ~~gone~~ `code`",
            "<script>alert(1)</script>",
            "[text](https://example.org) ![image](x)",
            "a | b",
            "- item",
            "1. item",
            "&lt;b&gt; AT&T &#64;",
            "C:\\Users\\*x",
            "=====",
            "key_with_underscores",
            "$x$",
        ] {
            let (shown, only_text) = rendered(&inline(words));
            assert!(only_text, "{words}: {}", inline(words));
            assert_eq!(shown.replace(WORD_JOINER, ""), words);
        }
    }

    #[test]
    fn mentions_and_links_are_taken_apart() {
        for words in ["@someone", "https://example.org", "www.example.org", "#12"] {
            assert!(!inline(words).contains(words), "{words}");
        }
    }

    #[test]
    fn a_fence_outlasts_what_is_in_it() {
        let block = fence(&["````".into(), "```".into()]);
        assert!(block.starts_with("`````text\n") && block.ends_with("\n`````\n"), "{block}");
    }

    proptest! {
        #[test]
        fn no_words_become_markup(words in "[ -~\u{202e}é]{0,60}") {
            let (shown, only_text) = rendered(&inline(&words));
            prop_assert!(only_text, "{words:?} gives {:?}", inline(&words));
            let cleaned = text::clean(&words, false);
            prop_assert_eq!(shown.replace(WORD_JOINER, ""), cleaned.trim());
        }
    }
}
