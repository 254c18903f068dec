//! One launch: what matters, the pictures, the books, the findings, the lines.

use super::log::Log;
use super::tables::table;
use super::{Shown, class, figures, findings};
use crate::render::key_figures::poorest_rank;
use crate::render::svg::{self, Chart, legend};
use crate::render::{View, balance, bridge, entries, header, ledger, verdict};
use maud::{Markup, html};

/// Columns of a row's name.
const NAME: usize = 48;
/// How each picture is to be read.
const CLAIM: &str = "The thin line below a bar is the log's own usage figure.";
const ODD: &str = "▲ marks ranks that a finding names or that differ from the most.";
const DOTS: &str =
    "A dot is a printed figure. Capture bars print no time: theirs are spread evenly over the capture.";
const AGREES: &str = "What ends at the same place agrees.";

/// The section of a launch. Its parts carry the launch's number in their ids.
pub(super) fn launch(view: &View<'_>, several: bool) -> Markup {
    let number = view.index + 1;
    let title = if several { verdict::origin(view.launch) } else { "Launch".to_string() };
    let log = Log::of(view);
    let rank = poorest_rank(view);
    html! {
        section id={ "launch-" (number) } {
            h2 { @if several { "Launch " (number) ": " } (Shown(&title)) }
            (facts(view))
            (figures(view))
            (findings::list(view))
            (picture(svg::waterfall(view, rank, &format!("waterfall-{number}")), CLAIM))
            (ledgers(view))
            (picture(svg::ranks(view, &format!("ranks-{number}")), ODD))
            (timeline(view, rank))
            (bridges(view, rank))
            (findings::findings(view, &log))
            (log.section())
        }
    }
}

fn facts(view: &View<'_>) -> Markup {
    let mut lines = vec![header::name(view), header::layout(view)];
    lines.extend(header::devices(view));
    html! { div.facts { @for line in &lines { p { (Shown(&line.join(" · "))) } } } }
}

/// A chart with its colours in words.
fn picture(chart: Option<Chart>, hint: &str) -> Markup {
    html! {
        @if let Some(chart) = chart {
            figure {
                h3 { (Shown(&chart.title)) }
                (svg::inline(&chart))
                figcaption { (legend(chart.kinds())) p.dim { (hint) " Point at a bar for its exact figures." } }
            }
        }
    }
}

fn timeline(view: &View<'_>, rank: usize) -> Markup {
    let drawn = svg::timeline(view, rank, &format!("timeline-{}", view.index + 1));
    html! {
        @if let Some((title, curve, kinds)) = drawn {
            figure {
                h3 { (Shown(&title)) }
                (curve)
                figcaption {
                    (legend(kinds))
                    p.dim { (DOTS) }
                }
            }
        }
    }
}

fn ledgers(view: &View<'_>) -> Markup {
    let (tables, others) = ledger::groups(view, false);
    html! {
        @if !tables.is_empty() {
            h3 { "Ledger" }
            @for group in &tables { (ledger_of(view, group)) }
            @if let Some(remark) = ledger::tolerance_remark(view) { p.dim { (Shown(&remark)) } }
            @if !others.is_empty() {
                @let (sheet, remarks) = ledger::further(view, &others);
                (table(&sheet, "Further ranks"))
                p.dim { (Shown(&remarks.join(" · "))) }
            }
        }
    }
}

fn ledger_of(view: &View<'_>, group: &[usize]) -> Markup {
    let Some(first) = group.first().copied() else { return Markup::default() };
    let caption = ledger::caption_words(view, group);
    let caption = caption.map_or_else(|| "Each stage and gap".to_string(), |(names, agree)| names + &agree);
    let rows = entries::entries(view, group);
    if rows.is_empty() {
        return html! { p { (Shown(&caption)) ": " (ledger::NO_FIGURE) } };
    }
    let (whole, of) = ledger::whole(view, first);
    let sheet = ledger::of_entries(rows, whole, of, &|entry| entry.name(NAME), &ledger::percent);
    let balance = view.ledger(first).and_then(balance::told);
    let absent = entries::absent(view, first);
    html! {
        (table(&sheet, &caption))
        @match balance {
            Some(told) => p.balance {
                "Balance: " span.sum { (Shown(&told.sum.join(" "))) } " "
                strong class=(if told.broken.is_none() { "good" } else { "error" }) { (told.outcome()) }
                @if let Some(broken) = &told.broken { " " (Shown(broken)) }
            },
            None => p.dim { (balance::TOO_FEW) },
        }
        @if !absent.is_empty() { p.dim { (Shown(&absent.join(" · "))) } }
    }
}

fn bridges(view: &View<'_>, rank: usize) -> Markup {
    let (told, more) = bridge::told(view, false);
    html! {
        (picture(svg::bridge(view, rank, &format!("bridge-{}", view.index + 1)), AGREES))
        @if told.is_empty() && !view.launch.ledgers.is_empty() {
            h3 { "Log against the driver's figures" }
            p.dim { (Shown(bridge::nothing_to_compare(view.analysis))) }
        }
        @for one in &told {
            (table(&one.sheet, "From the card to what the instrument calls used"))
            p { strong class=(class(one.tone)) { (one.verdict) } " " (Shown(&one.why)) }
            @for (device, pieces) in &one.processes {
                p { "on " (Shown(device)) ": " (Shown(&pieces.join(" · "))) }
            }
            @for note in &one.notes { p.dim { "note: " (Shown(note)) } }
        }
        @if more > 0 { p.dim { (more) " more bridges differ from these" } }
    }
}
