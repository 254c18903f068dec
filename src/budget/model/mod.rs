//! A model's shape from its Hugging Face `config.json`: what a token and a request cost in memory, and what the weights
//! should weigh.
//!
//! The log tells what was allocated; the config tells what should have been. It is apart from the arithmetic next door
//! because it reads other people's JSON, with all its dialects.

mod config;
mod fields;
mod layers;
mod shape;
mod weights;

pub use config::ConfigError;
pub use layers::LayerKind;
pub use shape::Parallel;
pub use weights::{Weights, WeightsPart, index_total_size};

use super::cell::KvType;

/// A model's shape, whole: nothing is divided over ranks yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// `architectures`.
    pub architectures: Vec<String>,
    /// `hidden_size`.
    pub hidden: u32,
    /// `vocab_size`.
    pub vocabulary: u32,
    /// The kind of every layer, in order; layers of a built-in draft (MTP) are not among them.
    pub layers: Vec<LayerKind>,
    /// Built-in draft layers (`num_nextn_predict_layers`), 0 for none.
    pub nextn_layers: u32,
    /// Attention of the full-attention layers.
    pub attention: ModelAttention,
    /// Attention of the windowed layers, where there are any.
    pub window: Option<Heads>,
    /// State of the linear-attention layers, where there are any.
    pub state: Option<LinearState>,
    /// The feed-forward blocks.
    pub feed_forward: FeedForward,
    /// Whether input and output embeddings are one matrix.
    pub tied_embeddings: bool,
    /// The type of unquantised weights, which `kv_cache_dtype='auto'` takes too.
    pub dtype: KvType,
    /// How weights are quantised.
    pub quantization: Option<Quantization>,
    /// The vision tower, where the config has one.
    pub vision: Option<super::defaults::Vision>,
}

/// Heads of multi-head or grouped-query attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Query heads.
    pub heads: u32,
    /// KV heads.
    pub kv_heads: u32,
    /// Elements of a query or key per head.
    pub head_dim: u32,
    /// Elements of a value per head.
    pub value_head_dim: u32,
}

/// Attention as a config describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelAttention {
    /// Multi-head or grouped-query attention.
    Heads(Heads),
    /// Multi-head latent attention.
    Latent {
        /// Query heads.
        heads: u32,
        /// `kv_lora_rank`.
        rank: u32,
        /// `q_lora_rank`, where queries are compressed too.
        query_rank: Option<u32>,
        /// `qk_rope_head_dim`.
        rope_dim: u32,
        /// `qk_nope_head_dim`.
        nope_dim: u32,
        /// `v_head_dim`.
        value_head_dim: u32,
        /// `index_head_dim` and `index_n_heads` of sparse attention (DSA).
        index: Option<(u32, u32)>,
    },
}

/// State that a linear-attention layer keeps per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearState {
    /// Value heads (Mamba heads).
    pub heads: u32,
    /// Elements of a value per head.
    pub head_dim: u32,
    /// Elements of a state per value element: the key's head size.
    pub state_size: u32,
    /// Key groups.
    pub groups: u32,
    /// `conv_kernel`: the convolution keeps one less.
    pub kernel: u32,
    /// Bytes of a state element: 4 unless the config says otherwise.
    pub state_bytes: u32,
}

/// The feed-forward blocks of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedForward {
    /// `intermediate_size` of dense blocks.
    pub intermediate: u32,
    /// Matrices of a block: 3 with a gate, 2 without.
    pub matrices: u32,
    /// The mixture of experts, where there is one.
    pub experts: Option<Experts>,
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// Routed experts.
    pub count: u32,
    /// `intermediate_size` of one.
    pub intermediate: u32,
    /// `intermediate_size` of the shared experts together, 0 for none.
    pub shared: u32,
    /// Leading layers that are dense.
    pub dense_first: u32,
    /// Every how many layers experts stand: 1 for all.
    pub every: u32,
}

/// How the weights of linear layers are stored. Embeddings, norms and routers are not quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantization {
    /// Thousandths of a bit per weight, scales included.
    pub millibits: u32,
    /// Whether only routed experts are quantised.
    pub experts_only: bool,
}

#[cfg(test)]
mod tests;
