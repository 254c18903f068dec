//! `out-of-memory-runtime`: a server that was up ran out under load.

use super::death::{at_death, fetch, missing_words, more_slack, of_torch};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::quantity::mib_text;
use crate::triage::{Period, Phase};

pub(super) static RULE: Rule = Rule {
    code: "VL033",
    name: "out-of-memory-runtime",
    severity: Severity::Error,
    summary: "device memory ran out while serving: in prefill, decode, an encoder or the sampler",
    explanation: "The KV pool was there since start-up and does not grow. What comes and goes under load are activations, workspaces and buffers of the first \
requests, and they share what start-up left free. So look at the headroom (`available_gpu_mem` of the summary line), not at KV usage: `token usage: 0.95` is \
no cause.\n\n\
Prefill: activations grow with the tokens of a chunk; lower --chunked-prefill-size, or the fraction. Decode beyond the captured batch sizes runs \
eagerly: lower --max-running-requests or capture more. Sampling: a logits row is the vocabulary in 32 bits for every request. Encoder: grows with \
the images of a request, and no fraction knows it.\n\n\
The fraction must go DOWN. Up, as some messages say, is for a refused start.\n\n\
Values: SGLang's default rule sets aside 1.5 MiB for a token of the chunk; the fraction aims at what its tuning guide wants free, and at no less than \
twice what was missing.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some((diagnosis, sentence)) = of_torch(context, &[Period::Serving]) else { return Vec::new() };
    let title = format!("out of memory {}{}", diagnosis.phase.words(), missing_words(sentence));
    let mut finding = at_death(Finding::new(&RULE, title), diagnosis, sentence).explain(match diagnosis.phase {
        Phase::Decode => "Decode allocates only where no captured graph fits the batch, or beside the graphs. It shares what start-up left free: the fraction is too high.",
        Phase::Encoder => "Encoders allocate by the size of what they are given, out of what start-up left free.",
        Phase::WeightUpdate => "New weights are loaded beside the old ones, out of what start-up left free.",
        _ => "Activations come out of what start-up left free; the KV pool plays no part in it.",
    });
    let ledger = diagnosis.rank.and_then(|rank| context.ledgers.get(rank));
    if let Some(headroom) = ledger.and_then(|ledger| ledger.headroom) {
        finding = finding.sum(format!("start-up left {} MiB free", mib_text(headroom)));
        if let Some(free) = sentence.free {
            finding = finding.sum(format!(
                "since then {} MiB were taken: PyTorch's cache, workspaces, other processes",
                mib_text(headroom - free)
            ));
        }
    }
    vec![fetch(more_slack(finding, context, diagnosis, sentence), context)]
}
