//! One launch under changed flags, term by term.

use super::divide::Divided;
use super::{Change, Facts, FractionChoice, GraphChoice, PlanError, graphs, pool};
use crate::budget::audit::Cell;
use crate::budget::capacity::{Budget, Caps, capped};
use crate::budget::defaults::{Settings, default_fraction};
use crate::quantity::{Decimal, Quantity};

/// The terms of a launch, measured or projected.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// `mem_fraction_static`.
    pub fraction: Decimal,
    /// Whether SGLang would choose it by itself.
    pub fraction_is_default: bool,
    /// Free before the weights.
    pub baseline: Quantity,
    /// Weights.
    pub weights: Option<Quantity>,
    /// Free when the pool is sized.
    pub available: Quantity,
    /// pre × (1 − f).
    pub slack: Quantity,
    /// For KV.
    pub rest: Quantity,
    /// Bytes per token.
    pub cell: Cell,
    /// Fewest and most tokens, after caps. Nothing is left where these are not positive: SGLang refuses to start.
    pub tokens: (i128, i128),
    /// KV memory, a draft's outside the budget included.
    pub kv: Quantity,
    /// The pool stage beyond KV.
    pub overhead: Option<Quantity>,
    /// Decode graphs.
    pub decode_graphs: Option<Quantity>,
    /// Prefill graphs.
    pub prefill_graphs: Option<Quantity>,
    /// Everything else after the pool.
    pub other: Quantity,
    /// What remains after start-up.
    pub remaining: Option<Quantity>,
    /// What had to be assumed.
    pub assumptions: Vec<String>,
}

impl Projection {
    /// Whether anything is surely left for KV.
    pub fn starts(&self) -> bool {
        self.tokens.0 > 0
    }
}

/// Projects a launch under changed flags. No change gives back what was measured.
pub fn project(facts: &Facts, change: &Change) -> Result<Projection, PlanError> {
    let mut assumptions = Vec::new();
    let settings = settings(facts, change);
    let (fraction, fraction_is_default) = fraction(facts, change, &settings)?;
    let divided = Divided::of(facts, change, &mut assumptions)?;
    let budget = Budget {
        free: divided.available,
        baseline: divided.baseline,
        fraction,
        extras: facts.reserved,
        several_ranks: facts.several_ranks || change.tp.is_some_and(|tp| tp > 1),
    };
    let moved = moved_rest(facts, change, fraction);
    let rest = moved.or_else(|| budget.rest()).ok_or(PlanError::NoFigures)?;
    let tokens = tokens(facts, change, rest, divided.cell);
    let decode_graphs = graphs::decode(&facts.decode, change.graphs);
    let chunks = change.chunk.and_then(|then| Some((facts.settings.chunked_prefill_size?, then)));
    let prefill_graphs = graphs::prefill(&facts.prefill, facts.version, change.graphs, chunks);
    if !matches!(change.graphs, GraphChoice::Keep) || chunks.is_some() && facts.prefill.used.is_some() {
        assumptions.push("graphs of other sizes are estimated from this capture's own bars".to_string());
    }
    if change.chunk.is_some() {
        assumptions.push(
            "activations of other chunks show only under load: what remains must hold them".to_string(),
        );
    }
    let kv = pool::kv(&divided, tokens);
    let kv_now = facts.tokens.map_or(kv, |now| pool::kv(&Divided::unchanged(facts), (now, now)));
    let overhead = pool::more_overhead(facts, (kv_now, kv), tokens);
    let graph_growth = growth(facts.decode.used, decode_graphs) + growth(facts.prefill.used, prefill_graphs);
    Ok(Projection {
        fraction,
        fraction_is_default,
        slack: budget.slack().ok_or(PlanError::NoFigures)?,
        remaining: remaining(facts, &divided, (kv_now, kv), overhead, graph_growth),
        baseline: divided.baseline,
        weights: divided.weights,
        available: divided.available,
        rest,
        cell: divided.cell,
        tokens,
        kv,
        overhead: facts.overhead.map(|now| now + overhead),
        decode_graphs,
        prefill_graphs,
        other: facts.other,
        assumptions,
    })
}

/// How much more something takes than before: nothing at all where it is the same figure.
fn growth(before: Option<Quantity>, after: Option<Quantity>) -> Quantity {
    match (before, after) {
        (Some(before), Some(after)) if before == after => Quantity::ZERO,
        // One truth stands behind both: where the estimate is a share of what was measured, it moves with it.
        (Some(before), Some(after)) if after == Quantity::ZERO => -before,
        (Some(before), Some(after)) => {
            Quantity::between(after.low() - before.low(), after.high() - before.high())
        }
        _ => Quantity::ZERO,
    }
}

fn settings(facts: &Facts, change: &Change) -> Settings {
    let mut settings = facts.settings.clone();
    if let Some(chunk) = change.chunk {
        settings.chunked_prefill_size = Some(chunk);
        // Sizes of prefill graphs follow the chunk, where they did.
        if settings.prefill_graph_max_tokens == facts.settings.chunked_prefill_size {
            settings.prefill_graph_max_tokens = Some(chunk);
            settings.prefill_graph_sizes = None;
        }
    }
    match change.graphs {
        GraphChoice::Keep => {}
        GraphChoice::MaxBatch(batch) => settings.graph_max_batch = Some(batch),
        GraphChoice::Off => {
            settings.decode_graphs = false;
            settings.prefill_graphs = false;
        }
    }
    settings.tp = change.tp.unwrap_or(settings.tp);
    if let Some(cap) = change.max_total_tokens {
        settings.max_total_tokens = cap.and_then(|cap| i64::try_from(cap).ok());
    }
    settings
}

fn fraction(facts: &Facts, change: &Change, settings: &Settings) -> Result<(Decimal, bool), PlanError> {
    let derived = || {
        if settings.capacity_mib.is_none() {
            return Err(PlanError::NoCard);
        }
        Ok((default_fraction(settings).decimal().ok_or(PlanError::NoCard)?, true))
    };
    match change.fraction {
        FractionChoice::Set(fraction) => Ok((fraction, false)),
        FractionChoice::Default => derived(),
        FractionChoice::Keep if facts.fraction_is_default == Some(true) => derived(),
        FractionChoice::Keep => Ok((facts.fraction.value, false)),
    }
}

/// The rest moved by the change of fraction alone: narrower than computing it afresh, since the printed tokens tell the
/// rest almost to the byte. `None` where more than the fraction moves it.
fn moved_rest(facts: &Facts, change: &Change, fraction: Decimal) -> Option<Quantity> {
    if change.tp.is_some() {
        return None;
    }
    let (then, denominator) = fraction.to_fraction()?;
    let (now, other) = facts.fraction.value.to_fraction()?;
    let moved = then.checked_mul(other)?.checked_sub(now.checked_mul(denominator)?)?;
    Some(facts.rest + facts.baseline.scale(moved, denominator.checked_mul(other)?)?)
}

fn tokens(facts: &Facts, change: &Change, rest: Quantity, cell: Cell) -> (i128, i128) {
    let caps = Caps {
        max_total_tokens: change.max_total_tokens.unwrap_or(facts.user_cap),
        page_size: change.page_size.unwrap_or(facts.page_size),
        ..Caps::NONE
    };
    let (low, high) = cell.tokens(rest);
    let capped =
        |tokens: i128| capped(facts.version, tokens, &caps).last().map_or(tokens, |step| step.tokens);
    (capped(low), capped(high))
}

/// What remained, less what KV, the rest of the pool stage, graphs and weights take more than before.
fn remaining(
    facts: &Facts,
    divided: &Divided,
    (before, after): (Quantity, Quantity),
    overhead: Quantity,
    graphs: Quantity,
) -> Option<Quantity> {
    facts.tokens?;
    let weights = growth(facts.weights, divided.weights);
    let base = growth(Some(facts.baseline), Some(divided.baseline));
    Some(facts.remaining? - (after - before) - overhead - graphs - weights + base)
}
