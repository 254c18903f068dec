//! `stage-missing`: a stage that this release and these arguments should have printed is not there.

use super::support::{rank_words, stage_words};
use super::{Context, Rule};
use crate::event::{Edge, Role};
use crate::finding::{Finding, Severity};
use crate::launch::{Expectation, Outcome, Rank, expectation};
use crate::ledger::Ledger;
use crate::stage::{Stage, Worker};

pub(super) static RULE: Rule = Rule {
    code: "VL002",
    name: "stage-missing",
    severity: Severity::Warning,
    summary: "a stage that should have been printed is missing from a rank's ledger",
    explanation: "Which stages a rank prints follows from the SGLang release and the arguments. vramledger tells apart: disabled by an argument; not printed \
by this rank (from 0.4.6 to 0.5.3 only TP rank 0 prints most lines); not printed in this release; before the log begins; cut off at its end; \
and missing although expected, which is this finding.\n\n\
The memory of a missing stage is not lost: it is inside the gap or the stage that follows.\n\n\
Causes: lines dropped by a log collector (rate limits, multi-line rules), a log level above info on some ranks, lines torn beyond repair, or a \
branch that renamed the line. In the last case the line may stand under `unrecognised`.\n\n\
Remedy: look at the quoted neighbours in the original log, and give the whole file rather than a filtered one.",
    check,
};

/// The stages that are looked for, in their order.
const LOOKED_FOR: [(Stage, Worker); 5] = [
    (Stage::DistributedInit, Worker::Target),
    (Stage::Weights, Worker::Target),
    (Stage::KvCache, Worker::Target),
    (Stage::GraphDecode, Worker::Target),
    (Stage::Weights, Worker::Draft),
];

fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, rank, ledger) in context.books() {
        for (position, (stage, worker)) in LOOKED_FOR.into_iter().enumerate() {
            let expected = expectation(context.launch, &rank.tag, stage, worker) == Expectation::Printed;
            if !expected
                || is_there(ledger, stage, worker)
                || !should_have_come(context, rank, position)
                || before_log(context, rank, position)
            {
                continue;
            }
            findings.push(
                Finding::new(&RULE, format!("{} printed nothing of {}", rank_words(&rank.tag.text), stage_words(stage, worker)))
                    .rank(&rank.tag.text)
                    .stage(stage)
                    .explain(format!(
                        "SGLang {} prints it with these arguments, and later stages are there. Its memory is inside what follows.",
                        context.launch.versions
                    ))
                    .advise("give the whole log rather than a filtered one; look whether the collector dropped lines of this rank")
                    .at(rank.events.last().map(|event| event.event.place.clone())),
            );
        }
    }
    findings
}

/// Whether the ledger has the stage; a memory pool without pool lines is the KV stage of that rank.
fn is_there(ledger: &Ledger, stage: Stage, worker: Worker) -> bool {
    let same = |posting: &crate::ledger::Posting| posting.worker == worker;
    ledger.stages(stage).any(same) || stage == Stage::KvCache && ledger.stages(Stage::MemoryPool).any(same)
}

/// Whether the rank got past the stage: the server became ready, or a later stage of the rank is there.
fn should_have_come(context: &Context<'_>, rank: &Rank, position: usize) -> bool {
    if matches!(context.launch.outcome, Outcome::Ready | Outcome::Running) {
        return true;
    }
    let later: Vec<Stage> = LOOKED_FOR
        .iter()
        .skip(position + 1)
        .filter(|(_, worker)| *worker == Worker::Target)
        .map(|(stage, _)| *stage)
        .collect();
    rank.events
        .iter()
        .any(|event| matches!(event.event.role, Role::Stage(stage, _, _) if later.contains(&stage)))
}

/// Whether the log begins after the stage: no launcher line stands before the rank's first words, and those are of a later
/// stage.
fn before_log(context: &Context<'_>, rank: &Rank, position: usize) -> bool {
    if context.launch.arguments.is_some() {
        return false;
    }
    let first = rank.events.iter().find_map(|event| match event.event.role {
        Role::Stage(stage, edge, _) => Some((stage, edge)),
        Role::Pool(_) => Some((Stage::KvCache, Edge::Whole)),
        _ => None,
    });
    let first_position = first.and_then(|(stage, _)| {
        let stage = if stage == Stage::MemoryPool { Stage::KvCache } else { stage };
        LOOKED_FOR.iter().position(|(looked_for, _)| *looked_for == stage)
    });
    first_position.is_none_or(|first| position < first)
}
