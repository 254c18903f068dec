//! The answer to a what-if, for a terminal: what to set, before and after by term, requests, and what to mind.

use super::page::{Page, Tone};
use super::sheet::{Align, Sheet, SheetRow};
use crate::analysis::LaunchAnalysis;
use crate::budget::plan::{Answer, Projection};
use crate::quantity::{Quantity, group_digits, mib_text, signed_mib_text};

/// The answer as text.
pub fn plan(launch: &LaunchAnalysis, answer: &Answer, width: usize, ascii: bool) -> String {
    let mut page = Page::new(width, ascii);
    headline(&mut page, launch, answer);
    page.gap();
    terms(&mut page, answer);
    if !answer.concurrency.is_empty() {
        page.gap();
        concurrency(&mut page, answer);
    }
    page.gap();
    for risk in &answer.risks {
        page.prose_behind((Tone::Warning, "! "), Tone::Plain, risk);
    }
    for assumption in &answer.after.assumptions {
        page.prose_behind((Tone::Dim, "· "), Tone::Dim, assumption);
    }
    page.finish(true)
}

fn headline(page: &mut Page, launch: &LaunchAnalysis, answer: &Answer) {
    let flags = if answer.flags.is_empty() { "no change".to_string() } else { answer.flags.join(" ") };
    page.title_behind((Tone::Plain, ""), Tone::Strong, &flags);
    let gives = if answer.after.starts() {
        let (low, high) = answer.after.tokens;
        let left =
            answer.after.remaining.map(|left| format!(", {} MiB remain", mib_text(left))).unwrap_or_default();
        format!("gives {} tokens{left}", range(low, high))
    } else {
        "does not start: nothing is left for KV".to_string()
    };
    let source = format!("projected from {}, SGLang {}", launch.launch.source, launch.launch.versions);
    page.prose_behind((Tone::Plain, ""), Tone::Plain, &gives);
    page.prose_behind((Tone::Plain, ""), Tone::Dim, &source);
}

fn range(low: i128, high: i128) -> String {
    if low == high { group_digits(low) } else { format!("{} to {}", group_digits(low), group_digits(high)) }
}

fn terms(page: &mut Page, answer: &Answer) {
    let columns =
        [("MiB", Align::Left), ("before", Align::Right), ("after", Align::Right), ("change", Align::Right)];
    let (before, after) = (&answer.before, &answer.after);
    let mut rows = vec![words("mem_fraction_static", fraction(before), fraction(after))];
    let mut amount = |name: &str, of: &dyn Fn(&Projection) -> Option<Quantity>| {
        rows.extend(of(before).zip(of(after)).map(|(before, after)| amounts(name, before, after)));
    };
    amount("pre: free before the weights", &|one| Some(one.baseline));
    amount("weights", &|one| one.weights);
    amount("free when the pool is sized", &|one| Some(one.available));
    amount("slack", &|one| Some(one.slack));
    amount("left for KV", &|one| Some(one.rest));
    amount("KV cache", &|one| Some(one.kv));
    amount("beside KV in the pool", &|one| one.overhead);
    amount("decode graphs", &|one| one.decode_graphs);
    amount("prefill graphs", &|one| one.prefill_graphs);
    amount("other", &|one| Some(one.other));
    amount("remaining", &|one| one.remaining);
    rows.push(words("bytes a token", cell(before), cell(after)));
    rows.push(words(
        "tokens",
        range(before.tokens.0, before.tokens.1),
        range(after.tokens.0, after.tokens.1),
    ));
    let columns = columns.map(|(title, align)| (title.to_string(), align)).into();
    Sheet { columns, rows }.write(page);
}

fn fraction(projection: &Projection) -> String {
    let value = projection.fraction.to_f64();
    if projection.fraction_is_default { format!("{value} (default)") } else { value.to_string() }
}

fn cell(projection: &Projection) -> String {
    let (low, high) = projection.cell.bounds();
    range(low, high)
}

fn amounts(name: &str, before: Quantity, after: Quantity) -> SheetRow {
    // The same figure twice is no change, however coarse it is.
    let change = if before == after {
        String::new()
    } else {
        signed_mib_text(Quantity::exact(after.midpoint() - before.midpoint()))
    };
    row(name, mib_text(before), mib_text(after), change)
}

fn words(name: &str, before: String, after: String) -> SheetRow {
    row(name, before, after, String::new())
}

fn row(name: &str, before: String, after: String, change: String) -> SheetRow {
    SheetRow { cells: vec![name.to_string(), before, after, change], tone: Tone::Plain, notes: Vec::new() }
}

fn concurrency(page: &mut Page, answer: &Answer) {
    let columns =
        [("requests at once, of tokens", Align::Left), ("before", Align::Right), ("after", Align::Right)];
    let rows = answer.concurrency.iter().map(|one| SheetRow {
        cells: vec![group_digits(one.length), group_digits(one.before), group_digits(one.after)],
        tone: Tone::Plain,
        notes: Vec::new(),
    });
    let columns = columns.map(|(title, align)| (title.to_string(), align)).into();
    Sheet { columns, rows: rows.collect() }.write(page);
}
