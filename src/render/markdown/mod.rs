//! The report as Markdown, for tickets and chats: GitHub's tables, readable as plain text too.
//!
//! The document is a list of blocks in the order of what matters, so that a limit on its size can drop from the bottom.

mod document;
mod escape;
mod finding;
mod table;

use super::key_figures::key_figures;
use super::names::counted;
use super::{View, balance, bridge, entries, header, ledger, rest, verdict};
use crate::analysis::Analysis;
use crate::finding::Severity;
use document::Document;
use escape::{fence, inline};
use table::table;

/// Columns of a row's name, so that tables stay narrow enough for a ticket.
const NAME: usize = 48;

/// The report as Markdown. With `most`, at most so many characters: detail goes from the bottom, and the end says what.
pub fn markdown(analysis: &Analysis, most: Option<usize>) -> String {
    let mut document = Document::default();
    for line in verdict::lines(analysis) {
        document.always(format!("**{}{}**\n", line.sign, sentence(&line.pieces)));
    }
    let views: Vec<View<'_>> = analysis
        .launches
        .iter()
        .enumerate()
        .map(|(index, launch)| View { analysis, index, launch })
        .collect();
    for view in &views {
        summary(&mut document, view, views.len() > 1);
    }
    for view in &views {
        let name = if views.len() > 1 { format!(", launch {}", view.index + 1) } else { String::new() };
        ledgers(&mut document, view, &name);
        bridges(&mut document, view, &name);
        finding::write(&mut document, view, &name);
    }
    others(&mut document, analysis);
    document.finish(most)
}

fn sentence(pieces: &[String]) -> String {
    pieces.iter().map(|piece| inline(piece)).collect::<Vec<_>>().join(" · ")
}

/// Who and what, the three numbers, and what needs attention.
fn summary(document: &mut Document, view: &View<'_>, several: bool) {
    if several {
        document.always(format!("## Launch {}: {}\n", view.index + 1, inline(&verdict::origin(view.launch))));
    }
    let figures = key_figures(view);
    let cells = |cell: &dyn Fn(&super::key_figures::KeyFigure) -> String| {
        figures.iter().map(cell).collect::<Vec<_>>().join(" | ")
    };
    let figure = |one: &super::key_figures::KeyFigure| {
        let remark =
            if one.remark.is_empty() { String::new() } else { format!(" ({})", inline(&one.remark)) };
        format!("**{}**{remark}", inline(&one.figure))
    };
    document.always(format!(
        "| {} |\n| --- | --- | --- |\n| {} |\n",
        cells(&|one| inline(&one.name)),
        cells(&figure)
    ));
    let mut facts = vec![header::name(view), header::layout(view)];
    facts.extend(header::devices(view));
    let facts: Vec<String> = facts.iter().map(|pieces| format!("- {}\n", sentence(pieces))).collect();
    document.always(facts.concat());
    let pressing: Vec<String> = view
        .launch
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Warning)
        .map(|finding| {
            let title = inline(&super::findings::title(finding));
            format!("- **{}** {title} ({})\n", finding.severity.name(), finding.rule.code)
        })
        .collect();
    if !pressing.is_empty() {
        document.always(format!("Needs attention:\n\n{}", pressing.concat()));
    }
}

fn ledgers(document: &mut Document, view: &View<'_>, launch: &str) {
    if view.launch.ledgers.is_empty() {
        return;
    }
    let (tables, others) = ledger::groups(view, false);
    for (index, group) in tables.iter().enumerate() {
        let Some(first) = group.first().copied() else { continue };
        let mut text = if index == 0 { format!("### Ledger{launch}\n\n") } else { String::new() };
        if let Some((names, agree)) = ledger::caption_words(view, group) {
            text.push_str(&format!("**{}**{}\n\n", inline(&names), inline(&agree).replacen('·', " ·", 1)));
        }
        let rows = entries::entries(view, group);
        if rows.is_empty() {
            text.push_str(&format!("{}\n", ledger::NO_FIGURE));
        } else {
            let (whole, of) = ledger::whole(view, first);
            let sheet = ledger::of_entries(rows, whole, of, &|entry| entry.name(NAME), &ledger::percent);
            text.push_str(&table(&sheet));
            text.push_str(&format!("\nBalance: {}\n", balance_words(view, first)));
            let absent = entries::absent(view, first);
            if !absent.is_empty() {
                text.push_str(&format!("\n{}\n", sentence(&absent)));
            }
        }
        document.block(&format!("the ledger{launch}"), text);
    }
    if let Some(remark) = ledger::tolerance_remark(view) {
        document.remark(format!("MiB; {}\n", inline(&remark)));
    }
    if !others.is_empty() {
        let (sheet, remarks) = ledger::further(view, &others);
        document.block("further ranks", format!("{}\n{}\n", table(&sheet), sentence(&remarks)));
    }
}

fn balance_words(view: &View<'_>, rank: usize) -> String {
    let Some(told) = view.ledger(rank).and_then(balance::told) else { return balance::TOO_FEW.into() };
    let broken = told.broken.as_deref().map(|broken| format!(" {}", inline(broken))).unwrap_or_default();
    format!("{} **{}**{broken}", inline(&told.sum.join(" ")), told.outcome())
}

fn bridges(document: &mut Document, view: &View<'_>, launch: &str) {
    let (told, more) = bridge::told(view, false);
    if told.is_empty() && !view.launch.ledgers.is_empty() {
        document.remark(format!("{}\n", inline(bridge::nothing_to_compare(view.analysis))));
    }
    for (index, one) in told.iter().enumerate() {
        let mut text = if index == 0 {
            format!("### Log against the driver's figures{launch}\n\n")
        } else {
            String::new()
        };
        text.push_str(&table(&one.sheet));
        text.push_str(&format!("\n**{}** {}\n", one.verdict, inline(&one.why)));
        for (device, pieces) in &one.processes {
            text.push_str(&format!("\non {}: {}\n", inline(device), sentence(pieces)));
        }
        for note in &one.notes {
            text.push_str(&format!("\nnote: {}\n", inline(note)));
        }
        document.block(&format!("the bridge{launch}"), text);
    }
    if more > 0 {
        document.remark(format!("{more} more bridges differ from these\n"));
    }
}

/// Sources without anything, devices of dumps without a log, lines that were not understood.
fn others(document: &mut Document, analysis: &Analysis) {
    let remarks = rest::source_remarks(analysis);
    if !remarks.is_empty() {
        let lines: Vec<String> = remarks.iter().map(|words| format!("- {}\n", inline(words))).collect();
        document.block("remarks on sources", lines.concat());
    }
    if analysis.launches.is_empty() && !analysis.observations.is_empty() {
        let (sheet, remarks) = rest::device_sheet(&analysis.observations);
        document.block("the devices", format!("{}\n{}\n", table(&sheet), sentence(&remarks)));
    }
    let lines = rest::unquoted(analysis);
    if !lines.is_empty() {
        const MOST: usize = 50;
        let mut quoted: Vec<String> = lines
            .iter()
            .take(MOST)
            .map(|line| {
                let words = format!("{}:{}  {}", line.place.source, line.place.line, line.text);
                crate::text::cut(&crate::text::clean(&words, false), 200, "…")
            })
            .collect();
        if lines.len() > MOST {
            quoted.push(format!("… {}", counted(lines.len() - MOST, "more line", "more lines")));
        }
        let title = rest::unrecognised_title(lines.len());
        document.block("lines that were not understood", details(&title, &fence(&quoted)));
    }
}

/// A part that is folded in where `<details>` is known, and readable where it is not.
fn details(title: &str, text: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n\n{text}\n</details>\n", inline(title))
}
