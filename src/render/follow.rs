//! A start as it goes on: one line for each entry of a ledger, and what is still to come.

use super::names::{duration, posting_name, stage_name};
use crate::analysis::LaunchAnalysis;
use crate::launch::{Expectation, Outcome, expectation};
use crate::ledger::{Ledger, PostingState};
use crate::quantity::{mib_text, mib_whole};
use crate::stage::{Stage, Worker};
use crate::text;

/// Stages in the order in which most releases run them, for what is still to come.
const ORDER: [Stage; 6] = [
    Stage::DistributedInit,
    Stage::Weights,
    Stage::KvCache,
    Stage::GraphDecode,
    Stage::GraphPrefill,
    Stage::GraphDraft,
];

/// The lines of a rank's ledger from entry `from` on, up to the first that is not complete; and how many entries they are.
pub fn new_entries(launch: &LaunchAnalysis, rank: usize, from: usize) -> (Vec<String>, usize) {
    let Some(ledger) = launch.ledgers.get(rank) else { return (Vec::new(), 0) };
    let tag = launch.launch.ranks.get(rank).map(|rank| rank.tag.text.as_str()).unwrap_or_default();
    let complete =
        ledger.postings.iter().skip(from).take_while(|posting| posting.state != PostingState::Begun);
    let lines: Vec<String> = complete
        .map(|posting| {
            let used = posting.used.or(posting.claimed).map_or_else(|| "?".into(), mib_text);
            let free =
                posting.after.map(|after| format!(", {} MiB free", mib_whole(after))).unwrap_or_default();
            let lead = if tag.is_empty() { String::new() } else { format!("{tag}  ") };
            text::clean(&format!("{lead}{}  {used} MiB{free}", posting_name(posting)), false)
        })
        .collect();
    let count = lines.len();
    (lines, count)
}

/// What goes on and what is still to come, in one line.
pub fn outlook(launch: &LaunchAnalysis, elapsed: f64, usual: Option<f64>) -> String {
    let now = launch.ledgers.iter().find_map(unfinished).map(|stage| format!("{}…", stage_name(stage)));
    let to_come: Vec<&str> = match launch.launch.outcome {
        Outcome::Incomplete => expected(launch).into_iter().map(stage_name).chain(["ready"]).collect(),
        Outcome::Ready | Outcome::Running | Outcome::Failed => Vec::new(),
    };
    let come = (!to_come.is_empty()).then(|| format!("to come: {}", to_come.join(", ")));
    let left = usual.map(|usual| {
        if usual > elapsed {
            format!("about {} left", duration(usual - elapsed))
        } else {
            format!("{} longer than usual", duration(elapsed - usual))
        }
    });
    let pieces: Vec<String> = [now, Some(duration(elapsed)), left, come].into_iter().flatten().collect();
    pieces.join(" · ")
}

fn unfinished(ledger: &Ledger) -> Option<Stage> {
    ledger.postings.iter().find(|posting| posting.state == PostingState::Begun).map(|posting| posting.stage)
}

/// Stages that the first rank should print and has not begun.
fn expected(launch: &LaunchAnalysis) -> Vec<Stage> {
    let Some((rank, ledger)) = launch.launch.ranks.first().zip(launch.ledgers.first()) else {
        return Vec::new();
    };
    ORDER
        .into_iter()
        .filter(|stage| ledger.stages(*stage).next().is_none())
        .filter(|stage| {
            expectation(&launch.launch, &rank.tag, *stage, Worker::Target) == Expectation::Printed
        })
        .collect()
}
