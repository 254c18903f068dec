//! Cuts a payload apart into the lines that its program printed.
//!
//! Separate from the scan, which only knows line breaks: here stand the places where a line break got lost or was
//! written out.

use super::envelope::log_stamp;
use super::text::Text;

/// The lines in a payload: split at line breaks, at written-out `\n`, before a log prefix glued to something, behind
/// the end of a progress bar and before one begun inside another; Markdown fences taken off.
///
/// An empty payload stays one empty line, for it separates what stands around it; emptiness left by a cut does not.
pub(super) fn cut_apart(text: Text) -> Vec<Text> {
    let mut lines = Vec::new();
    let mut start = 0;
    for end in cuts(text.as_str()) {
        lines.extend(trimmed(&text, start, end.at));
        start = end.next;
    }
    lines.extend(trimmed(&text, start, text.as_str().len()));
    if lines.is_empty() && text.as_str().trim().is_empty() {
        lines.push(text);
    }
    lines.into_iter().filter_map(without_fence).collect()
}

/// A cut: where a line ends, and where the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    at: usize,
    next: usize,
}

/// A line between two cuts, unless nothing is left of it. Blanks behind a cut come from the padding of a bar.
fn trimmed(text: &Text, start: usize, end: usize) -> Option<Text> {
    let line = text.as_str().get(start..end)?;
    if line.trim().is_empty() {
        return None;
    }
    if start == 0 && end == text.as_str().len() {
        return Some(text.clone());
    }
    Some(text.part(start..end))
}

/// All cuts, in order.
fn cuts(text: &str) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let unescape = writes_line_feeds_out(text);
    let mut bar = Bar::default();
    for (at, byte) in text.bytes().enumerate() {
        let rest = || text.get(at..).unwrap_or_default();
        let cut = match byte {
            b'\n' | b'\r' => Some(Cut { at, next: at + 1 }),
            b'\\' if written_line_feed(text, at, unescape) => Some(Cut { at, next: at + 2 }),
            b'[' if at > 0 && glued_stamp(text, at) => Some(Cut { at, next: at }),
            b'C' if bar.holds_reading && rest().starts_with("Capturing ") => {
                Some(Cut { at: bar.begin(text, at), next: bar.begin(text, at) })
            }
            b']' if bar.begun && ends_bar(text, at) => Some(Cut { at: at + 1, next: at + 1 }),
            b'%' if rest().starts_with("%|") => {
                bar.begun = true;
                None
            }
            b'a' if rest().starts_with("avail_mem=") => {
                bar.holds_reading = true;
                None
            }
            _ => None,
        };
        if let Some(cut) = cut {
            bar = Bar::default();
            cuts.push(cut);
        }
    }
    cuts
}

/// What has been seen of a progress bar since the last cut.
#[derive(Default)]
struct Bar {
    /// Its `%|`.
    begun: bool,
    /// The memory reading in its description: the description is over.
    holds_reading: bool,
}

impl Bar {
    /// Where the bar begins whose `Capturing` stands at `at`: newer ones have `[BCG] ` before it.
    fn begin(&self, text: &str, at: usize) -> usize {
        let before = text.get(..at).unwrap_or_default();
        at - if before.ends_with("[BCG] ") { "[BCG] ".len() } else { 0 }
    }
}

/// Whether a log prefix begins here that is not quoted.
fn glued_stamp(text: &str, at: usize) -> bool {
    let quoted = text.get(..at).is_some_and(|before| before.ends_with(['\'', '"', '`', '(', '[']));
    !quoted && text.get(at..).is_some_and(|rest| log_stamp(rest).is_ok())
}

/// Whether the `]` here is that of `…it/s]` or `…s/it]`.
fn ends_bar(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| before.ends_with("/s") || before.ends_with("s/it"))
}

/// Whether a whole text had its line feeds written out, and not only some string inside a line: then a table or a log
/// prefix follows one of them. A line of server arguments may hold templates with `\n` of their own.
fn writes_line_feeds_out(text: &str) -> bool {
    let follows = |rest: &str| rest.starts_with(['|', '+']) || log_stamp(rest).is_ok();
    text.contains("\\n") && !text.contains("server_args") && text.split("\\n").skip(1).any(follows)
}

/// Whether a written-out line feed stands here that is one: in a text full of them, or before a log prefix.
fn written_line_feed(text: &str, at: usize, all: bool) -> bool {
    let escaped = text.get(..at).is_some_and(|before| before.ends_with('\\'));
    let rest = text.get(at..).and_then(|rest| rest.strip_prefix("\\n"));
    !escaped && rest.is_some_and(|rest| all || log_stamp(rest).is_ok())
}

/// What is left of a line without the Markdown fences at its ends; `None` where it was nothing else.
fn without_fence(line: Text) -> Option<Text> {
    let string = line.as_str();
    let mut start = 0;
    let mut end = string.len();
    let opened = string.trim_start();
    if let Some(behind) = ["```", "~~~"].iter().find_map(|fence| opened.strip_prefix(fence)) {
        let behind = behind.trim_start_matches(['`', '~']);
        start = end - without_language(behind)?.len();
    }
    if let Some(before) = string.get(start..)?.trim_end().strip_suffix("```") {
        end = start + before.trim_end_matches('`').len();
    }
    if (start, end) == (0, string.len()) {
        return Some(line);
    }
    let left = line.part(start..end);
    (!left.as_str().trim().is_empty()).then_some(left)
}

/// What follows a fence and its language; `None` where nothing does.
fn without_language(behind: &str) -> Option<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '.');
    let rest = behind.trim_start_matches(is_word);
    if rest.trim().is_empty() && !behind.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let language = behind.get(..behind.len() - rest.len())?;
    let known = [
        "bash",
        "sh",
        "shell",
        "console",
        "text",
        "txt",
        "log",
        "logs",
        "plaintext",
        "python",
        "py",
        "json",
        "none",
    ];
    if known.contains(&language.to_ascii_lowercase().as_str()) {
        Some(rest.trim_start())
    } else {
        Some(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(text: &str) -> Vec<String> {
        cut_apart(Text::new(text.to_owned(), 1)).into_iter().map(Text::into_string).collect()
    }

    #[test]
    fn a_log_line_glued_behind_a_bar_is_cut_off() {
        let text = "Capturing batches (bs=32 avail_mem=20.34 GB):   0%|          | 0/8 [00:00<?, ?it/s][2026-11-29 13:49:13 TP1] multimem";
        let cut = cut_apart(Text::new(text.to_owned(), 1));
        assert_eq!(cut[1].as_str(), "[2026-11-29 13:49:13 TP1] multimem");
        assert_eq!(cut[1].column(0), text.find("[2026").unwrap() as u64 + 1);
        assert_eq!(lines("half a line[18:43:27 TP1] other"), ["half a line", "[18:43:27 TP1] other"]);
    }

    #[test]
    fn bars_glued_in_one_line_are_cut_apart() {
        let bar = "Capturing batches (bs=8 avail_mem=20.34 GB):  50%|█████     | 4/8 [00:01<00:01, 2.9it/s]";
        let slow = "Capturing num tokens (num_tokens=8 avail_mem=19.46 GB):   2%|▏   | 1/58 [00:05<05:39,  5.95s/it]";
        assert_eq!(lines(&format!("{bar}{slow}")), [bar, slow]);
        let cut = "Capturing batches (bs=8 avail_mem=20.34 GB):  50%|█";
        let newer = "[BCG] Capturing (num_tokens=8 avail_mem=1.00 GB):";
        assert_eq!(lines(&format!("{cut}{bar}{cut}{newer}")), [cut, bar, cut, newer]);
        let prefixed = format!("[2026-11-29 13:49:13 TP1] {bar}");
        assert_eq!(lines(&prefixed), [prefixed.as_str()]);
    }

    #[test]
    fn written_line_feeds_are_line_feeds_only_where_lines_follow() {
        let text = "[2026-11-29 13:49:13] a\\n[2026-11-29 13:49:14] b\\nc";
        assert_eq!(lines(text), ["[2026-11-29 13:49:13] a", "[2026-11-29 13:49:14] b", "c"]);
        let table = "+---+\\n| NVIDIA-SMI |\\n+---+";
        assert_eq!(lines(table), ["+---+", "| NVIDIA-SMI |", "+---+"]);
        for whole in [
            "server_args=ServerArgs(chat_template='a\\nb', path='C:\\new')",
            "Capture cuda graph failed: x\\nPossible solutions",
            "a\\\\n[2026-11-29 13:49:14] b",
        ] {
            assert_eq!(lines(whole).concat().len(), whole.len(), "{whole}");
            assert!(lines(whole)[0].contains("\\n"), "{whole}");
        }
        let arguments = "server_args={'chat_template': 'a\\nb'}\\n[2026-11-29 13:49:14] b";
        assert_eq!(lines(arguments), ["server_args={'chat_template': 'a\\nb'}", "[2026-11-29 13:49:14] b"]);
    }

    #[test]
    fn fences_are_taken_off_whatever_they_are_glued_to() {
        for fence in ["```", "```bash", "~~~", "````text", "  ```log  "] {
            assert_eq!(lines(fence), Vec::<String>::new(), "{fence:?}");
        }
        assert_eq!(lines("```[2026-11-29 13:49:13] a"), ["[2026-11-29 13:49:13] a"]);
        assert_eq!(lines("```bash [2026-11-29 13:49:13] a"), ["[2026-11-29 13:49:13] a"]);
        assert_eq!(lines("```25-05-07 15:39:13] a"), ["25-05-07 15:39:13] a"]);
        assert_eq!(lines("avail mem=1.00 GB```"), ["avail mem=1.00 GB"]);
    }

    #[test]
    fn quoted_prefixes_and_plain_lines_stay_whole() {
        for text in
            ["", "   ", "say '[2026-11-29 13:49:13] a'", "[2026-11-29 13:49:13] a [1, 2]", "at 5 MB/s] x"]
        {
            assert_eq!(lines(text), [text]);
        }
        assert_eq!(lines("\r  a\r\rb\n"), ["  a", "b"]);
    }

    proptest! {
        #[test]
        fn cutting_never_panics_and_invents_nothing(
            text in "(\\[2026-11-29 13:49:13 TP0\\]|\\\\n|\\[|\\]|Capturing |avail_mem=|%\\||it/s\\]|```|bash|█|a| |\\r|\\n){0,30}",
        ) {
            for line in cut_apart(Text::new(text.clone(), 1)) {
                prop_assert!(text.contains(line.as_str()));
                let at = line.column(0) as usize - 1;
                prop_assert!(text[at..].starts_with(line.as_str()));
            }
        }
    }
}
