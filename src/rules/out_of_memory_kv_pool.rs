//! `out-of-memory-kv-pool`: the pool that the arithmetic allowed could not be allocated.

use super::death::{at_death, ending_others, fetch, missing_words, of_torch};
use super::out_of_memory_weights::occupied;
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::quantity::{MIB, mib_text};
use crate::stage::{Stage, Worker};
use crate::triage::Period;

pub(super) static RULE: Rule = Rule {
    code: "VL031",
    name: "out-of-memory-kv-pool",
    severity: Severity::Error,
    summary: "device memory ran out while the KV pool was allocated",
    explanation: "The pool is sized from what is free at that very moment, minus the slack pre × (1 − f): by SGLang's own arithmetic it fits. If it does not, \
the arithmetic's facts changed under it.\n\n\
Another process took memory between the measurement and the allocation: a second server that starts at the same time on the same card is the usual \
one. Or another rank shares the card. Or something outside PyTorch grew. Or the pool is larger than its budget: speculative decoding from 0.4.1 to \
0.5.6 adds tokens, and sparse attention stores an index beside the keys.\n\n\
A lower fraction hides it by asking for less, and the memory is still missing. Look for its holder first.\n\n\
Remedies: start servers on one card one after the other; end the other process; look at what this process holds outside PyTorch.",
    check,
};

/// Context, communicators and libraries of a rank stay below this outside PyTorch.
const LARGE: i128 = 4096 * MIB;

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some((diagnosis, sentence)) = of_torch(context, &[Period::Pool]) else { return Vec::new() };
    let title = format!("out of memory {}{}", diagnosis.phase.words(), missing_words(sentence));
    let mut finding = at_death(Finding::new(&RULE, title), diagnosis, sentence)
        .explain("The pool was sized from what was free a moment before, so it should have fitted: somebody else took memory in between, or the pool is larger than its budget.");
    let ledger = diagnosis.rank.and_then(|rank| context.ledgers.get(rank));
    let weights = ledger
        .and_then(|ledger| ledger.stage(Stage::Weights, Worker::Target))
        .and_then(|weights| weights.after);
    if let Some((vanished, after, pool, free)) =
        weights.zip(sentence.allocated).zip(sentence.free).and_then(|((after, allocated), free)| {
            let loaded = ledger?.stage(Stage::Weights, Worker::Target)?.used?;
            let pool = allocated - loaded;
            Some((after - pool - free, after, pool, free))
        })
    {
        finding = finding.sum(format!(
            "free after the weights {} − allocated since {} − free at death {} = {} MiB gone elsewhere",
            mib_text(after),
            mib_text(pool),
            mib_text(free),
            mib_text(vanished)
        ));
    }
    finding = ending_others(finding, sentence);
    finding = if occupied(sentence) {
        finding.advise("start servers that share a card one after the other, each with its own share")
    } else {
        finding.advise("look for the holder: nvidia-smi's process list at the moment of the next start, this process's memory outside PyTorch above")
    };
    if let Some(outside) = sentence.outside_torch().filter(|outside| outside.surely_above(LARGE)) {
        finding = finding.advise(format!(
            "{} MiB of this process are outside PyTorch, more than context and communicators take: look at what it loads beside",
            mib_text(outside)
        ));
    }
    vec![fetch(finding, context)]
}
