//! The findings, in the manner of a compiler: what, where, the sum, the advice.

use super::names::counted;
use super::page::{Page, Tone};
use super::{View, quote};
use crate::finding::{Finding, Severity};

/// So many places are quoted for a finding.
pub(super) const QUOTED: usize = 3;
/// So many sums and pieces of advice are shown; the JSON report has all.
pub(super) const MOST_LINES: usize = 12;

/// Writes the findings of one launch, worst first as they come.
pub(super) fn write(page: &mut Page, view: &View<'_>) {
    for finding in &view.launch.findings {
        page.gap();
        one(page, view, finding);
    }
}

fn one(page: &mut Page, view: &View<'_>, finding: &Finding) {
    let mark = format!("{}[{}] ", finding.severity.name(), finding.rule.name);
    let title = format!("{} ({})", title(finding), finding.rule.code);
    page.title_behind((tone(finding.severity), &mark), Tone::Strong, &title);
    for place in finding.places.iter().take(QUOTED) {
        quote::write(page, view.analysis, place);
    }
    if finding.places.len() > QUOTED {
        let more = counted(finding.places.len() - QUOTED, "more place", "more places");
        page.line([(Tone::Dim, format!("  … {more}"))]);
    }
    if !finding.explanation.is_empty() {
        page.prose_behind((Tone::Plain, "  "), Tone::Plain, &finding.explanation);
    }
    let sums = finding.arithmetic.iter().filter(|sum| !sum.is_empty());
    for sum in sums.take(MOST_LINES) {
        page.prose_behind((Tone::Dim, "  = "), Tone::Plain, sum);
    }
    if finding.arithmetic.len() > MOST_LINES {
        let more = counted(finding.arithmetic.len() - MOST_LINES, "more line", "more lines");
        page.line([(Tone::Dim, format!("  … {more}"))]);
    }
    for advice in finding.advice.iter().take(MOST_LINES) {
        page.prose_behind((Tone::Strong, "  → "), Tone::Plain, advice);
    }
    page.line([(Tone::Dim, format!("  = explain: vramledger explain {}", finding.rule.code))]);
}

/// A finding's title, its rank in front where the title does not name it.
pub(super) fn title(finding: &Finding) -> String {
    match finding.rank.as_deref().filter(|tag| !tag.is_empty() && !finding.title.contains(*tag)) {
        Some(tag) => format!("{tag}: {}", finding.title),
        None => finding.title.clone(),
    }
}

/// How a severity looks.
pub(super) fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Error,
        Severity::Warning => Tone::Warning,
        Severity::Info => Tone::Strong,
        Severity::Ok => Tone::Good,
    }
}
