//! What a model's weights should weigh on one rank, as far as its config tells.

use super::{Experts, Heads, LayerKind, Model, ModelAttention, Parallel, Quantization, shape};
use crate::budget::cell::KvType;
use crate::quantity::{LARGEST, Quantity};
use serde_json::Value;

/// Vocabularies are padded to a multiple of this before they are split over ranks (`VocabParallelEmbedding`).
const VOCABULARY_PADDING: i128 = 64;

/// Expected weights of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// By part of the model, in the order of a forward pass.
    pub parts: Vec<WeightsPart>,
    /// Parts of the model that its config does not size, in words; where there are any, the rest is too little.
    pub unknown: Vec<&'static str>,
}

/// One part of the expected weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightsPart {
    /// What it is.
    pub label: &'static str,
    /// Bytes on the rank.
    pub bytes: i128,
}

impl Weights {
    /// All parts together.
    pub fn total(&self) -> i128 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

impl Model {
    /// The weights of one rank. Matrices are split over tensor-parallel ranks, attention over attention ranks; what is
    /// small or shared (norms, routers, compressed projections, KV heads fewer than ranks) is repeated on each.
    pub fn weights(&self, parallel: Parallel) -> Weights {
        let mut count = Count { model: self, parallel, parts: Vec::new() };
        let layers = parallel.layers(self.layers.len());
        if parallel.is_first() || parallel.is_last() && self.tied_embeddings {
            count.add("input embedding", count.vocabulary(parallel.attention_tp), false);
        }
        for (at, kind) in self.layers.iter().enumerate().filter(|(at, _)| layers.contains(at)) {
            count.layer(at, *kind);
        }
        if parallel.is_last() && !self.tied_embeddings {
            count.add("output head", count.vocabulary(parallel.tp), false);
        }
        Weights { parts: count.parts, unknown: self.unknown(parallel) }
    }

    fn unknown(&self, parallel: Parallel) -> Vec<&'static str> {
        let linear = self.stage_layers(parallel).iter().any(|kind| kind.is_linear());
        [(linear, "linear-attention layers"), (self.vision.is_some(), "the vision tower")]
            .into_iter()
            .filter_map(|(stands, words)| stands.then_some(words))
            .collect()
    }

    /// The weights of one rank, from the exact size of a checkpoint: exact on one rank, on several in the proportion that
    /// the config implies. `None` where the config sizes nothing.
    pub fn weights_from_total(&self, total_size: i128, parallel: Parallel) -> Option<Quantity> {
        if parallel.tp.max(1) == 1 && parallel.pp.max(1) == 1 {
            return Some(Quantity::exact(total_size));
        }
        let (rank, whole) = (self.weights(parallel).total(), self.weights(Parallel::ONE).total());
        Quantity::exact(total_size).scale(rank, whole)
    }
}

/// The exact size of a checkpoint, from its `model.safetensors.index.json`. Built-in draft layers are in it, though the
/// target does not load them.
pub fn index_total_size(index: &Value) -> Option<i128> {
    let size = index.get("metadata")?.get("total_size")?;
    let size = size.as_u64().map(i128::from).or_else(|| size.as_f64().map(|size| size as i128))?;
    (0..=LARGEST).contains(&size).then_some(size)
}

/// Weights counted so far.
struct Count<'a> {
    model: &'a Model,
    parallel: Parallel,
    parts: Vec<WeightsPart>,
}

impl Count<'_> {
    /// Adds `weights` of a part, quantised or not.
    fn add(&mut self, label: &'static str, weights: i128, quantised: bool) {
        let plain = match self.model.dtype {
            KvType::Float32 => 4,
            _ => 2,
        };
        let bytes = match self.model.quantization.filter(|_| quantised) {
            Some(Quantization { millibits, .. }) => weights * i128::from(millibits) / 8000,
            None => weights * plain,
        };
        match self.parts.iter_mut().find(|part| part.label == label) {
            Some(part) => part.bytes += bytes,
            None if bytes > 0 => self.parts.push(WeightsPart { label, bytes }),
            None => {}
        }
    }

    fn quantised(&self) -> bool {
        self.model.quantization.is_some_and(|quantization| !quantization.experts_only)
    }

    fn vocabulary(&self, ranks: u32) -> i128 {
        let rows = i128::from(self.model.vocabulary);
        let padded = (rows + VOCABULARY_PADDING - 1) / VOCABULARY_PADDING * VOCABULARY_PADDING;
        padded / i128::from(ranks.max(1)) * self.hidden()
    }

    fn hidden(&self) -> i128 {
        i128::from(self.model.hidden)
    }

    fn tp(&self) -> i128 {
        i128::from(self.parallel.tp.max(1))
    }

    fn attention_tp(&self) -> i128 {
        i128::from(self.parallel.attention_tp.max(1))
    }

    fn layer(&mut self, at: usize, kind: LayerKind) {
        self.add("norms", 2 * self.hidden(), false);
        match (kind, self.model.attention, self.model.window) {
            (LayerKind::Window, _, Some(heads)) => self.heads(heads),
            (LayerKind::Linear | LayerKind::None, ..) => {}
            (_, ModelAttention::Heads(heads), _) => self.heads(heads),
            (_, ModelAttention::Latent { .. }, _) => self.latent(),
        }
        let dense = self.model.feed_forward.intermediate;
        match self.model.feed_forward.experts {
            Some(experts) if has_experts(experts, at) => self.experts(experts),
            _ => self.add("dense feed-forward", self.block(dense) / self.tp(), self.quantised()),
        }
    }

    /// Weights of a feed-forward block of this width.
    fn block(&self, intermediate: u32) -> i128 {
        self.hidden() * i128::from(intermediate) * i128::from(self.model.feed_forward.matrices)
    }

    fn experts(&mut self, experts: Experts) {
        let routed = self.block(experts.intermediate) * i128::from(experts.count) / self.tp();
        self.add("routed experts", routed, self.model.quantization.is_some());
        self.add("shared experts", self.block(experts.shared) / self.tp(), self.quantised());
        self.add("routers", self.hidden() * i128::from(experts.count), false);
    }

    fn heads(&mut self, heads: Heads) {
        let Heads { heads: queries, head_dim, value_head_dim, .. } = heads;
        let [queries, key, value] = [queries, head_dim, value_head_dim].map(i128::from);
        let own_kv = i128::from(shape::kv_heads(heads, self.parallel));
        let split = queries * (key + value) / self.attention_tp();
        self.add("attention", self.hidden() * (split + own_kv * (key + value)), self.quantised());
    }

    fn latent(&mut self) {
        let ModelAttention::Latent { heads, rank, query_rank, rope_dim, nope_dim, value_head_dim, index } =
            self.model.attention
        else {
            return;
        };
        let [rank, rope, nope, value] = [rank, rope_dim, nope_dim, value_head_dim].map(i128::from);
        let own_heads = i128::from(heads) / self.attention_tp();
        let queries = own_heads * (nope + rope);
        let query = match query_rank.map(i128::from) {
            Some(query_rank) => self.hidden() * query_rank + query_rank * queries,
            None => self.hidden() * queries,
        };
        let compressed = self.hidden() * (rank + rope);
        let expanded = rank * own_heads * (nope + value);
        self.add(
            "attention",
            query + compressed + expanded + own_heads * value * self.hidden(),
            self.quantised(),
        );
        // Decoding absorbs the expansion into query and output: unquantised copies made after loading.
        self.add("absorbed attention matrices", expanded, false);
        if let Some((head_dim, heads)) = index {
            let (head_dim, heads) = (i128::from(head_dim), i128::from(heads));
            let source = query_rank.map_or(self.hidden(), i128::from);
            let index = source * heads * head_dim + self.hidden() * (head_dim + heads);
            self.add("sparse index", index, self.quantised());
        }
    }
}

/// Whether a layer, counted from 0, has experts: `first_k_dense_replace` leading layers do not, then every n-th has.
fn has_experts(experts: Experts, at: usize) -> bool {
    let at = u32::try_from(at).unwrap_or(u32::MAX);
    let counted = if experts.dense_first > 0 { at } else { at.saturating_add(1) };
    at >= experts.dense_first && counted.is_multiple_of(experts.every)
}
