//! Everything else that the input held: sources without anything, lines that were not understood, dumps without a log.

use super::TableOptions;
use super::names::counted;
use super::page::{Page, Tone};
use super::sheet::{Align, Note, Sheet, SheetRow};
use crate::analysis::{Analysis, SourceFacts, SourceKind, Unrecognised};
use crate::observe::Observation;
use crate::place::Place;
use crate::quantity::mib_whole;
use std::collections::HashSet;

/// So many unrecognised lines, sources and devices are shown; the JSON report has all.
const MOST_LINES: usize = 5;
const MOST_SOURCES: usize = 20;
const MOST_DEVICES: usize = 256;

/// Writes what no launch's report showed.
pub(super) fn write(page: &mut Page, analysis: &Analysis, options: &TableOptions) {
    sources(page, analysis);
    if !options.quiet {
        not_shown_elsewhere(page, analysis);
    }
    if let Some(redaction) = &analysis.redaction {
        page.gap();
        page.prose_behind((Tone::Dim, "redacted: "), Tone::Dim, &redaction.words());
    }
}

/// What no launch, no device table and no finding showed.
fn not_shown_elsewhere(page: &mut Page, analysis: &Analysis) {
    if analysis.launches.is_empty() && !analysis.observations.is_empty() {
        devices(page, &analysis.observations);
    }
    // A bridge shows the notes of its own sample's source; the others stand here.
    let shown = |source: &str| {
        !analysis.launches.is_empty()
            && analysis.observations.iter().any(|sample| *sample.place.source == *source)
    };
    for note in analysis.notes.iter().filter(|note| !shown(&note.place.source)).take(MOST_LINES) {
        let words = format!("{}:{}: {}", note.place.source, note.place.line, note.problem);
        page.prose_behind((Tone::Dim, "  note  "), Tone::Dim, &words);
    }
    unrecognised(page, analysis);
}

/// Sources that gave nothing, and what they hold instead; sources that gave too much.
fn sources(page: &mut Page, analysis: &Analysis) {
    let told = source_remarks(analysis);
    if !told.is_empty() {
        page.gap();
    }
    for words in told {
        page.prose_behind((Tone::Warning, "▲ "), Tone::Plain, &words);
    }
}

/// A sentence for each source that gave nothing or was not kept whole.
pub(super) fn source_remarks(analysis: &Analysis) -> Vec<String> {
    let empty = |source: &&SourceFacts| source.kind == SourceKind::Unknown;
    let silent = analysis.sources.iter().filter(empty);
    let mut told: Vec<String> = silent
        .clone()
        .take(MOST_SOURCES)
        .map(|source| {
            let what = match (&source.found_instead, source.bytes) {
                (Some(instead), _) => format!("no SGLang line and no memory dump: {instead}"),
                (None, 0) => "empty".to_string(),
                (None, _) => format!(
                    "no SGLang line and no memory dump in {}",
                    counted(usize::try_from(source.lines).unwrap_or(usize::MAX), "line", "lines")
                ),
            };
            format!("{}: {what}", name(source))
        })
        .collect();
    let more = silent.count().saturating_sub(MOST_SOURCES);
    if more > 0 {
        told.push(format!("{} without anything", counted(more, "more source", "more sources")));
    }
    let cut = analysis.sources.iter().filter(|source| source.left_out > 0).take(MOST_SOURCES);
    told.extend(cut.map(|source| {
        let lines = counted(usize::try_from(source.left_out).unwrap_or(usize::MAX), "line was", "lines were");
        format!("{}: {lines} left out to bound memory", name(source))
    }));
    told
}

fn name(source: &SourceFacts) -> &str {
    if &*source.name == "-" { "standard input" } else { &source.name }
}

/// Lines that look like memory and fit nothing. Findings quote those inside a launch; here stand all that there are.
fn unrecognised(page: &mut Page, analysis: &Analysis) {
    let lines = unquoted(analysis);
    if lines.is_empty() {
        return;
    }
    page.gap();
    page.line([(Tone::Strong, unrecognised_title(lines.len()))]);
    for line in lines.iter().take(MOST_LINES) {
        page.line([
            (Tone::Dim, format!("  {}:{}  ", line.place.source, line.place.line)),
            (Tone::Plain, line.text.to_string()),
        ]);
    }
    if lines.len() > MOST_LINES {
        page.line([(Tone::Dim, format!("  … {} more", lines.len() - MOST_LINES))]);
    }
}

/// What a list of so many unrecognised lines is called.
pub(super) fn unrecognised_title(lines: usize) -> String {
    let words = counted(lines, "line with memory in it that was", "lines with memory in them that were");
    format!("{words} not understood")
}

/// The unrecognised lines that no finding quotes.
pub(super) fn unquoted(analysis: &Analysis) -> Vec<&Unrecognised> {
    let findings = analysis.launches.iter().flat_map(|launch| &launch.findings);
    let quoted: HashSet<&Place> = findings
        .filter(|finding| finding.rule.name == "unrecognised-lines")
        .flat_map(|finding| &finding.places)
        .collect();
    analysis.unrecognised.iter().filter(|line| !quoted.contains(&line.place)).collect()
}

/// A table of what the instruments said of each device.
fn devices(page: &mut Page, observations: &[Observation]) {
    page.gap();
    let (sheet, remarks) = device_sheet(observations);
    sheet.write(page);
    page.pieces_behind((Tone::Plain, "  "), Tone::Dim, &remarks);
}

/// Devices, their figures and processes; and what is to be said below.
pub(super) fn device_sheet(observations: &[Observation]) -> (Sheet, Vec<String>) {
    let titles = ["device", "total", "used", "free", "reserved"];
    let columns = titles
        .into_iter()
        .map(|title| (title.to_string(), if title == "device" { Align::Left } else { Align::Right }));
    let rows = observations.iter().take(MOST_DEVICES).map(device).collect();
    let mut remarks = vec!["MiB".to_string(), "a dash: not printed".to_string()];
    if observations.len() > MOST_DEVICES {
        remarks.push(format!("{} more samples", observations.len() - MOST_DEVICES));
    }
    (Sheet { columns: columns.collect(), rows }, remarks)
}

fn device(sample: &Observation) -> SheetRow {
    let number = sample.device.map(|device| format!("GPU {device}")).unwrap_or_else(|| "GPU ?".into());
    let mig = sample.mig.map(|mig| {
        let device = mig.device.or(mig.gpu_instance).map(|device| format!(" {device}")).unwrap_or_default();
        format!(" MIG{device}")
    });
    let name = sample.name.as_deref().map(|name| format!("  {name}"));
    let figure =
        |amount: Option<crate::quantity::Quantity>| amount.map_or_else(|| "–".to_string(), mib_whole);
    let cells = vec![
        format!("{number}{}{}", mig.unwrap_or_default(), name.unwrap_or_default()),
        figure(sample.total),
        figure(sample.used),
        figure(sample.free),
        figure(sample.reserved),
    ];
    let notes = sample.processes.iter().take(8).map(|process| Note {
        label: format!(
            "{}{}",
            process.name,
            process.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default()
        ),
        figure: Some((2, figure(process.used))),
        remark: String::new(),
        tone: Tone::Dim,
    });
    SheetRow { cells, tone: Tone::Plain, notes: notes.collect() }
}
