//! `stage-oversized`: a stage or gap takes more than its peers, or more than such a stage should.

use super::support::{difference_sum, posting_words, rank_words};
use super::{Context, Rule, weights_expected};
use crate::finding::{Finding, Severity};
use crate::launch::Rank;
use crate::ledger::{Ledger, Posting, PostingKind};
use crate::quantity::{Quantity, mib_text, mib_whole};
use crate::stage::{Stage, Worker};
use crate::thresholds::Limit;

pub(super) static RULE: Rule = Rule {
    code: "VL004",
    name: "stage-oversized",
    severity: Severity::Warning,
    summary: "a stage takes more than the other ranks' does, or more than such a stage should",
    explanation: "What it is compared with: weights with what --model-config or --weights-index lets expect (5 % allowed, either way); stages with the same stage of the other ranks of the launch (shards are equal, so stages should be; pipeline stages are only \
compared with each other's peers at the same depth); distributed init and unlogged gaps with named limits (`--threshold`).\n\n\
A rank whose stage is larger than its peers': another process came to that device while the stage was measured; an edge rank with an extra \
embedding or head; lazily built buffers on rank 0.\n\n\
Distributed init beyond its limit: many NCCL channels, DeepEP or NVSHMEM buffers, symmetric memory.\n\n\
A gap beyond its limit: attention workspaces in deterministic mode (2 GiB), a large request table (rows × context × 4 bytes: 1 GiB for 2,048 \
rows of 131,072), LoRA buffers, or a neighbour's process.\n\n\
Remedy: compare with per-process figures of that device (nvidia-smi); if the server's own process is smaller than the ledger says, the rest is \
a neighbour's.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = against_peers(context);
    findings.extend(weights_expected::check(context));
    for (_, rank, ledger) in context.books() {
        findings.extend(ledger.postings.iter().filter_map(|posting| against_limit(context, rank, posting)));
    }
    findings
}

/// Each stage of a rank against the smallest of its peers.
fn against_peers(context: &Context<'_>) -> Vec<Finding> {
    let allowed = context.thresholds.get(Limit::Peers);
    let mut findings = Vec::new();
    for (index, rank, ledger) in context.books() {
        for posting in ledger.postings.iter().filter(|posting| posting.kind == PostingKind::Stage) {
            let Some(used) = posting.used else { continue };
            let peers = context.books().filter(|(other, peer, _)| *other != index && are_peers(rank, peer));
            let sizes: Vec<(Quantity, &str)> = peers
                .filter_map(|(_, peer, books)| Some((same_stage(books, posting)?, peer.tag.text.as_str())))
                .collect();
            let Some((smallest, peer)) = sizes.into_iter().min_by_key(|(size, _)| size.midpoint()) else {
                continue;
            };
            let excess = used - smallest;
            if !excess.surely_above(allowed) {
                continue;
            }
            findings.push(
                Finding::new(&RULE, format!("{} takes {} MiB for {}, {} more than for {peer}", posting_words(posting), mib_text(used), rank_words(&rank.tag.text), mib_text(excess)))
                    .rank(&rank.tag.text)
                    .stage(posting.stage)
                    .explain("Ranks of one group hold equal shards, so equal stages should cost the same.")
                    .sum(format!("{} − {} = {} MiB, allowed {}", mib_text(used), mib_text(smallest), mib_text(excess), mib_whole(Quantity::exact(allowed))))
                    .advise("compare with the process list of that device: what is not this process's own is a neighbour's")
                    .amount(excess)
                    .at(posting.places.clone()),
            );
        }
    }
    findings
}

/// Ranks that hold equal shards: the same pipeline stage.
fn are_peers(one: &Rank, other: &Rank) -> bool {
    one.tag.coordinates.pp == other.tag.coordinates.pp
}

fn same_stage(ledger: &Ledger, posting: &Posting) -> Option<Quantity> {
    ledger
        .stage(posting.stage, posting.worker)
        .filter(|other| other.label == posting.label)
        .and_then(|other| other.used)
}

/// Distributed init and gaps against their limits.
fn against_limit(context: &Context<'_>, rank: &Rank, posting: &Posting) -> Option<Finding> {
    let used = posting.used?;
    let which = match (posting.kind, posting.stage) {
        (PostingKind::Gap, _) => Limit::Gap,
        (PostingKind::Stage, Stage::DistributedInit) if context.launch.ranks.len() > 1 => Limit::InitParallel,
        (PostingKind::Stage, Stage::DistributedInit) => Limit::InitSingle,
        (PostingKind::Stage, stage) if stage.is_capture() => return capture_against_bars(rank, posting),
        _ => return None,
    };
    let limit = context.thresholds.get(which);
    if !used.surely_above(limit) {
        return None;
    }
    let mut finding = Finding::new(
        &RULE,
        format!(
            "{} takes {} MiB, more than the {} expected",
            posting_words(posting),
            mib_text(used),
            mib_whole(Quantity::exact(limit))
        ),
    )
    .rank(&rank.tag.text)
    .stage(posting.stage)
    .explain("More than such a step needs by itself; see the explanation for what else can stand in it.")
    .advise("compare with the process list of that device: what is not this process's own is a neighbour's")
    .amount(used)
    .at(posting.places.clone());
    if let Some(sum) = difference_sum(posting) {
        finding = finding.sum(sum);
    }
    Some(finding)
}

/// A capture whose cost fell in one step between two small sizes is no graph: buffers are built at the first, largest size.
fn capture_against_bars(rank: &Rank, posting: &Posting) -> Option<Finding> {
    if posting.worker == Worker::Draft {
        return None;
    }
    let used = posting.used?;
    let later = posting.progress.get(1..)?;
    let fall = |pair: &[crate::ledger::ProgressPoint]| {
        Some((pair.first()?.available - pair.last()?.available, pair.last()?.label.clone()))
    };
    let last = posting
        .after
        .zip(later.last())
        .map(|(after, point)| (point.available - after, format!("the end, after {}", point.label)));
    let steps = later.windows(2).filter_map(fall).chain(last);
    let (step, label) = steps.max_by_key(|(step, _)| step.midpoint())?;
    // A step of more than a GiB that is also most of the stage, behind the first size.
    if !step.surely_above(crate::quantity::GIB) || step.scale(2, 1)?.low() < used.high() {
        return None;
    }
    Some(
        Finding::new(&RULE, format!("{} MiB left in one step of {}, before {label}", mib_text(step), posting_words(posting)))
            .rank(&rank.tag.text)
            .stage(posting.stage)
            .explain("Graphs get smaller from size to size, and shared buffers are built at the first. A single large step later on is something else: another process that came, or a kernel's lazily allocated workspace.")
            .sum(format!("the stage used {} MiB, {} of it in that step", mib_text(used), mib_text(step)))
            .advise("compare with the process list of that device: what is not this process's own is a neighbour's")
            .amount(step)
            .at(posting.places.clone()),
    )
}
