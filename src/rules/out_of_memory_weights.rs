//! `out-of-memory-weights`: the card was full before the KV pool was sized.

use super::death::{at_death, ending_others, fetch, missing_words, of_torch, room};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::grammar::sglang::oom::OutOfMemory;
use crate::quantity::{MIB, Quantity, mib_text};
use crate::triage::{Period, Setting};

pub(super) static RULE: Rule = Rule {
    code: "VL030",
    name: "out-of-memory-weights",
    severity: Severity::Error,
    summary: "device memory ran out before the KV pool: in distributed init or in loading weights",
    explanation: "Until the KV pool is sized, mem_fraction_static plays no part: weights are loaded until the card is full. So neither a higher nor a lower \
fraction helps.\n\n\
Two causes. The card is too small for this rank's share of the weights: add what the checkpoint's files hold, divide by --tp, and remember that some \
quantisations load in full precision first. Or the card was not empty: another process, or a former start whose processes still live.\n\n\
PyTorch's sentence tells which: `this process has` is this rank's, `Process N has` are the others; what is in neither belongs to processes that a \
container hides, and to the driver.\n\n\
Remedies: end the other process; --tp or --ep to spread the weights; a quantised checkpoint; --cpu-offload-gb at the price of speed.",
    check,
};

/// What of the card a process may hold that is not this server's before it is the likely cause.
const NOTABLE: i128 = 1024 * MIB;

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some((diagnosis, sentence)) = of_torch(context, &[Period::BeforePool]) else { return Vec::new() };
    let title = format!("out of memory {}{}", diagnosis.phase.words(), missing_words(sentence));
    let mut finding = at_death(Finding::new(&RULE, title), diagnosis, sentence).explain(if occupied(sentence) {
        "The card was not empty. mem_fraction_static plays no part before the KV pool is sized."
    } else {
        "The weights do not fit. mem_fraction_static plays no part before the KV pool is sized: turning it changes nothing."
    });
    if let Some(held) = sentence.in_use {
        finding = finding.sum(format!(
            "with what was left to load, a card must hold more than the {} MiB of this process",
            mib_text(held)
        ));
    }
    finding = ending_others(finding, sentence);
    if occupied(sentence) {
        return vec![fetch(finding, context)];
    }
    let halves = room(context, diagnosis, sentence).tensor_parallel();
    finding = match (
        halves.map(|remedy| remedy.setting),
        context.launch.args().and_then(|args| args.integer("tp_size")),
    ) {
        (Some(Setting::TensorParallel(size)), _) => {
            finding.advise(format!("spread the weights: --tp {size}, or quantise them"))
        }
        (_, Some(size)) => finding.advise(format!(
            "spread the weights: --tp {} halves each card's share; or quantise them",
            size.saturating_mul(2)
        )),
        _ => finding.advise("spread the weights over more cards (--tp, --ep), or quantise them"),
    };
    vec![fetch(finding, context)]
}

/// Whether others hold a notable part of the card.
pub(super) fn occupied(sentence: &OutOfMemory) -> bool {
    let held = |quantity: Option<Quantity>| quantity.is_some_and(|held| held.surely_above(NOTABLE));
    held(sentence.held_by_others()) || held(sentence.unaccounted())
}
