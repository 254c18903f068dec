//! Everything else that the input held: sources without anything, lines that were not understood, dumps without a log.

use super::TableOptions;
use super::names::counted;
use super::page::{Page, Tone};
use super::sheet::{Align, Note, Sheet, SheetRow};
use crate::analysis::{Analysis, SourceFacts, SourceKind};
use crate::observe::Observation;
use crate::quantity::mib_whole;

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
        for note in analysis.notes.iter().take(MOST_LINES) {
            let words = format!("{}:{}: {}", note.place.source, note.place.line, note.problem);
            page.prose_behind((Tone::Dim, "  note  "), Tone::Dim, &words);
        }
    }
    unrecognised(page, analysis);
}

/// Sources that gave nothing, and what they hold instead.
fn sources(page: &mut Page, analysis: &Analysis) {
    let empty = |source: &&SourceFacts| source.kind == SourceKind::Unknown;
    let silent: Vec<&SourceFacts> = analysis.sources.iter().filter(empty).collect();
    if silent.is_empty() && analysis.sources.iter().all(|source| source.left_out == 0) {
        return;
    }
    page.gap();
    for source in silent.iter().take(MOST_SOURCES) {
        let what = match (&source.found_instead, source.bytes) {
            (Some(instead), _) => format!("no SGLang line and no memory dump: {instead}"),
            (None, 0) => "empty".to_string(),
            (None, _) => format!(
                "no SGLang line and no memory dump in {}",
                counted(usize::try_from(source.lines).unwrap_or(usize::MAX), "line", "lines")
            ),
        };
        page.prose_behind((Tone::Warning, "▲ "), Tone::Plain, &format!("{}: {what}", name(source)));
    }
    if silent.len() > MOST_SOURCES {
        let more = counted(silent.len() - MOST_SOURCES, "more source", "more sources");
        page.line([(Tone::Dim, format!("  … {more} without anything"))]);
    }
    for source in analysis.sources.iter().filter(|source| source.left_out > 0).take(MOST_SOURCES) {
        let lines = counted(usize::try_from(source.left_out).unwrap_or(usize::MAX), "line was", "lines were");
        let words = format!("{}: {lines} left out to bound memory", name(source));
        page.prose_behind((Tone::Warning, "▲ "), Tone::Plain, &words);
    }
}

fn name(source: &SourceFacts) -> &str {
    if &*source.name == "-" { "standard input" } else { &source.name }
}

/// Lines that look like memory and fit nothing. Findings quote those inside a launch; here stand all that there are.
fn unrecognised(page: &mut Page, analysis: &Analysis) {
    let quoted = |line: &crate::analysis::Unrecognised| {
        let findings = analysis.launches.iter().flat_map(|launch| &launch.findings);
        findings
            .filter(|finding| finding.rule.name == "unrecognised-lines")
            .any(|finding| finding.places.contains(&line.place))
    };
    let lines: Vec<_> = analysis.unrecognised.iter().filter(|line| !quoted(line)).collect();
    if lines.is_empty() {
        return;
    }
    page.gap();
    let title =
        counted(lines.len(), "line with memory in it that was", "lines with memory in them that were");
    page.line([(Tone::Strong, format!("{title} not understood"))]);
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

/// A table of what the instruments said of each device.
fn devices(page: &mut Page, observations: &[Observation]) {
    page.gap();
    let titles = ["device", "total", "used", "free", "reserved"];
    let columns = titles
        .into_iter()
        .map(|title| (title.to_string(), if title == "device" { Align::Left } else { Align::Right }));
    let rows = observations.iter().take(MOST_DEVICES).map(device).collect();
    Sheet { columns: columns.collect(), rows }.write(page);
    let mut remarks = vec!["MiB".to_string(), "a dash: not printed".to_string()];
    if observations.len() > MOST_DEVICES {
        remarks.push(format!("{} more samples", observations.len() - MOST_DEVICES));
    }
    page.pieces_behind((Tone::Plain, "  "), Tone::Dim, &remarks);
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
