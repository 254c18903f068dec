//! Findings: a list at the top that leads to each, and each with its evidence, which leads to its log lines.

use super::log::Log;
use super::{Shown, class};
use crate::analysis::Quote;
use crate::finding::Finding;
use crate::place::Place;
use crate::render::View;
use crate::render::findings::{MOST_LINES, QUOTED, title, tone};
use crate::render::names::counted;
use crate::render::quote::{cut_around, find, shown_source};
use crate::text;
use maud::{Markup, html};

/// Columns of a quoted line.
const QUOTE: usize = 200;

/// The id of a finding.
pub(super) fn id(view: &View<'_>, index: usize) -> String {
    format!("finding-{}-{}", view.index + 1, index + 1)
}

/// All findings of a launch as links.
pub(super) fn list(view: &View<'_>) -> Markup {
    let findings = &view.launch.findings;
    html! {
        @if !findings.is_empty() {
            ul.findings aria-label="Findings" {
                @for (index, finding) in findings.iter().enumerate() {
                    li {
                        span.badge.(class(tone(finding.severity))) { (finding.severity.name()) } " "
                        a href={ "#" (id(view, index)) } { (Shown(&title(finding))) }
                    }
                }
            }
        }
    }
}

/// The findings in full.
pub(super) fn findings(view: &View<'_>, log: &Log<'_>) -> Markup {
    html! {
        @if !view.launch.findings.is_empty() {
            h3 { "Findings" }
            @for (index, finding) in view.launch.findings.iter().enumerate() { (one(view, log, index, finding)) }
        }
    }
}

fn one(view: &View<'_>, log: &Log<'_>, index: usize, finding: &Finding) -> Markup {
    let sums: Vec<&String> = finding.arithmetic.iter().filter(|sum| !sum.is_empty()).collect();
    html! {
        article.finding.(class(tone(finding.severity))) id=(id(view, index)) {
            h4 {
                span.badge.(class(tone(finding.severity))) { (finding.severity.name()) } " "
                (Shown(&title(finding)))
                span.code { (finding.rule.code) " " (finding.rule.name) }
            }
            @if !finding.explanation.is_empty() { p { (Shown(&finding.explanation)) } }
            @for place in finding.places.iter().take(QUOTED) { (evidence(view, log, place)) }
            @if finding.places.len() > QUOTED {
                p.dim { "… " (counted(finding.places.len() - QUOTED, "more place", "more places")) }
            }
            @if !sums.is_empty() {
                ul.sums { @for sum in sums.iter().take(MOST_LINES) { li { (Shown(sum)) } } }
                @if sums.len() > MOST_LINES {
                    p.dim { "… " (counted(sums.len() - MOST_LINES, "more line", "more lines")) }
                }
            }
            @for advice in finding.advice.iter().take(MOST_LINES) { p.advice { (Shown(advice)) } }
        }
    }
}

/// One figure that a finding rests on: where, a link if its line is below, and the line with the figure marked.
fn evidence(view: &View<'_>, log: &Log<'_>, place: &Place) -> Markup {
    let position = format!("{}:{}:{}", shown_source(place), place.line, place.column);
    html! {
        div.evidence {
            @match log.anchor(place) {
                Some(anchor) => a.place href={ "#" (anchor) } { (Shown(&position)) },
                None => span.place { (Shown(&position)) },
            }
            @if let Some(quote) = find(view.analysis, place) { pre { (marked(&quote)) } }
        }
    }
}

/// A quoted line, its figure marked.
fn marked(quote: &Quote) -> Markup {
    let clean = |words: &str| text::clean(words, false);
    let (line, figure) = cut_around(quote, QUOTE, "…", &clean);
    let parts = figure.map(|(before, length)| {
        let (head, rest) = text::split_at_width(&line, before);
        let (figure, tail) = text::split_at_width(rest, length);
        (head, figure, tail)
    });
    html! {
        @match parts {
            Some((head, figure, tail)) => { (Shown(head)) mark { (Shown(figure)) } (Shown(tail)) },
            None => (Shown(&line)),
        }
    }
}
