//! The first line: is anything wrong, and what. One line for each launch.

use super::page::{Page, Tone};
use crate::analysis::{Analysis, LaunchAnalysis, SourceKind};
use crate::finding::Severity;

/// A verdict: its sign, how that looks, and the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// `✔ `, `▲ ` or `✘ `.
    pub(super) sign: &'static str,
    /// How the sign looks.
    pub(super) tone: Tone,
    /// The phrases.
    pub(super) pieces: Vec<String>,
}

/// Writes the verdict lines.
pub(super) fn write(page: &mut Page, analysis: &Analysis) {
    for line in lines(analysis) {
        match line.pieces.as_slice() {
            [words] => page.prose_behind((line.tone, line.sign), Tone::Strong, words),
            pieces => page.pieces_behind((line.tone, line.sign), Tone::Strong, pieces),
        }
    }
}

/// One line a launch; one line where there is none.
pub(super) fn lines(analysis: &Analysis) -> Vec<Line> {
    if analysis.launches.is_empty() {
        return vec![without_launch(analysis)];
    }
    let several = analysis.launches.len() > 1;
    let line = |launch: &LaunchAnalysis| {
        let mut line = of_launch(launch);
        if several {
            line.pieces.insert(0, origin(launch));
        }
        line
    };
    analysis.launches.iter().map(line).collect()
}

/// The verdict on one launch.
pub(super) fn of_launch(launch: &LaunchAnalysis) -> Line {
    let verdict = launch.verdict();
    let (sign, tone) = sign(launch, verdict.healthy);
    Line { sign, tone, pieces: verdict.phrases }
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

fn without_launch(analysis: &Analysis) -> Line {
    let line = |sign, tone, words: &str| Line { sign, tone, pieces: vec![words.to_string()] };
    if !analysis.observations.is_empty() {
        let words = "no SGLang log in the input: only what the driver said, nothing to hold it against";
        return line("▲ ", Tone::Warning, words);
    }
    let words = match analysis.sources.as_slice() {
        [] => "nothing was read",
        [one] if one.bytes == 0 => "the input is empty",
        sources if sources.iter().all(|source| source.kind == SourceKind::Unknown) => {
            "neither an SGLang log nor a memory dump in the input"
        }
        _ => "no start-up of a server in the input",
    };
    line("✘ ", Tone::Error, words)
}
