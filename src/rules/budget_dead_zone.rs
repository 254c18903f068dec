//! `budget-dead-zone`: no fraction works, because weights and graphs together are larger than what was free.

use super::support::rank_words;
use super::{Context, Rule};
use crate::budget::audit::World;
use crate::finding::{Finding, Severity};
use crate::place::Place;
use crate::quantity::{Quantity, mib_text, mib_whole};
use crate::stage::{Stage, Worker};
use crate::triage::Period;

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
        let (available, missing) = death.shortfall()?;
        let weights = death.world.weights.map(mib_text).unwrap_or_default();
        let finding = Finding::new(
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
        .at(death.places.clone());
        Some(
            finding
                .advise(spread(context, death.rank))
                .advise("or capture less: smaller graphs, or none (--disable-cuda-graph)"),
        )
    };
    death(context).as_ref().and_then(zone).into_iter().collect()
}

/// Twice the ranks, with what that takes off each card, where the log tells.
fn spread(context: &Context<'_>, rank: usize) -> String {
    let size = context.launch.args().and_then(|arguments| arguments.integer("tp_size"));
    let weights = context
        .ledgers
        .get(rank)
        .and_then(|ledger| ledger.stage(Stage::Weights, Worker::Target)?.used?.scale(1, 2));
    match size.zip(weights) {
        Some((size, half)) => format!(
            "spread the weights: --tp {} takes about {} MiB of them off each card; or quantise them",
            size.saturating_mul(2),
            mib_whole(half)
        ),
        None => "spread the weights (--tp, --ep) or quantise them".into(),
    }
}

/// An out-of-memory end between the pool and ready: what the launch needed of the slack, as far as it came.
pub(super) struct Death<'a> {
    world: &'a World,
    rank: usize,
    stage: Stage,
    /// What had left since the pool was sized, and what was asked for when it failed: no less was needed.
    pub(super) needed: Quantity,
    /// What was asked for.
    pub(super) asked: Quantity,
    places: Vec<Place>,
}

impl Death<'_> {
    /// What is free after the weights, and what is missing even if all of it were slack. `None` where some fraction works.
    pub(super) fn shortfall(&self) -> Option<(Quantity, Quantity)> {
        let available = self.world.available.as_ref()?.amount;
        let missing = self.needed - available;
        (missing.low() > 0).then_some((available, missing))
    }
}

/// How a launch died of device memory before it was ready. `None` for other ends; under load, activations come and go,
/// and what was needed cannot be told from the last figures.
pub(super) fn death<'a>(context: &Context<'a>) -> Option<Death<'a>> {
    let diagnosis = context.diagnosis.filter(|diagnosis| diagnosis.period == Period::AfterPool)?;
    let sentence = diagnosis.out_of_memory()?;
    let (asked, free) = (sentence.asked?, sentence.free?);
    let worlds = context.worlds().iter();
    let (world, used) = worlds
        .filter_map(|world| Some((world, world.slack_use.as_ref()?)))
        .min_by_key(|(_, used)| used.remaining.map_or(i128::MAX, Quantity::midpoint))?;
    let since = used.remaining? - free;
    let needed = used.used() + since + asked;
    let places = [Some(diagnosis.cause.place.clone()), used.place.clone()].into_iter().flatten().collect();
    Some(Death { world, rank: used.rank, stage: diagnosis.phase.stage(), needed, asked, places })
}
