//! The first line: is anything wrong, and what. One line for each launch.

use super::page::{Page, Tone};
use crate::analysis::{Analysis, LaunchAnalysis, SourceKind};
use crate::finding::Severity;

/// Writes the verdict lines.
pub(super) fn write(page: &mut Page, analysis: &Analysis) {
    if analysis.launches.is_empty() {
        return without_launch(page, analysis);
    }
    let several = analysis.launches.len() > 1;
    for launch in &analysis.launches {
        let verdict = launch.verdict();
        let (sign, tone) = sign(launch, verdict.healthy);
        let mut pieces = verdict.phrases;
        if several {
            pieces.insert(0, origin(launch));
        }
        page.pieces_behind((tone, sign), Tone::Strong, &pieces);
    }
}

fn sign(launch: &LaunchAnalysis, healthy: bool) -> (&'static str, Tone) {
    let worst = launch.findings.iter().map(|finding| finding.severity).max();
    match (healthy, worst) {
        (true, _) => ("✔ ", Tone::Good),
        (false, Some(Severity::Error)) => ("✘ ", Tone::Error),
        (false, _) => ("▲ ", Tone::Warning),
    }
}

/// Where a launch stands: its source and lines.
pub(super) fn origin(launch: &LaunchAnalysis) -> String {
    let facts = &launch.launch;
    let source = if &*facts.source == "-" { "standard input" } else { &facts.source };
    let stream = if facts.stream.is_empty() { String::new() } else { format!(" {}", facts.stream) };
    format!("{source}{stream}, lines {}–{}", facts.first_line, facts.last_line)
}

fn without_launch(page: &mut Page, analysis: &Analysis) {
    if !analysis.observations.is_empty() {
        let words = "no SGLang log in the input: only what the driver said, nothing to hold it against";
        return page.prose_behind((Tone::Warning, "▲ "), Tone::Strong, words);
    }
    let words = match analysis.sources.as_slice() {
        [] => "nothing was read",
        [one] if one.bytes == 0 => "the input is empty",
        sources if sources.iter().all(|source| source.kind == SourceKind::Unknown) => {
            "neither an SGLang log nor a memory dump in the input"
        }
        _ => "no start-up of a server in the input",
    };
    page.prose_behind((Tone::Error, "✘ "), Tone::Strong, words);
}
