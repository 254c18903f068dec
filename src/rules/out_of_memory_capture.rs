//! `out-of-memory-capture`: behind the KV pool, before ready, the slack was too small.

use super::death::{at_death, fetch, missing_words, more_slack, of_torch};
use super::{Context, Rule, budget_dead_zone};
use crate::finding::{Finding, Severity};
use crate::quantity::mib_text;
use crate::triage::{Period, Phase};

pub(super) static RULE: Rule = Rule {
    code: "VL032",
    name: "out-of-memory-capture",
    severity: Severity::Error,
    summary: "device memory ran out after the KV pool and before ready: in graph capture, the attention backend, or a late draft model",
    explanation: "The KV pool is allocated before graphs are captured, so graphs, workspaces and (up to 0.5.12) a draft model must fit into what the fraction \
leaves: the slack, pre × (1 − f). The fraction must go DOWN: every 0.01 moves pre / 100 from KV to the slack. `Try to increase --mem-fraction-static` is \
the answer to the opposite failure, a refusal at the pool.\n\n\
The first and largest batch size takes the most: communication buffers and workspaces are made on first use, and all smaller graphs share its pool. \
So a smaller --cuda-graph-max-bs (from 0.5.15 --cuda-graph-max-bs-decode) helps at once.\n\n\
What was needed is only known as a lower bound: the allocation that failed is rarely the last. So the fraction that is advised aims at what SGLang's \
tuning guide wants free, 5 to 8 GB on an 80 GB card and less on smaller ones, and never at less than twice what was missing.\n\n\
--kv-cache-dtype does not help here: a pool of cheaper tokens is just as large. --max-total-tokens helps, but does not follow the card's size.\n\n\
Dead zone: where what was needed does not fit beside the weights even with no KV at all, no fraction works.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some((diagnosis, sentence)) = of_torch(context, &[Period::AfterPool]) else { return Vec::new() };
    // Only the sentence's private pools told that graphs were there; where it stopped is not known.
    if diagnosis.phase == Phase::Unknown {
        return Vec::new();
    }
    let title = format!("out of memory {}{}", diagnosis.phase.words(), missing_words(sentence));
    let what = if diagnosis.phase.stage().is_capture() { "Graphs are" } else { "This is" };
    let death = budget_dead_zone::death(context);
    let where_to = match death.as_ref().and_then(budget_dead_zone::Death::shortfall) {
        Some(_) => "the card is too small for this and the weights, whatever the fraction",
        None => "the fraction is too high, not too low",
    };
    let mut finding = at_death(Finding::new(&RULE, title), diagnosis, sentence)
        .explain(format!("{what} allocated behind the KV pool, out of the slack pre × (1 − f): {where_to}."));
    if let Some(slack) = context.worlds().first().and_then(|world| world.slack) {
        finding = finding.sum(format!("slack: pre × (1 − f) = {} MiB", mib_text(slack)));
    }
    if let Some(death) = death {
        finding = finding.sum(format!(
            "needed of it: at least {} MiB, of which {} had left and {} were asked for",
            mib_text(death.needed),
            mib_text(death.needed - death.asked),
            mib_text(death.asked)
        ));
    }
    vec![fetch(more_slack(finding, context, diagnosis, sentence), context)]
}
