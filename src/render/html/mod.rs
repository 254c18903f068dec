//! The report as one HTML file: tables, pictures and the log lines, without scripts and without anything from elsewhere.
//!
//! Markup is made by maud, which escapes every word; words of the input pass [`Shown`], which cleans them first.

mod findings;
mod launch;
mod log;
mod tables;

use super::key_figures::KeyFigure;
use super::page::Tone;
use super::svg::{STYLE as PICTURES, Shown};
use super::{View, key_figures, rest, verdict};
use crate::analysis::Analysis;
use crate::text;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use tables::table;

/// Type, spacing and colours of the page; those of the pictures stand with the pictures.
const STYLE: &str = include_str!("style.css");

/// The report as a page of its own.
pub fn html(analysis: &Analysis) -> String {
    let views: Vec<View<'_>> = analysis
        .launches
        .iter()
        .enumerate()
        .map(|(index, launch)| View { analysis, index, launch })
        .collect();
    let name = name(analysis);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "vramledger " (env!("CARGO_PKG_VERSION")) };
                // Nothing of the input may load or run anything, whatever else fails.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { "GPU memory: " (Shown(&name)) }
                style { (PreEscaped(PICTURES)) (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "GPU memory" span.of { (Shown(&name)) } }
                    (verdicts(analysis))
                }
                main {
                    @for view in &views { (launch::launch(view, views.len() > 1)) }
                    (others(analysis))
                }
                footer {
                    p {
                        "Made by vramledger " (env!("CARGO_PKG_VERSION"))
                        ". Amounts are MiB; ± is what the prints leave open."
                    }
                }
            }
        }
    };
    format!("{}\n", page.into_string())
}

/// What the page is called: its first source.
fn name(analysis: &Analysis) -> String {
    let sources: Vec<&str> = analysis
        .sources
        .iter()
        .map(|source| if &*source.name == "-" { "standard input" } else { &source.name })
        .collect();
    match sources.as_slice() {
        [] => "nothing read".to_string(),
        [one] => one.to_string(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    }
}

/// The class of a tone.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Warning => "warning",
        Tone::Error => "error",
        Tone::Strong => "strong",
        Tone::Dim => "dim",
        Tone::Plain => "plain",
    }
}

fn verdicts(analysis: &Analysis) -> Markup {
    html! {
        @for line in verdict::lines(analysis) {
            p.verdict.(class(line.tone)) { (line.sign) (Shown(&line.pieces.join(" · "))) }
        }
    }
}

/// The three numbers.
fn figures(view: &View<'_>) -> Markup {
    let shown = |one: &KeyFigure| {
        html! {
            div {
                dt { (Shown(&one.name)) }
                dd { (Shown(&one.figure)) @if !one.remark.is_empty() { span.remark { (Shown(&one.remark)) } } }
            }
        }
    };
    html! { dl.figures { @for one in &key_figures::key_figures(view) { (shown(one)) } } }
}

/// Sources without anything, devices of dumps without a log, lines that were not understood.
fn others(analysis: &Analysis) -> Markup {
    const MOST: usize = 200;
    let remarks = rest::source_remarks(analysis);
    let lines = rest::unquoted(analysis);
    html! {
        @if !remarks.is_empty() {
            section {
                h2 { "Remarks on sources" }
                ul { @for words in &remarks { li { (Shown(words)) } } }
            }
        }
        @if analysis.launches.is_empty() && !analysis.observations.is_empty() {
            @let (sheet, remarks) = rest::device_sheet(&analysis.observations);
            section {
                h2 { "Devices" }
                (table(&sheet, "What the instrument said of each device"))
                p.dim { (Shown(&remarks.join(" · "))) }
            }
        }
        @if !lines.is_empty() {
            section {
                h2 { (rest::unrecognised_title(lines.len())) }
                ul.lines {
                    @for line in lines.iter().take(MOST) {
                        li {
                            span.place { (Shown(&format!("{}:{}", line.place.source, line.place.line))) }
                            code { (Shown(&text::cut(&line.text, 400, "…"))) }
                        }
                    }
                }
            }
        }
    }
}
