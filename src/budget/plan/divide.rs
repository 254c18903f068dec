//! What division over ranks and the type of KV decide: weights, what is free, bytes a token.

use super::{Change, Facts, PlanError};
use crate::budget::audit::Cell;
use crate::budget::cell::{KvType, counted};
use crate::budget::model::Parallel;
use crate::quantity::{GIB, Quantity};

/// Memory that communicators take where a single rank becomes several: 1,034 MiB were measured for two ranks with NCCL and
/// custom all-reduce, and channels grow with the ranks.
const COMMUNICATORS: i128 = 3 * GIB;
/// What division over ranks and the type of KV decide.
pub(super) struct Divided {
    pub(super) baseline: Quantity,
    pub(super) weights: Option<Quantity>,
    pub(super) available: Quantity,
    pub(super) cell: Cell,
    pub(super) uncharged_cell: Option<Cell>,
}

impl Divided {
    pub(super) fn unchanged(facts: &Facts) -> Divided {
        Divided {
            baseline: facts.baseline,
            weights: facts.weights,
            available: facts.available,
            cell: facts.cell,
            uncharged_cell: facts.uncharged_cell,
        }
    }

    pub(super) fn of(
        facts: &Facts,
        change: &Change,
        assumptions: &mut Vec<String>,
    ) -> Result<Divided, PlanError> {
        let tp = change.tp.filter(|tp| *tp != facts.settings.tp);
        let scale = |cell: Cell| scaled_cell(facts, change, cell);
        let mut divided = Divided {
            cell: scale(facts.cell).ok_or_else(|| unscaled(change))?,
            uncharged_cell: facts.uncharged_cell.and_then(scale),
            ..Divided::unchanged(facts)
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
