//! Quoted evidence: a log line, cut around the figure that matters, with carets under it.

use super::page::{Page, Tone};
use crate::analysis::{Analysis, Quote};
use crate::place::Place;
use crate::text;
use std::sync::Arc;

/// Columns in front of a quoted line.
const FRAME: usize = 4;

/// Writes one place and, where it is known, its line; places in dumps have none.
pub(super) fn write(page: &mut Page, analysis: &Analysis, place: &Place) {
    page.line([(Tone::Dim, format!("  ┌ {}:{}:{}", shown_source(place), place.line, place.column))]);
    let Some(quote) = find(analysis, place) else { return };
    let (line, carets) = excerpt(page, &quote);
    page.line([(Tone::Dim, "  │ ".into()), (Tone::Plain, line)]);
    if let Some((before, length)) = carets {
        let marks = format!("{}{}", " ".repeat(before), "^".repeat(length));
        page.line([(Tone::Dim, "  │ ".into()), (Tone::Strong, marks)]);
    }
}

/// The line that a place stands in, known to the grammar or not.
pub(super) fn find(analysis: &Analysis, place: &Place) -> Option<Quote> {
    let unknown = || {
        let line = analysis.unrecognised.iter().find(|line| line.place == *place)?;
        Some(Quote { text: Arc::clone(&line.text), start: None, length: 0 })
    };
    analysis.quote(place).or_else(unknown)
}

/// The source of a place as reports name it.
pub(super) fn shown_source(place: &Place) -> &str {
    if &*place.source == "-" { "standard input" } else { &place.source }
}

/// The part of the line that fits, and columns before and under the figure in it.
fn excerpt(page: &Page, quote: &Quote) -> (String, Option<(usize, usize)>) {
    cut_around(quote, page.width().saturating_sub(FRAME), page.ellipsis(), &|words| page.words(words))
}

/// The part of a quoted line that fits into `room` columns, and columns before and under the figure in it. `words` cleans.
pub(super) fn cut_around(
    quote: &Quote,
    room: usize,
    ellipsis: &str,
    words: &dyn Fn(&str) -> String,
) -> (String, Option<(usize, usize)>) {
    let figure = quote.start.and_then(|start| {
        let end = start.checked_add(quote.length)?;
        Some((quote.text.get(..start)?, quote.text.get(start..end)?, quote.text.get(end..)?))
    });
    let Some((before, figure, after)) = figure else {
        return (text::cut(&words(&quote.text), room, ellipsis), None);
    };
    // Cleaning changes lengths, so the three pieces are cleaned apart.
    let [before, figure, after] = [before, figure, after].map(words);
    let figure = text::cut(&figure, room / 2, ellipsis);
    let left = room - text::width(&figure);
    // What stands before the figure names it; what follows is worth a quarter of the line, or what is left over.
    let (all_before, all_after) = (text::width(&before), text::width(&after));
    let for_after = all_after.min((left / 4).max(left.saturating_sub(all_before)));
    let before = text::cut_front(&before, left - for_after, ellipsis);
    let after = text::cut(&after, left.saturating_sub(text::width(&before)), ellipsis);
    let carets = (text::width(&before), text::width(&figure).max(1));
    (format!("{before}{figure}{after}"), Some(carets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str, figure: &str) -> (String, String) {
        let quote = Quote { text: text.into(), start: text.find(figure), length: figure.len() };
        let (line, carets) = excerpt(&Page::new(60, false), &quote);
        let (before, length) = carets.unwrap();
        (line, format!("{}{}", " ".repeat(before), "^".repeat(length)))
    }

    #[test]
    fn a_short_line_is_quoted_whole() {
        let (line, carets) = quoted("Load weight begin. avail mem=139.13 GB", "139.13 GB");
        assert_eq!(line, "Load weight begin. avail mem=139.13 GB");
        assert_eq!(carets, "                             ^^^^^^^^^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_figure() {
        let text = format!("{}available_gpu_mem=19.31 GB{}", "a=1, ".repeat(40), ", b=2".repeat(40));
        let (line, carets) = quoted(&text, "19.31 GB");
        assert!(line.starts_with('…') && line.ends_with('…') && text::width(&line) <= 56, "{line}");
        let at = carets.find('^').unwrap();
        let shown: String = line.chars().skip(at).take(8).collect();
        assert_eq!(shown, "19.31 GB");
    }

    #[test]
    fn wide_and_hostile_characters_do_not_move_the_carets() {
        let (line, carets) = quoted("模型\u{1b}\u{202E} mem=1 GB", "1 GB");
        assert_eq!(line, "模型\u{FFFD} mem=1 GB");
        assert_eq!(carets.find('^'), Some(text::width("模型\u{FFFD} mem=")));
    }
}
