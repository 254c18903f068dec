//! Post-capture KV sizing (0.5.18 and later, off by default): the pool's address space is reserved first, its memory only
//! after graphs are captured, from what is then really free.

use super::defaults::{Settings, activation_tokens};
use super::python::truncate;
use crate::quantity::GIB;
use crate::version::Version;

/// What post-capture sizing asks, on one rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PostCapture {
    /// Free memory after capture, GiB, the least over the ranks.
    pub free_gib: f64,
    /// Free memory before weights, GiB, the least over the ranks.
    pub baseline_gib: f64,
    /// `mem_fraction_static`.
    pub fraction: f64,
    /// Reservation for multimodal buffers, GiB.
    pub multimodal_gib: f64,
    /// Memory for sampling that graphs do not lend, GiB (0.5.20 and later; printed by the server).
    pub sampling_gib: f64,
    /// MiB that activations need where some batches run without graphs: see [`activation_reserve_mib`].
    pub eager_reserve_mib: Option<f64>,
    /// Bytes of the pools that are backed by memory already, target and draft.
    pub backed: i128,
    /// Bytes of the corruption canary's workspace.
    pub canary: i128,
    /// Bytes per token.
    pub cell: i128,
    /// `page_size`.
    pub page_size: i128,
    /// The token count before capture, which is never exceeded.
    pub reserved_tokens: i128,
}

/// What post-capture sizing comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PostCaptureSize {
    /// What is kept free, GiB.
    pub headroom_gib: f64,
    /// Bytes for the pools.
    pub budget: i128,
    /// Tokens that they hold.
    pub tokens: i128,
}

impl PostCapture {
    /// The pool's final size. `None` for a cell below one byte.
    pub fn size(&self, version: Version) -> Option<PostCaptureSize> {
        if self.cell < 1 {
            return None;
        }
        let eager = self.eager_reserve_mib.map_or(0.0, |mib| mib / 1024.0);
        let sampling = if version >= Version::new(5, 20) { self.sampling_gib } else { 0.0 };
        let headroom_gib = (self.baseline_gib * (1.0 - self.fraction)).max(eager).max(sampling);
        let free = (self.free_gib - headroom_gib - self.multimodal_gib).max(0.0);
        let budget = truncate(free * GIB as f64)?.saturating_add(self.backed).saturating_sub(self.canary);
        let page = self.page_size.max(1);
        let tokens = (budget.div_euclid(self.cell).div_euclid(page) * page).min(self.reserved_tokens);
        Some(PostCaptureSize { headroom_gib, budget, tokens })
    }
}

/// MiB that activations need outside graphs (`pre_capture_activation_reserve_mb`): asked where the largest captured
/// decode batch is below `max_running_requests`, and for hybrid models with a state cache.
pub fn activation_reserve_mib(settings: &Settings) -> f64 {
    let parallel = f64::from(settings.tp) * f64::from(settings.pp);
    let reserve = 512.0 + activation_tokens(settings, true) as f64 * 1.5 + parallel / 8.0 * 1024.0;
    let large = settings.capacity_mib.is_some_and(|capacity| capacity > 60 * 1024);
    if large { reserve.max(10240.0) } else { reserve }
}

/// What decides whether post-capture sizing takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// `SGLANG_ENABLE_POST_CAPTURE_KV_SIZING` is set (0.5.23: or a model sets it).
    pub enabled: bool,
    /// The device is CUDA.
    pub cuda: bool,
    /// Decode context parallelism (`dcp_size` above 1).
    pub context_parallel_decode: bool,
    /// The model's attention is MLA.
    pub mla: bool,
    /// `prefill_only_disable_kv_cache`.
    pub no_kv_cache: bool,
    /// `enable_memory_saver`.
    pub memory_saver: bool,
    /// KV is stored as FP4.
    pub fp4: bool,
    /// The server only does prefill.
    pub prefill_only: bool,
    /// The server only does decode.
    pub decode_only: bool,
    /// Decode graphs are captured.
    pub decode_graphs: bool,
    /// Prefill graphs are captured.
    pub prefill_graphs: bool,
    /// The most tokens of one prefill step; 0 or less for no chunking.
    pub prefill_ceiling: i64,
    /// The most tokens that a prefill graph is captured for.
    pub prefill_graph_tokens: i64,
    /// `enable_kv_cache_sharding` (0.5.23).
    pub kv_sharding: bool,
}

/// What stands in the way of post-capture sizing; empty where it takes place. Conditions that no argument tells (model
/// families, custom Mooncake pools) are not asked.
pub fn obstacles(version: Version, conditions: &Conditions) -> Vec<&'static str> {
    let c = conditions;
    let fp4 = c.fp4 && version < Version::new(5, 23);
    let sharding = c.kv_sharding && version >= Version::new(5, 23);
    let prefill = !c.decode_only;
    [
        (version < Version::new(5, 18), "the release does not have it"),
        (!c.enabled, "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING is not set"),
        (!c.cuda, "the device is not CUDA"),
        (c.context_parallel_decode, "decode context parallelism"),
        (c.mla, "the model's attention is MLA"),
        (c.no_kv_cache, "--prefill-only-disable-kv-cache"),
        (c.memory_saver, "--enable-memory-saver"),
        (fp4, "KV is stored as FP4"),
        (!c.prefill_only && !c.decode_graphs, "decode graphs are off"),
        (prefill && !c.prefill_graphs, "prefill graphs are off"),
        (prefill && c.prefill_ceiling <= 0, "prefill is not chunked"),
        (prefill && c.prefill_graph_tokens < c.prefill_ceiling, "prefill graphs do not cover the chunk"),
        (sharding, "--enable-kv-cache-sharding"),
    ]
    .into_iter()
    .filter_map(|(stands, words)| stands.then_some(words))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: PostCapture = PostCapture {
        free_gib: 20.00,
        baseline_gib: 78.50,
        fraction: 0.980,
        multimodal_gib: 0.0,
        sampling_gib: 0.0,
        eager_reserve_mib: None,
        backed: 3 * GIB,
        canary: 0,
        cell: 131_072,
        page_size: 1,
        reserved_tokens: 1_000_000,
    };

    #[test]
    fn worked_example() {
        let size = EXAMPLE.size(Version::new(5, 18)).unwrap();
        assert!((size.headroom_gib - 1.57).abs() < 1e-9);
        assert_eq!((size.budget, size.tokens), (23_010_287_288, 175_554));
    }

    #[test]
    fn the_reserved_address_space_is_never_exceeded() {
        let small = PostCapture { reserved_tokens: 1000, ..EXAMPLE };
        assert_eq!(small.size(Version::new(5, 18)).unwrap().tokens, 1000);
        let full = PostCapture { free_gib: 1.0, ..EXAMPLE };
        assert_eq!(full.size(Version::new(5, 18)).unwrap().budget, 3 * GIB, "what is backed stays");
        assert_eq!(PostCapture { cell: 0, ..EXAMPLE }.size(Version::new(5, 18)), None);
    }

    #[test]
    fn headroom_is_the_largest_of_its_reasons() {
        let headroom = |example: PostCapture, version| example.size(version).unwrap().headroom_gib;
        let eager = PostCapture { eager_reserve_mib: Some(12_928.0), ..EXAMPLE };
        assert_eq!(headroom(eager, Version::new(5, 18)), 12.625);
        let sampling = PostCapture { sampling_gib: 2.0, ..EXAMPLE };
        assert_eq!(headroom(sampling, Version::new(5, 20)), 2.0);
        assert!(headroom(sampling, Version::new(5, 18)) < 2.0);
    }

    #[test]
    fn activations_outside_graphs() {
        let settings = Settings::new(Version::new(5, 18), Some(81_559));
        assert_eq!(activation_reserve_mib(&settings), 512.0 + 12_288.0 + 128.0);
        let small = Settings { chunked_prefill_size: Some(2048), ..settings.clone() };
        assert_eq!(activation_reserve_mib(&small), 10_240.0);
        let card = Settings { capacity_mib: Some(24_564), ..small };
        assert_eq!(activation_reserve_mib(&card), 512.0 + 3072.0 + 128.0);
    }

    #[test]
    fn obstacles_are_named() {
        let fine = Conditions {
            enabled: true,
            cuda: true,
            context_parallel_decode: false,
            mla: false,
            no_kv_cache: false,
            memory_saver: false,
            fp4: false,
            prefill_only: false,
            decode_only: false,
            decode_graphs: true,
            prefill_graphs: true,
            prefill_ceiling: 8192,
            prefill_graph_tokens: 8192,
            kv_sharding: false,
        };
        assert!(obstacles(Version::new(5, 18), &fine).is_empty());
        assert_eq!(obstacles(Version::new(5, 15), &fine), ["the release does not have it"]);
        let off = Conditions { enabled: false, mla: true, ..fine };
        assert_eq!(obstacles(Version::new(5, 20), &off).len(), 2);
        let fp4 = Conditions { fp4: true, ..fine };
        assert_eq!(obstacles(Version::new(5, 20), &fp4).len(), 1);
        assert!(obstacles(Version::new(5, 23), &fp4).is_empty());
        let decode = Conditions { decode_only: true, prefill_graphs: false, prefill_ceiling: -1, ..fine };
        assert!(obstacles(Version::new(5, 18), &decode).is_empty());
        let uncovered = Conditions { prefill_graph_tokens: 4096, ..fine };
        assert_eq!(obstacles(Version::new(5, 18), &uncovered), ["prefill graphs do not cover the chunk"]);
    }
}
