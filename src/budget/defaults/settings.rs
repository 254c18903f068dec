//! The inputs of the default rules, typed.

use crate::version::Version;

/// Which half of a disaggregated deployment a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Disaggregation {
    /// It does both prefill and decode (`disaggregation_mode='null'`).
    #[default]
    None,
    /// Prefill only.
    Prefill,
    /// Decode only.
    Decode,
}

/// The kinds of speculative decoding that the rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Speculation {
    /// None.
    #[default]
    None,
    /// N-gram look-up: no draft model.
    Ngram,
    /// A draft model of its own (`STANDALONE`).
    Standalone,
    /// A draft head on the target's hidden states: EAGLE, EAGLE3, NEXTN and others.
    Eagle,
}

impl Speculation {
    /// The kind that `speculative_algorithm` names; unknown names count as draft heads, as SGLang's rules do.
    pub fn named(algorithm: Option<&str>) -> Speculation {
        match algorithm.map(str::to_ascii_uppercase).as_deref() {
            None => Speculation::None,
            Some("NGRAM") => Speculation::Ngram,
            Some("STANDALONE") => Speculation::Standalone,
            Some(_) => Speculation::Eagle,
        }
    }
}

/// The size of a multimodal model's vision tower (`vision_config`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vision {
    /// `num_hidden_layers`; SGLang takes 24 where it is missing.
    pub layers: u64,
    /// `hidden_size`; SGLang takes 1024 where it is missing.
    pub hidden_size: u64,
}

/// Everything that the default rules of any release ask. `None` means that the user left it unset.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The release.
    pub version: Version,
    /// nvidia-smi's `memory.total` in MiB, the smallest of the host's cards. `None` where SGLang could not read it.
    pub capacity_mib: Option<u32>,
    /// Tensor-parallel size.
    pub tp: u32,
    /// Pipeline-parallel size.
    pub pp: u32,
    /// Data-parallel size as the DP-attention term multiplies it: `dp_size`, from 0.5.23 `attn_dp_size`.
    pub dp: u32,
    /// DP attention.
    pub dp_attention: bool,
    /// `chunked_prefill_size`; 0 or less switches chunking off.
    pub chunked_prefill_size: Option<i64>,
    /// `max_prefill_tokens`, which takes its place then.
    pub max_prefill_tokens: i64,
    /// `max_total_tokens`, which caps the sizes captured for prefill.
    pub max_total_tokens: Option<i64>,
    /// `max_running_requests`.
    pub max_running_requests: Option<u32>,
    /// The largest decode batch to capture (`cuda_graph_max_bs`, later `…_decode`; or the largest of an explicit list).
    pub graph_max_batch: Option<u32>,
    /// Whether decode graphs are captured at all (asked from 0.5.15).
    pub decode_graphs: bool,
    /// Whether prefill (piecewise) graphs are captured: off by default up to 0.5.9, on after.
    pub prefill_graphs: bool,
    /// The most tokens that a prefill graph is captured for.
    pub prefill_graph_max_tokens: Option<i64>,
    /// How many sizes they are captured for, where the list is given.
    pub prefill_graph_sizes: Option<usize>,
    /// Whether prefill graphs use the breakable backend (asked from 0.5.18).
    pub breakable_prefill: bool,
    /// Whether the model's attention is MLA.
    pub mla: bool,
    /// Speculative decoding.
    pub speculation: Speculation,
    /// `speculative_num_draft_tokens`.
    pub draft_tokens: Option<u32>,
    /// Whether experts communicate through DeepEP.
    pub deepep: bool,
    /// Prefill/decode disaggregation.
    pub disaggregation: Disaggregation,
    /// Whether the model is multimodal.
    pub multimodal: bool,
    /// The model's vision tower, where its config has one.
    pub vision: Option<Vision>,
    /// Whether a multimodal model serves text only (`language_only`).
    pub language_only: bool,
    /// Whether post-capture KV sizing is planned (0.5.18 and later, off by default).
    pub post_capture: bool,
    /// Whether the AITER attention backend serves contexts above 8192 tokens.
    pub aiter_long_context: bool,
    /// Whether the device is an XPU.
    pub xpu: bool,
}

impl Settings {
    /// The settings of a launch that sets nothing, on cards of `capacity_mib`.
    pub fn new(version: Version, capacity_mib: Option<u32>) -> Settings {
        Settings {
            version,
            capacity_mib,
            tp: 1,
            pp: 1,
            dp: 1,
            dp_attention: false,
            chunked_prefill_size: None,
            max_prefill_tokens: 16384,
            max_total_tokens: None,
            max_running_requests: None,
            graph_max_batch: None,
            decode_graphs: true,
            prefill_graphs: version >= Version::new(5, 10),
            prefill_graph_max_tokens: None,
            prefill_graph_sizes: None,
            breakable_prefill: false,
            mla: false,
            speculation: Speculation::None,
            draft_tokens: None,
            deepep: false,
            disaggregation: Disaggregation::None,
            multimodal: false,
            vision: None,
            language_only: false,
            post_capture: false,
            aiter_long_context: false,
            xpu: false,
        }
    }

    /// Tensor-parallel times pipeline-parallel size.
    pub(super) fn parallel_size(&self) -> f64 {
        f64::from(self.tp) * f64::from(self.pp)
    }
}
