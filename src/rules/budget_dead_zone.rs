//! `budget-dead-zone`: no fraction works, because weights and graphs together are larger than what was free.

use super::budget_exceeded::{Death, death};
use super::support::rank_words;
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::quantity::mib_text;
use crate::stage::Stage;

pub(super) static RULE: Rule = Rule {
    code: "VL021",
    name: "budget-dead-zone",
    severity: Severity::Error,
    summary: "no mem_fraction_static works: even without any KV, graphs and activations do not fit beside the weights",
    explanation: "Two conditions bound mem_fraction_static. The weights want it above 1 − available / pre; graphs, workspaces and activations want it low \
enough that pre × (1 − f) holds them. At the least fraction that the weights allow the slack is exactly `available`, what was free after them.\n\n\
Where graphs and late buffers need more than that, both conditions cannot be met: every fraction fails, some at the pool, the others in capture. \
Turning the knob back and forth is then lost time.\n\n\
What was needed is taken from this launch's own failure: what had left after the pool, and the allocation that failed, as a lower bound. So the \
finding is certain; a launch close to the zone, whose need is not fully known, is not reported.\n\n\
Remedies: smaller graphs (--cuda-graph-max-bs, --disable-cuda-graph), a smaller chunk (--chunked-prefill-size), weights spread over more ranks \
or quantised, other processes off the card.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let zone = |death: &Death<'_>| {
        let available = death.world.available.as_ref()?.amount;
        let missing = death.needed - available;
        if missing.low() <= 0 {
            return None;
        }
        let weights = death.world.weights.map(mib_text).unwrap_or_default();
        let mut finding = Finding::new(
            &RULE,
            format!("no mem_fraction_static works: at least {} MiB are missing", mib_text(missing)),
        )
        .rank(context.tag(death.rank))
        .stage(death.stage)
        .explain(format!(
            "Even with no KV at all, what {} needed after the pool does not fit beside the weights.",
            rank_words(context.tag(death.rank))
        ))
        .sum(format!(
            "free after weights of {weights} MiB: {} MiB, the most that any fraction leaves",
            mib_text(available)
        ))
        .sum(format!("needed after the pool: at least {} MiB", mib_text(death.needed)))
        .amount(missing)
        .at(death.places.clone())
        .advise("spread the weights (--tp, --ep) or quantise them");
        if death.stage != Stage::Ready {
            finding =
                finding.advise("or capture less: a smaller --cuda-graph-max-bs, or --disable-cuda-graph");
        }
        Some(finding)
    };
    death(context).as_ref().and_then(zone).into_iter().collect()
}
