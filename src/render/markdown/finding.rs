//! Findings as Markdown: what, the sum, the advice; and the lines they rest on, quoted in a fence.

use super::document::Document;
use super::escape::{fence, inline};
use crate::finding::Finding;
use crate::render::View;
use crate::render::findings::{MOST_LINES, QUOTED, title};
use crate::render::names::counted;
use crate::render::quote::{cut_around, find, shown_source};
use crate::text;

/// Columns of a quoted line: what a ticket shows without scrolling.
const QUOTE: usize = 110;

/// Writes the findings of a launch, each with its evidence below it.
pub(super) fn write(document: &mut Document, view: &View<'_>, launch: &str) {
    for (index, finding) in view.launch.findings.iter().enumerate() {
        let heading = if index == 0 { format!("### Findings{launch}\n\n") } else { String::new() };
        document.block(&format!("finding {}", finding.rule.code), heading + &told(finding));
        let evidence = evidence(view, finding);
        if !evidence.is_empty() {
            document.block(&format!("evidence of {}", finding.rule.code), evidence);
        }
    }
}

fn told(finding: &Finding) -> String {
    let mut text = format!(
        "#### {}: {}\n\n`{}` · `{}`\n",
        finding.severity.name(),
        inline(&title(finding)),
        finding.rule.code,
        finding.rule.name
    );
    if !finding.explanation.is_empty() {
        text.push_str(&format!("\n{}\n", inline(&finding.explanation)));
    }
    let sums: Vec<&String> = finding.arithmetic.iter().filter(|sum| !sum.is_empty()).collect();
    if !sums.is_empty() {
        text.push('\n');
    }
    for sum in sums.iter().take(MOST_LINES) {
        text.push_str(&format!("- {}\n", inline(sum)));
    }
    if sums.len() > MOST_LINES {
        text.push_str(&format!("- … {}\n", counted(sums.len() - MOST_LINES, "more line", "more lines")));
    }
    for advice in finding.advice.iter().take(MOST_LINES) {
        text.push_str(&format!("\n→ {}\n", inline(advice)));
    }
    text
}

/// The lines a finding rests on, carets under the figures. Empty where it has no places.
fn evidence(view: &View<'_>, finding: &Finding) -> String {
    let clean = |words: &str| text::clean(words, false);
    let mut lines = Vec::new();
    for place in finding.places.iter().take(QUOTED) {
        lines.push(clean(&format!("{}:{}:{}", shown_source(place), place.line, place.column)));
        let Some(quote) = find(view.analysis, place) else { continue };
        let (line, carets) = cut_around(&quote, QUOTE, "…", &clean);
        lines.push(format!("  {line}"));
        lines
            .extend(carets.map(|(before, length)| format!("  {}{}", " ".repeat(before), "^".repeat(length))));
    }
    if finding.places.len() > QUOTED {
        lines.push(format!("… {}", counted(finding.places.len() - QUOTED, "more place", "more places")));
    }
    if lines.is_empty() { String::new() } else { fence(&lines) }
}
