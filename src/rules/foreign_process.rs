//! `foreign-process`: somebody else's memory on the rank's device.

use super::support::{posting_words, rank_words};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::ledger::{Ledger, Posting, PostingKind};
use crate::quantity::{MIB, Quantity, mib_text};
use crate::reconcile::{BridgeTerm, Owner, Reconciliation};
use crate::stage::Stage;
use crate::thresholds::Limit;

/// What a process that only touched CUDA holds at most: 518 MiB on an H200, more with larger driver modules. Launchers and
/// data loaders of the same server leave such contexts.
const BARE_CONTEXT: i128 = 700 * MIB;

pub(super) static RULE: Rule = Rule {
    code: "VL010",
    name: "foreign-process",
    severity: Severity::Warning,
    summary: "a process that is not this rank holds memory on its device",
    explanation: "Free memory is of the whole device. What another process holds there was either gone before the log's first figure, and then it \
made the base of mem_fraction_static smaller (fewer KV tokens, nothing in the log says why); or it came later, and then its memory is \
inside whatever stage was being measured at that moment, and is printed as that stage's `mem usage`.\n\n\
Only per-process figures can tell: nvidia-smi's process list, --query-compute-apps, pmon. They count a process's CUDA context too (some \
518 MiB on an H200).\n\n\
Not every second process is foreign: a launcher, a detokenizer or a data loader that touched CUDA leaves a context on GPU 0 that belongs to \
the same server.\n\n\
Remedy: end the process, or move the server to another device (CUDA_VISIBLE_DEVICES, --base-gpu-id), then start again: the KV pool is sized \
once, at start-up.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let limit = context.thresholds.get(Limit::Foreign);
    let mut findings = Vec::new();
    for (index, rank, ledger) in context.books() {
        let Some(reconciliation) = context.reconciliation(index) else { continue };
        let Some(sample) = context.observations.get(reconciliation.observation) else { continue };
        let others = reconciliation
            .owners
            .iter()
            .filter(|owner| !owner.own && !shares_device(context, reconciliation, owner));
        for owner in others.filter(|owner| owner.process.used.is_some_and(|used| used.surely_above(limit))) {
            let Some(used) = owner.process.used else { continue };
            let device =
                sample.device.map_or_else(|| "its device".to_string(), |device| format!("GPU {device}"));
            let pid = owner.process.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
            let mut finding = Finding::new(
                &RULE,
                format!("{}{pid} holds {} MiB on {device} beside {}", owner.process.name, mib_text(used), rank_words(&rank.tag.text)),
            )
            .rank(&rank.tag.text)
            .amount(used)
            .at([sample.place.clone()])
            .advise("end that process or give the server another device, then start again: the KV pool is sized once, at start-up");
            if used.surely_below(BARE_CONTEXT) {
                finding = finding.severity(Severity::Info).sum(format!(
                    "a bare CUDA context takes about 520 MiB: {} MiB is little more",
                    mib_text(used)
                ));
            }
            finding = match host_of(reconciliation, ledger, used) {
                Host::BeforeStart(held) => finding
                    .explain("It was there before the log's first figure: the log does not show it, but its memory was missing from the base of mem_fraction_static.")
                    .sum(format!("held before the first figure {} MiB ≥ {} MiB of the process", mib_text(held), mib_text(used))),
                Host::Inside(posting) => finding
                    .explain(format!(
                        "Too little was held before the first figure for it to have been there, so it came during start-up. Only {} is large enough to hide it: what the log calls that stage's usage is mostly this process.",
                        posting_words(posting)
                    ))
                    .stage(posting.stage)
                    .sum(format!("{} {} MiB, of which {} MiB are the process's", posting_words(posting), mib_text(posting.used.unwrap_or(Quantity::ZERO)), mib_text(used)))
                    .at(posting.places.clone()),
                Host::AfterReady => finding.explain("The ledger has no room for it: it came after the ready line, and takes from the headroom."),
                Host::Unclear => finding.explain("Where in the ledger its memory stands can't be told from the figures: its device's free memory includes it from the moment it came."),
            };
            findings.push(finding);
        }
    }
    findings
}

/// Where a foreign process's memory stands in the books.
enum Host<'a> {
    BeforeStart(Quantity),
    Inside(&'a Posting),
    AfterReady,
    Unclear,
}

fn host_of<'a>(reconciliation: &Reconciliation, ledger: &'a Ledger, used: Quantity) -> Host<'a> {
    let held = reconciliation.amount(BridgeTerm::HeldBefore);
    if reconciliation.unexplained.high() >= used.low() {
        return Host::AfterReady;
    }
    match held {
        Some(held) if held.low() >= used.low() => Host::BeforeStart(held),
        Some(held) if held.high() < used.low() => {
            let mut large = ledger
                .postings
                .iter()
                .filter(|posting| room_in(posting).is_some_and(|room| room.high() >= used.low()));
            match (large.next(), large.next()) {
                (Some(posting), None) => Host::Inside(posting),
                _ => Host::Unclear,
            }
        }
        _ => Host::Unclear,
    }
}

/// How much of a posting could be somebody else's: all of a gap or a capture, of a pool only what its parts don't account
/// for, of the weights nothing that can be told.
fn room_in(posting: &Posting) -> Option<Quantity> {
    match (posting.kind, posting.stage) {
        (PostingKind::Stage, Stage::Weights) => None,
        (PostingKind::Stage, Stage::KvCache) => posting.beyond_parts(),
        _ => posting.used,
    }
}

/// Whether another rank of the same launch runs on this device and owns the process.
fn shares_device(context: &Context<'_>, reconciliation: &Reconciliation, owner: &Owner) -> bool {
    context.reconciliations.iter().any(|other| {
        other.rank != reconciliation.rank
            && other.observation == reconciliation.observation
            && other.owners.iter().any(|theirs| theirs.own && theirs.process == owner.process)
    })
}
