//! A model's shape divided over ranks: the inputs of the cell, the window split and the state cache.

use super::{Heads, LayerKind, LinearState, Model, ModelAttention};
use crate::budget::cell::{Attention, Geometry, KvType, SparseIndex};
use crate::budget::sliding_window::SlidingWindow;
use crate::version::Version;

/// How a model is divided, and which part is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallel {
    /// Tensor-parallel size.
    pub tp: u32,
    /// Attention tensor-parallel size: `tp` over the attention data- and context-parallel sizes.
    pub attention_tp: u32,
    /// Pipeline-parallel size.
    pub pp: u32,
    /// The pipeline stage, from 0.
    pub stage: u32,
}

impl Parallel {
    /// A model on one rank.
    pub const ONE: Parallel = Parallel { tp: 1, attention_tp: 1, pp: 1, stage: 0 };

    /// The layers of the stage: equal shares, the remainder one each to the last stages (`get_pp_indices`). A partition
    /// set by environment variable is not known here.
    pub fn layers(&self, count: usize) -> std::ops::Range<usize> {
        let pp = self.pp.max(1) as usize;
        let stage = (self.stage as usize).min(pp - 1);
        let (share, larger) = (count / pp, count % pp);
        let start = |stage: usize| stage * share + (stage + larger).saturating_sub(pp);
        start(stage)..start(stage + 1)
    }

    pub(super) fn is_first(&self) -> bool {
        self.stage == 0
    }

    pub(super) fn is_last(&self) -> bool {
        self.stage + 1 >= self.pp.max(1)
    }
}

/// The first release with pools for windowed layers.
const FIRST_SPLIT: Version = Version::new(4, 10);
/// The first release that splits them off for named models only.
const FIRST_NAMED: Version = Version::new(5, 8);

/// Models whose windowed layers get a pool of their own, and the first release that names them. Before 0.5.8 none is
/// named: every model with a window does, but Llama 4, which must be asked to.
const SPLIT_WINDOWS: [(&str, Version); 12] = [
    ("Llama4ForConditionalGeneration", FIRST_NAMED),
    ("GptOssForCausalLM", FIRST_NAMED),
    ("MiMoV2FlashForCausalLM", FIRST_NAMED),
    ("Step3p5ForCausalLM", Version::new(5, 9)),
    ("MiMoV2ForCausalLM", Version::new(5, 12)),
    ("Gemma4ForCausalLM", Version::new(5, 12)),
    ("Gemma4ForConditionalGeneration", Version::new(5, 12)),
    ("LagunaForCausalLM", Version::new(5, 12)),
    ("Step3p7ForConditionalGeneration", Version::new(5, 15)),
    ("Gemma4UnifiedForConditionalGeneration", Version::new(5, 15)),
    ("UnlimitedOCRForCausalLM", Version::new(5, 15)),
    ("MellumForCausalLM", Version::new(5, 18)),
];

impl Model {
    /// The layers of a pipeline stage.
    pub(super) fn stage_layers(&self, parallel: Parallel) -> &[LayerKind] {
        self.layers.get(parallel.layers(self.layers.len())).unwrap_or(&[])
    }

    /// What the KV cache of one rank looks like. Windowed layers count as full ones: they are, unless
    /// [`Model::sliding_window`] says that the release splits them off. `draft_layers` as the draft model has them.
    pub fn geometry(&self, parallel: Parallel, kv_type: KvType, draft_layers: u32) -> Geometry {
        let keeps_kv = |kind: &&LayerKind| kind.is_full() || **kind == LayerKind::Window;
        let layers = self.stage_layers(parallel).iter().filter(keeps_kv).count() as u32;
        let attention = match self.attention {
            ModelAttention::Heads(heads) => Attention::Heads {
                kv_heads: kv_heads(heads, parallel),
                head_dim: heads.head_dim,
                value_head_dim: heads.value_head_dim,
            },
            ModelAttention::Latent { rank, rope_dim, index, .. } => Attention::Latent {
                rank,
                rope_dim,
                index: index.map(|(head_dim, _)| SparseIndex { head_dim, layers, raw_fp8: false }),
            },
        };
        Geometry { attention, layers, kv_type, draft_layers }
    }

    /// The two kinds of layers of one rank, where the release gives windowed layers a pool of their own (unless
    /// `--disable-hybrid-swa-memory`). `None` where it does not, and for block-scaled types.
    pub fn sliding_window(
        &self,
        version: Version,
        parallel: Parallel,
        kv_type: KvType,
        ratio: f64,
        draft_layers: u32,
    ) -> Option<SlidingWindow> {
        let (ModelAttention::Heads(full), Some(window)) = (self.attention, self.window) else { return None };
        if !self.splits_windows(version) {
            return None;
        }
        let element: u32 = match kv_type {
            KvType::Float32 => 4,
            KvType::Half => 2,
            KvType::Fp8 => 1,
            KvType::Fp4 | KvType::Mxfp8 => return None,
        };
        let bytes = |heads: Heads| {
            let per_head = heads.head_dim.checked_add(heads.value_head_dim)?;
            kv_heads(heads, parallel).checked_mul(per_head)?.checked_mul(element)
        };
        let layers = self.stage_layers(parallel);
        Some(SlidingWindow {
            full_layers: layers.iter().filter(|kind| kind.is_full()).count() as u32,
            window_layers: layers.iter().filter(|kind| **kind == LayerKind::Window).count() as u32,
            full_bytes: bytes(full)?,
            window_bytes: bytes(window)?,
            ratio,
            draft_layers,
        })
    }

    fn splits_windows(&self, version: Version) -> bool {
        let is = |name: &str| self.architectures.iter().any(|architecture| architecture == name);
        if version < FIRST_NAMED {
            return version >= FIRST_SPLIT && !is("Llama4ForConditionalGeneration");
        }
        SPLIT_WINDOWS.iter().any(|(name, first)| version >= *first && is(name))
    }

    /// Bytes of one request's state on one rank (`mamba_cache_per_req`): convolution in 2-byte elements, state in its own.
    /// `None` for models without linear attention and for dialects unknown here.
    pub fn state_bytes(&self, parallel: Parallel) -> Option<u64> {
        let state = self.state?;
        let layers = self.stage_layers(parallel).iter().filter(|kind| kind.is_linear()).count() as u64;
        layer_state_bytes(state, parallel).checked_mul(layers)
    }
}

/// KV heads of one rank: split over attention ranks, and repeated where there are fewer heads than ranks.
pub(super) fn kv_heads(heads: Heads, parallel: Parallel) -> u32 {
    (heads.kv_heads / parallel.attention_tp.max(1)).max(1)
}

/// `Mamba2StateShape.create`: groups are extended to the number of ranks where they do not divide.
fn layer_state_bytes(state: LinearState, parallel: Parallel) -> u64 {
    let ranks = u64::from(parallel.attention_tp.max(1));
    let [heads, head_dim, size, groups] =
        [state.heads, state.head_dim, state.state_size, state.groups].map(u64::from);
    let groups = if groups.is_multiple_of(ranks) { groups } else { ranks };
    let channels = heads.saturating_mul(head_dim).saturating_add((2 * groups).saturating_mul(size)) / ranks;
    let convolution = channels.saturating_mul(u64::from(state.kernel.saturating_sub(1)));
    let temporal = (heads / ranks).saturating_mul(head_dim).saturating_mul(size);
    convolution.saturating_mul(2).saturating_add(temporal.saturating_mul(u64::from(state.state_bytes)))
}
