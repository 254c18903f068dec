//! The vocabulary of start-up: stages, workers, and the rank coordinates that log lines carry.
//!
//! Shared by the grammar (which names them), the ledger (which posts to them) and every renderer; it holds no
//! behaviour beyond naming.

use std::fmt;

/// A step of start-up that memory is posted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Process groups, NCCL, custom all-reduce.
    DistributedInit,
    /// Model weights.
    Weights,
    /// KV pool, or the whole memory pool where the log splits it no further.
    KvCache,
    /// Per-request state of Mamba and linear-attention models.
    MambaCache,
    /// Request table and pools up to `Memory pool end`, where no KV line was printed.
    MemoryPool,
    /// Attention backend and kernel warm-up.
    AttentionBackend,
    /// CUDA graphs of decode.
    GraphDecode,
    /// CUDA graphs of prefill, piecewise ones included.
    GraphPrefill,
    /// CUDA graphs of the draft model's decode.
    GraphDraft,
    /// CUDA graphs of the draft model's extend.
    GraphDraftExtend,
    /// CUDA graphs of the target's verify step.
    GraphVerify,
    /// LoRA adapters and buffers.
    Lora,
    /// KV pool mapped after graph capture (0.5.18+).
    PostCaptureResize,
    /// The summary line: free memory when start-up was done.
    Ready,
    /// A stage no release known here prints; its own words are kept.
    Other,
}

impl Stage {
    /// The name in JSON, CSV and thresholds.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::DistributedInit => "distributed_init",
            Stage::Weights => "weights",
            Stage::KvCache => "kv_cache",
            Stage::MambaCache => "mamba_cache",
            Stage::MemoryPool => "memory_pool",
            Stage::AttentionBackend => "attention_backend",
            Stage::GraphDecode => "graph_decode",
            Stage::GraphPrefill => "graph_prefill",
            Stage::GraphDraft => "graph_draft",
            Stage::GraphDraftExtend => "graph_draft_extend",
            Stage::GraphVerify => "graph_verify",
            Stage::Lora => "lora",
            Stage::PostCaptureResize => "post_capture_resize",
            Stage::Ready => "ready",
            Stage::Other => "other",
        }
    }

    /// Whether the stage captures CUDA graphs.
    pub const fn is_capture(self) -> bool {
        matches!(
            self,
            Stage::GraphDecode
                | Stage::GraphPrefill
                | Stage::GraphDraft
                | Stage::GraphDraftExtend
                | Stage::GraphVerify
        )
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Which model inside a rank a stage belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Worker {
    /// The model that is served.
    #[default]
    Target,
    /// The draft model of speculative decoding.
    Draft,
}

impl Worker {
    /// The name in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Worker::Target => "target",
            Worker::Draft => "draft",
        }
    }
}

/// A rank's place in the parallel layout, as far as its lines say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Coordinates {
    /// Data-parallel rank.
    pub dp: Option<u32>,
    /// Pipeline stage.
    pub pp: Option<u32>,
    /// Tensor-parallel rank.
    pub tp: Option<u32>,
    /// Expert-parallel rank.
    pub ep: Option<u32>,
    /// Attention context-parallel rank.
    pub attn_cp: Option<u32>,
    /// MoE data-parallel rank.
    pub moe_dp: Option<u32>,
    /// `[gpu_id={n}]` of 0.1.20.
    pub gpu: Option<u32>,
}

/// A rank tag: its coordinates and how it was printed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RankTag {
    /// The coordinates read from the tag.
    pub coordinates: Coordinates,
    /// The tag as printed, words separated by single spaces (`DP0 TP0 EP0`); empty where the line has none.
    pub text: String,
    /// Further ranks that a log viewer merged into the line (`TP0..3` gives the coordinates of 0 and `through` 3).
    pub through: Option<u32>,
}
