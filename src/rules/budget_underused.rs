//! `budget-underused`: the KV pool is smaller than the budget allows, and no cap of the user's explains it.

use super::{Context, Rule};
use crate::budget::audit::{TokenVerdict, Tokens, World};
use crate::finding::{Finding, Severity};
use crate::quantity::{group_digits, mib_text};
use crate::stage::Stage;

pub(super) static RULE: Rule = Rule {
    code: "VL022",
    name: "budget-underused",
    severity: Severity::Warning,
    summary: "the KV pool holds fewer tokens than the budget gives",
    explanation: "tokens = (available − pre × (1 − f) − reservations) / bytes per token, down to whole pages, and no more than --max-total-tokens. Each input is \
known within the rounding of its print, so the result is a range; a printed count below the whole range was made by something that the log does not \
show on this rank.\n\n\
Causes, likeliest first: a rank that prints nothing has less memory free than those that do, and the least decides (up to 0.5.3 most lines come \
from TP rank 0 only, and other nodes have logs of their own); something was allocated after `Load weight end` and before the pool was sized (LoRA \
buffers, a transfer engine, another process); a state cache or a reservation that this release does not print; SGLANG_CI_SMALL_KV_SIZE in the \
environment (0.4.3 to 0.5.6).\n\n\
Where --max-total-tokens is the cause, the finding is kv-capped; where a rank with figures is, rank-limits-kv.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let underused = |world: &World| {
        let tokens = world.tokens.as_ref().filter(|tokens| tokens.verdict == Some(TokenVerdict::Fewer))?;
        finding(context, world, tokens)
    };
    context.worlds().iter().filter_map(underused).collect()
}

fn finding(context: &Context<'_>, world: &World, tokens: &Tokens) -> Option<Finding> {
    let (printed, (least, most)) = (tokens.printed?, tokens.predicted?);
    let rank = world.available.as_ref()?.rank;
    let missing = world.cell?.bytes(least - printed)?;
    let mut finding = Finding::new(&RULE, format!("the KV pool holds at least {} tokens fewer than the budget gives", group_digits(least - printed)))
        .rank(context.tag(rank))
        .stage(Stage::KvCache)
        .explain("Something that this log does not show took memory before the pool was sized, or another rank has less.")
        .sum(format!("by the budget {} to {} tokens, printed {}", group_digits(least), group_digits(most), group_digits(printed)))
        .sum(format!("at least {} MiB unused on this rank", mib_text(missing)))
        .amount(missing)
        .at(tokens.place.clone());
    let silent = world.expected_ranks.saturating_sub(world.ranks.len());
    if silent > 0 {
        finding = finding.advise(format!("{silent} ranks print no figures here: look at their cards (nvidia-smi) and at the other nodes' logs"));
    }
    if let Some(implied) = world.baseline.as_ref().and_then(|baseline| baseline.implied) {
        finding =
            finding.sum(format!("the printed count would follow from a pre of {} MiB", mib_text(implied)));
    }
    Some(finding.advise("look for what was allocated between `Load weight end` and the pool: LoRA buffers, transfer engines, another process"))
}
