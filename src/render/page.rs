//! The page: lines of toned text, laid out to a width, coloured at the very end.
//!
//! The parts of the report write words and tones here and never an escape code; the page cleans every word, keeps every
//! line within the width, and alone decides what a tone looks like.

use crate::text;
use anstyle::{AnsiColor, Style};
use std::fmt::Write;

/// Lines of prose are easier to read when they are not much longer than this.
const WIDEST_PROSE: usize = 100;
/// Below this nothing can be laid out; the report then keeps this width.
const NARROWEST: usize = 60;

/// What a piece of text is, and so how it looks. Colour is for severities only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Running text.
    Plain,
    /// What the eye should find first.
    Strong,
    /// Rules, places, and what only explains.
    Dim,
    /// Checked and in order.
    Good,
    /// A warning.
    Warning,
    /// An error.
    Error,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().bold(),
            Tone::Dim => Style::new().dimmed(),
            Tone::Good => Style::new().bold().fg_color(Some(AnsiColor::Green.into())),
            Tone::Warning => Style::new().bold().fg_color(Some(AnsiColor::Yellow.into())),
            Tone::Error => Style::new().bold().fg_color(Some(AnsiColor::Red.into())),
        }
    }
}

/// A line: pieces of text, each in one tone.
pub(super) type Line = Vec<(Tone, String)>;

/// The report while it is written.
#[derive(Debug)]
pub(super) struct Page {
    width: usize,
    ascii: bool,
    lines: Vec<Line>,
}

impl Page {
    /// An empty page.
    pub(super) fn new(width: usize, ascii: bool) -> Page {
        Page { width: width.max(NARROWEST), ascii, lines: Vec::new() }
    }

    /// The full width, for what should not be wrapped (quoted lines).
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The width of running text.
    pub(super) fn prose(&self) -> usize {
        self.width.min(WIDEST_PROSE)
    }

    /// Words as they may be shown. Layout must measure these, not the raw ones.
    pub(super) fn words(&self, words: &str) -> String {
        text::clean(words, self.ascii)
    }

    /// The sign for text that was cut.
    pub(super) fn ellipsis(&self) -> &'static str {
        if self.ascii { "..." } else { "…" }
    }

    /// Adds an empty line, unless there is one already or the page is empty.
    pub(super) fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Line::new());
        }
    }

    /// Adds a line. What is wider than the page is cut: parts are expected to lay out before.
    pub(super) fn line(&mut self, spans: impl IntoIterator<Item = (Tone, String)>) {
        let mut left = self.width;
        let mut line = Line::new();
        for (tone, words) in spans {
            let mut words = self.words(&words);
            if text::width(&words) > left {
                words = text::cut(&words, left, if left > 3 { self.ellipsis() } else { "" });
            }
            left = left.saturating_sub(text::width(&words));
            line.push((tone, words));
        }
        self.lines.push(line);
    }

    /// Adds running text behind a mark: further lines are indented by the mark's width.
    pub(super) fn prose_behind(&mut self, mark: (Tone, &str), tone: Tone, words: &str) {
        let mark_text = self.words(mark.1);
        let indent = text::width(&mark_text);
        let lines = text::wrap(&self.words(words), self.prose().saturating_sub(indent));
        self.hang((mark.0, mark_text), tone, lines);
    }

    /// Adds a title behind a mark; further lines are indented by two columns only.
    pub(super) fn title_behind(&mut self, mark: (Tone, &str), tone: Tone, words: &str) {
        let mark_text = self.words(mark.1);
        let words = self.words(words);
        let room = self.prose().saturating_sub(text::width(&mark_text));
        let first = text::wrap(&words, room).into_iter().next().unwrap_or_default();
        let rest = words.trim_start().get(first.len()..).unwrap_or_default().to_string();
        self.line([(mark.0, mark_text), (tone, first)]);
        for line in text::wrap(&rest, self.prose().saturating_sub(2)) {
            self.line([(tone, format!("  {line}"))]);
        }
    }

    /// Adds to the end of the last line where there is room, two columns apart, else as a line of its own.
    pub(super) fn append(&mut self, tone: Tone, words: &str, indent: usize) {
        let words = self.words(words);
        let taken: usize = self.lines.last().into_iter().flatten().map(|(_, words)| text::width(words)).sum();
        match self.lines.last_mut() {
            Some(line) if taken + 2 + text::width(&words) <= self.width => {
                line.push((tone, format!("  {words}")))
            }
            _ => self.line([(tone, format!("{}{words}", " ".repeat(indent)))]),
        }
    }

    /// Adds pieces one after the other, ` · ` between them, behind a mark.
    pub(super) fn pieces_behind(&mut self, mark: (Tone, &str), tone: Tone, pieces: &[String]) {
        self.flow_behind(mark, tone, pieces, " · ");
    }

    /// Adds pieces one after the other behind a mark, a separator between them; lines break between pieces.
    pub(super) fn flow_behind(&mut self, mark: (Tone, &str), tone: Tone, pieces: &[String], separator: &str) {
        let mark_text = self.words(mark.1);
        let room = self.width.saturating_sub(text::width(&mark_text));
        let pieces: Vec<String> = pieces.iter().map(|piece| self.words(piece)).collect();
        let lines = text::flow(pieces.iter().map(String::as_str), &self.words(separator), room);
        self.hang((mark.0, mark_text), tone, lines);
    }

    fn hang(&mut self, mark: (Tone, String), tone: Tone, lines: Vec<String>) {
        let indent = " ".repeat(text::width(&mark.1));
        for (index, line) in lines.into_iter().enumerate() {
            let lead = if index == 0 { mark.clone() } else { (Tone::Plain, indent.clone()) };
            self.line([lead, (tone, line)]);
        }
    }

    /// The text of the whole page.
    pub(super) fn finish(mut self, colour: bool) -> String {
        while self.lines.last().is_some_and(Vec::is_empty) {
            self.lines.pop();
        }
        let mut output = String::new();
        for line in &self.lines {
            write_line(&mut output, line, colour);
            output.push('\n');
        }
        output
    }
}

/// Writes a line without the spaces at its end.
fn write_line(output: &mut String, line: &Line, colour: bool) {
    let last = line.iter().rposition(|(_, words)| !words.trim_end().is_empty());
    let Some(last) = last else { return };
    for (index, (tone, words)) in line.iter().take(last + 1).enumerate() {
        let words = if index == last { words.trim_end() } else { words };
        if colour && *tone != Tone::Plain && !words.trim().is_empty() {
            let style = tone.style();
            // Writing to a string cannot fail.
            let _ = write!(output, "{style}{words}{style:#}");
        } else {
            output.push_str(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_the_only_difference_between_the_two_forms() {
        let page = || {
            let mut page = Page::new(60, false);
            page.line([(Tone::Strong, "bold".into()), (Tone::Plain, " and plain   ".into())]);
            page
        };
        assert_eq!(page().finish(false), "bold and plain\n");
        assert_eq!(page().finish(true), "\u{1b}[1mbold\u{1b}[0m and plain\n");
    }

    #[test]
    fn escape_codes_of_the_input_do_not_pass() {
        let mut page = Page::new(60, false);
        page.line([(Tone::Plain, "\u{1b}[2Jgone".into())]);
        assert_eq!(page.finish(true), "\u{FFFD}[2Jgone\n");
    }

    #[test]
    fn text_hangs_behind_its_mark() {
        let mut page = Page::new(60, false);
        page.pieces_behind((Tone::Dim, "> "), Tone::Plain, &["a".repeat(40), "b".repeat(30)]);
        assert_eq!(page.finish(false), format!("> {} ·\n  {}\n", "a".repeat(40), "b".repeat(30)));
    }
}
