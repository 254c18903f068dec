//! Weights against the model's config or checkpoint: findings of `stage-oversized`, in words of their own.

use super::support::rank_words;
use super::{Context, stage_oversized};
use crate::budget::audit::{Expected, World};
use crate::finding::Finding;
use crate::place::Place;
use crate::quantity::{Quantity, mib_text};
use crate::stage::{Stage, Worker};

/// How far weights may be from the expectation, in hundredths of it: padding, scales, rotary tables and the allocator's
/// blocks are not in a config. 0.1 % were measured for Llama 8B.
const TOLERANCE_PERCENT: i128 = 5;

/// Weights that are larger or smaller than expected.
pub(super) fn check(context: &Context<'_>) -> Vec<Finding> {
    context.worlds().iter().filter_map(|world| against_expectation(context, world)).collect()
}

fn against_expectation(context: &Context<'_>, world: &World) -> Option<Finding> {
    let expected = world.expected.as_ref()?;
    let (wanted, measured) = (expected.weights?, expected.measured_weights?);
    let allowed = wanted.scale(TOLERANCE_PERCENT, 100)?.high();
    let difference = measured - wanted;
    // What the config cannot size may be what is more.
    let larger = difference.surely_above(allowed) && expected.unsized_parts.is_empty();
    if !larger && !difference.surely_below(-allowed) {
        return None;
    }
    Some(finding(context, expected, wanted, measured, larger))
}

fn finding(
    context: &Context<'_>,
    expected: &Expected,
    wanted: Quantity,
    measured: Quantity,
    larger: bool,
) -> Finding {
    let source = if expected.from_checkpoint { "checkpoint" } else { "config" };
    let words = if larger { "more" } else { "less" };
    let difference = (measured - wanted).magnitude();
    let places: Vec<Place> = context
        .ledgers
        .get(expected.rank)
        .and_then(|ledger| ledger.stage(Stage::Weights, Worker::Target))
        .map(|weights| weights.places.clone())
        .unwrap_or_default();
    Finding::new(
        &stage_oversized::RULE,
        format!("the weights take {} MiB, {} {words} than the {source} says", mib_text(measured), mib_text(difference)),
    )
    .rank(context.tag(expected.rank))
    .stage(Stage::Weights)
    .explain(match larger {
        true => "Weights that were not quantised as expected, buffers that loading creates, or another process on the card.",
        false => "Another model or another division than the config describes, or weights that were offloaded.",
    })
    .sum(format!(
        "{}: measured {}, by the {source} {} MiB, {TOLERANCE_PERCENT} % allowed",
        rank_words(context.tag(expected.rank)),
        mib_text(measured),
        mib_text(wanted)
    ))
    .amount(measured - wanted)
    .at(places)
    .advise("check that the config (or index) is that of the served model, and --quantization and --tp in server_args")
}
