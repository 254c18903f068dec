//! What a model's config lets expect of weights and cell, beside what the ledger shows.

use super::world::{World, page_size};
use super::{AuditInputs, cell, ledger_of, span};
use crate::budget::cell::{KvType, stored};
use crate::budget::model::{Model, Parallel};
use crate::launch::{Launch, Rank};
use crate::quantity::Quantity;
use crate::stage::{Stage, Worker};
use crate::version::Version;

/// A model's files, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// Its config.
    pub model: Model,
    /// The size of its checkpoint, from a safetensors index.
    pub checkpoint_bytes: Option<i128>,
}

/// Expectation and measurement on one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The rank, as an index into the launch's ranks.
    pub rank: usize,
    /// Bytes of weights on it: by the checkpoint's size where it was given, else by the config.
    pub weights: Option<Quantity>,
    /// Whether the checkpoint's size was given.
    pub from_checkpoint: bool,
    /// Parts of the model that the config does not size; the expectation is then too low.
    pub unsized_parts: Vec<&'static str>,
    /// Bytes of weights in the ledger.
    pub measured_weights: Option<Quantity>,
    /// Bytes per token that the target's pool takes, fewest and most over the possible releases.
    pub cell: Option<(i128, i128)>,
    /// Bytes per token by the pool's lines.
    pub measured_cell: Option<cell::Cell>,
}

impl Expected {
    pub(super) fn of(inputs: &AuditInputs<'_>, versions: &[Version], world: &World) -> Option<Expected> {
        let facts = inputs.model?;
        let rank =
            world.available.as_ref().map(|available| available.rank).or(world.ranks.first().copied())?;
        let parallel = parallel(inputs.launch, inputs.launch.ranks.get(rank)?);
        let ledger = ledger_of(inputs, rank)?;
        let from_config = facts.model.weights(parallel);
        let by_checkpoint =
            facts.checkpoint_bytes.and_then(|bytes| facts.model.weights_from_total(bytes, parallel));
        let kv_type = kv_type(inputs.launch, &facts.model);
        let cells = kv_type.map(|kv_type| {
            let geometry = facts.model.geometry(parallel, kv_type, 0);
            versions.iter().filter_map(|version| stored(*version, &geometry)).collect::<Vec<_>>()
        });
        let windowed = kv_type.is_some_and(|kv_type| {
            versions
                .iter()
                .any(|version| facts.model.sliding_window(*version, parallel, kv_type, 0.8, 0).is_some())
        });
        let pool = ledger.stage(Stage::KvCache, Worker::Target);
        Some(Expected {
            rank,
            from_checkpoint: by_checkpoint.is_some(),
            unsized_parts: if by_checkpoint.is_some() { Vec::new() } else { from_config.unknown.clone() },
            weights: by_checkpoint
                .or_else(|| Some(Quantity::exact(from_config.total())).filter(|_| from_config.total() > 0))
                .map(|weights| weights.hull(weights + spare_head(&facts.model, parallel))),
            measured_weights: ledger.stage(Stage::Weights, Worker::Target).and_then(|weights| weights.used),
            cell: cells.filter(|_| !windowed).and_then(span),
            measured_cell: pool.and_then(|pool| cell::of_pool(pool, page_size(inputs.launch))),
        })
    }
}

/// An output head that a stage other than the last may hold without needing it: Llama's class builds one on every
/// pipeline stage, most others only on the last (`models/llama.py`; measured in 0.5.12).
fn spare_head(model: &Model, parallel: Parallel) -> Quantity {
    let last = Parallel { stage: parallel.pp.saturating_sub(1), ..parallel };
    if parallel.stage >= last.stage || model.tied_embeddings {
        return Quantity::ZERO;
    }
    let head = model.weights(last).parts.into_iter().find(|part| part.label == "output head");
    Quantity::exact(head.map_or(0, |head| head.bytes))
}

/// How a launch divides its model, and which part a rank holds.
pub(in crate::budget) fn parallel(launch: &Launch, rank: &Rank) -> Parallel {
    let size = |key: &str| {
        let size = launch.args().and_then(|arguments| arguments.integer(key)).unwrap_or(1);
        u32::try_from(size).unwrap_or(1).max(1)
    };
    let tp = size("tp_size");
    let shared = launch.args().and_then(|arguments| arguments.flag("enable_dp_attention")) == Some(true);
    let attention_dp = if shared { size("dp_size") } else { 1 };
    let attention_tp = (tp / attention_dp / size("attn_cp_size")).max(1);
    Parallel { tp, attention_tp, pp: size("pp_size"), stage: rank.tag.coordinates.pp.unwrap_or(0) }
}

/// How KV is stored, by the arguments.
pub(in crate::budget) fn kv_type(launch: &Launch, model: &Model) -> Option<KvType> {
    let named = launch.args().and_then(|arguments| arguments.text("kv_cache_dtype")).unwrap_or("auto");
    KvType::named(named, model.dtype)
}
