//! One launch under changed flags, term by term.

use super::{Change, Facts, FractionChoice, GraphChoice, PlanError, graphs};
use crate::budget::audit::Cell;
use crate::budget::capacity::{Budget, Caps, capped};
use crate::budget::cell::{KvType, counted};
use crate::budget::defaults::{Settings, default_fraction};
use crate::budget::model::Parallel;
use crate::quantity::{Decimal, GIB, Quantity};

/// Memory that communicators take where a single rank becomes several: 1,034 MiB were measured for two ranks with NCCL and
/// custom all-reduce, and channels grow with the ranks.
const COMMUNICATORS: i128 = 3 * GIB;
/// The allocator's free list holds an 8-byte index a token, and clones it once.
const FREE_LIST_BYTES: i128 = 8;

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
    let kv = kv(facts, &divided, tokens);
    let overhead = overhead(facts, tokens);
    let graph_growth = growth(facts.decode.used, decode_graphs) + growth(facts.prefill.used, prefill_graphs);
    Ok(Projection {
        fraction,
        fraction_is_default,
        slack: budget.slack().ok_or(PlanError::NoFigures)?,
        remaining: remaining(facts, &divided, tokens, graph_growth),
        baseline: divided.baseline,
        weights: divided.weights,
        available: divided.available,
        rest,
        cell: divided.cell,
        tokens,
        kv,
        overhead,
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

/// What division over ranks and the type of KV decide.
struct Divided {
    baseline: Quantity,
    weights: Option<Quantity>,
    available: Quantity,
    cell: Cell,
    uncharged_cell: Option<Cell>,
}

impl Divided {
    fn of(facts: &Facts, change: &Change, assumptions: &mut Vec<String>) -> Result<Divided, PlanError> {
        let tp = change.tp.filter(|tp| *tp != facts.settings.tp);
        let scale = |cell: Cell| scaled_cell(facts, change, cell);
        let mut divided = Divided {
            baseline: facts.baseline,
            weights: facts.weights,
            available: facts.available,
            cell: scale(facts.cell).ok_or_else(|| unscaled(change))?,
            uncharged_cell: facts.uncharged_cell.and_then(scale),
        };
        let Some(tp) = tp else { return Ok(divided) };
        if facts.settings.tp == 1 {
            divided.baseline = Quantity::between(facts.baseline.low() - COMMUNICATORS, facts.baseline.high());
            assumptions.push(
                "communicators of several ranks are allowed up to 3,072 MiB; two ranks took 1,034 on an H200"
                    .to_string(),
            );
        }
        let weights = facts
            .weights
            .and_then(|weights| scaled_weights(facts, tp, weights))
            .ok_or(PlanError::NoFigures)?;
        divided.available = divided.baseline - weights;
        divided.weights = Some(weights);
        assumptions.push(match facts.model {
            Some(_) => "weights and KV heads are divided as the config says".to_string(),
            None => {
                "weights and KV heads are taken to divide evenly: give --model-config to know".to_string()
            }
        });
        Ok(divided)
    }
}

fn unscaled(change: &Change) -> PlanError {
    PlanError::KvType(change.kv.as_ref().map_or_else(|| "auto".to_string(), |kv| kv.name.clone()))
}

fn scaled_cell(facts: &Facts, change: &Change, cell: Cell) -> Option<Cell> {
    let kv_type = change.kv.as_ref().map_or(facts.kv_type, |kv| kv.kv_type);
    let tp = change.tp.unwrap_or(facts.settings.tp);
    if kv_type == facts.kv_type && tp == facts.settings.tp {
        return Some(cell);
    }
    if let Some((model, parallel)) = &facts.model {
        let now = counted(facts.version, &model.geometry(*parallel, facts.kv_type, 0))?;
        let then = counted(facts.version, &model.geometry(divided_by(*parallel, tp), kv_type, 0))?;
        return scale_cell(cell, then, now);
    }
    let (then, now) = (element_bytes(kv_type)?, element_bytes(facts.kv_type)?);
    let (ranks, ranks_now) =
        if facts.latent { (1, 1) } else { (i128::from(tp.max(1)), i128::from(facts.settings.tp.max(1))) };
    scale_cell(cell, then * ranks_now, now * ranks)
}

fn scale_cell(cell: Cell, then: i128, now: i128) -> Option<Cell> {
    let times = |bytes: i128| bytes.checked_mul(then);
    let exact = |bytes: i128| {
        times(bytes).filter(|product| now > 0 && product % now == 0).map(|product| product / now)
    };
    let (low, high) = (times(cell.low)?.checked_div_euclid(now)?, times(cell.high)?.checked_div_euclid(now)?);
    (low >= 1).then(|| Cell { low, high: high + 1, likely: cell.likely.and_then(exact) })
}

/// Types whose cells differ by the element's size alone.
fn element_bytes(kv_type: KvType) -> Option<i128> {
    match kv_type {
        KvType::Float32 => Some(4),
        KvType::Half => Some(2),
        KvType::Fp8 => Some(1),
        KvType::Mxfp8 | KvType::Fp4 => None,
    }
}

fn divided_by(parallel: Parallel, tp: u32) -> Parallel {
    let attention_dp = (parallel.tp / parallel.attention_tp.max(1)).max(1);
    Parallel { tp, attention_tp: (tp / attention_dp).max(1), ..parallel }
}

fn scaled_weights(facts: &Facts, tp: u32, weights: Quantity) -> Option<Quantity> {
    if let Some((model, parallel)) = &facts.model {
        let (now, then) =
            (model.weights(*parallel).total(), model.weights(divided_by(*parallel, tp)).total());
        return weights.scale(then, now);
    }
    weights.scale(i128::from(facts.settings.tp.max(1)), i128::from(tp.max(1)))
}

fn tokens(facts: &Facts, change: &Change, rest: Quantity, cell: Cell) -> (i128, i128) {
    let caps = Caps {
        max_total_tokens: change.max_total_tokens.unwrap_or(facts.user_cap),
        page_size: change.page_size.unwrap_or(facts.page_size),
        ..Caps::NONE
    };
    let (low, high) = cell.bounds();
    let capped =
        |tokens: i128| capped(facts.version, tokens, &caps).last().map_or(tokens, |step| step.tokens);
    (capped(rest.low().div_euclid(high.max(1))), capped(rest.high().div_euclid(low.max(1))))
}

/// KV of so many tokens, a draft's pool outside the budget included.
fn kv(facts: &Facts, divided: &Divided, (low, high): (i128, i128)) -> Quantity {
    let (low, high) = (low.max(0), high.max(0));
    let cells = [Some(divided.cell), divided.uncharged_cell.or(facts.uncharged_cell)];
    cells.into_iter().flatten().filter_map(|cell| Some(cell.bytes(low)?.hull(cell.bytes(high)?))).sum()
}

/// The pool stage beyond KV: as it was, the free list in proportion to the tokens.
fn overhead(facts: &Facts, (low, high): (i128, i128)) -> Option<Quantity> {
    Some(facts.overhead? + more_list(facts, low).hull(more_list(facts, high)))
}

fn more_list(facts: &Facts, tokens: i128) -> Quantity {
    let more = facts.tokens.map_or(0, |now| tokens.saturating_sub(now));
    Quantity::exact(more.saturating_mul(FREE_LIST_BYTES).clamp(-GIB, GIB))
}

/// What remained, less what the pool, its list and the graphs take more than before.
fn remaining(facts: &Facts, divided: &Divided, tokens: (i128, i128), graphs: Quantity) -> Option<Quantity> {
    let now = facts.tokens?;
    let before = kv(
        facts,
        &Divided { cell: facts.cell, uncharged_cell: facts.uncharged_cell, ..*divided },
        (now, now),
    );
    let after = kv(facts, divided, tokens);
    let list = more_list(facts, tokens.0).hull(more_list(facts, tokens.1));
    let weights = growth(facts.weights, divided.weights);
    let base = growth(Some(facts.baseline), Some(divided.baseline));
    Some(facts.remaining? - (after - before) - list - graphs - weights + base)
}
