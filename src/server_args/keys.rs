//! In which releases each memory-relevant argument exists.
//!
//! The fields of `ServerArgs` come and go between releases, so a printed line dates itself. The ranges were read from the
//! field declarations of every release in [`crate::version::KNOWN`] (`server_args.py`, and `arg_groups/fields/` from
//! 0.5.20); within its range no argument is missing in any of them. It is data, apart from the reasoning in `release`.

use crate::version::{Version, VersionRange};

/// One argument and the releases that have it.
pub(super) struct Key {
    /// The argument's name.
    pub(super) name: &'static str,
    /// The first and last known release that has it.
    pub(super) range: VersionRange,
}

const fn row(name: &'static str, first: Version, last: Version) -> Key {
    Key { name, range: VersionRange { first, last } }
}

/// The memory-relevant arguments, grouped as SGLang groups them.
#[rustfmt::skip] // One row a line, so that a release can be read down the columns.
pub(super) static KEYS: &[Key] = &[
    row("model_path", Version::new(1, 20), Version::new(5, 23)),
    row("load_format", Version::new(1, 20), Version::new(5, 23)),
    row("dtype", Version::new(1, 20), Version::new(5, 23)),
    row("quantization", Version::new(1, 20), Version::new(5, 23)),
    row("kv_cache_dtype", Version::new(2, 15), Version::new(5, 23)),
    row("context_length", Version::new(1, 20), Version::new(5, 23)),
    row("device", Version::post(3, 6, 3), Version::new(5, 23)),
    row("mem_fraction_static", Version::new(1, 20), Version::new(5, 23)),
    row("max_total_tokens", Version::new(2, 15), Version::new(5, 23)),
    row("max_running_requests", Version::new(1, 20), Version::new(5, 23)),
    row("max_num_reqs", Version::new(2, 15), Version::new(2, 15)),
    row("max_queued_requests", Version::post(4, 10, 2), Version::new(5, 23)),
    row("chunked_prefill_size", Version::new(2, 15), Version::new(5, 23)),
    row("max_prefill_tokens", Version::new(1, 20), Version::new(5, 23)),
    row("prefill_max_requests", Version::post(5, 8, 1), Version::new(5, 23)),
    row("page_size", Version::post(4, 6, 5), Version::new(5, 23)),
    row("swa_full_tokens_ratio", Version::post(4, 10, 2), Version::new(5, 23)),
    row("disable_hybrid_swa_memory", Version::post(4, 10, 2), Version::new(5, 23)),
    row("cpu_offload_gb", Version::post(3, 6, 3), Version::new(5, 23)),
    row("offload_group_size", Version::post(5, 1, 3), Version::new(5, 23)),
    row("tp_size", Version::new(1, 20), Version::new(5, 23)),
    row("pp_size", Version::post(4, 6, 5), Version::new(5, 23)),
    row("dp_size", Version::new(1, 20), Version::new(5, 23)),
    row("attn_dp_size", Version::new(5, 23), Version::new(5, 23)),
    row("ep_size", Version::post(4, 1, 7), Version::new(5, 23)),
    row("attn_cp_size", Version::new(5, 9), Version::new(5, 23)),
    row("dcp_size", Version::new(5, 15), Version::new(5, 23)),
    row("moe_dp_size", Version::new(5, 9), Version::new(5, 23)),
    row("moe_dense_tp_size", Version::post(4, 6, 5), Version::new(5, 23)),
    row("nnodes", Version::new(1, 20), Version::new(5, 23)),
    row("node_rank", Version::new(1, 20), Version::new(5, 23)),
    row("base_gpu_id", Version::post(3, 6, 3), Version::new(5, 23)),
    row("gpu_id_step", Version::post(4, 3, 4), Version::new(5, 23)),
    row("dist_init_addr", Version::post(3, 6, 3), Version::new(5, 23)),
    row("nccl_init_addr", Version::new(1, 20), Version::new(2, 15)),
    row("enable_dp_attention", Version::post(3, 6, 3), Version::new(5, 23)),
    row("enable_deepep_moe", Version::post(4, 6, 5), Version::post(5, 1, 3)),
    row("moe_a2a_backend", Version::post(4, 10, 2), Version::new(5, 23)),
    row("deepep_mode", Version::post(4, 6, 5), Version::new(5, 23)),
    row("moe_runner_backend", Version::post(5, 1, 3), Version::new(5, 23)),
    row("ep_num_redundant_experts", Version::post(4, 6, 5), Version::new(5, 23)),
    row("enable_eplb", Version::post(4, 6, 5), Version::new(5, 23)),
    row("attention_backend", Version::post(3, 6, 3), Version::new(5, 23)),
    row("prefill_attention_backend", Version::post(4, 10, 2), Version::new(5, 23)),
    row("decode_attention_backend", Version::post(4, 10, 2), Version::new(5, 23)),
    row("disable_flashinfer", Version::new(1, 20), Version::new(2, 15)),
    row("disable_radix_cache", Version::new(1, 20), Version::new(5, 23)),
    row("disable_overlap_schedule", Version::post(3, 6, 3), Version::new(5, 23)),
    row("disable_cuda_graph", Version::new(1, 20), Version::new(5, 23)),
    row("disable_cuda_graph_padding", Version::new(2, 15), Version::new(5, 23)),
    row("cuda_graph_max_bs", Version::post(3, 6, 3), Version::new(5, 12)),
    row("cuda_graph_bs", Version::post(4, 1, 7), Version::new(5, 12)),
    row("cuda_graph_config", Version::new(5, 15), Version::new(5, 23)),
    row("cuda_graph_max_bs_decode", Version::new(5, 15), Version::new(5, 23)),
    row("cuda_graph_bs_decode", Version::new(5, 15), Version::new(5, 23)),
    row("cuda_graph_max_bs_prefill", Version::new(5, 15), Version::new(5, 23)),
    row("cuda_graph_bs_prefill", Version::new(5, 15), Version::new(5, 23)),
    row("cuda_graph_backend_decode", Version::new(5, 15), Version::new(5, 23)),
    row("cuda_graph_backend_prefill", Version::new(5, 15), Version::new(5, 23)),
    row("disable_prefill_cuda_graph", Version::new(5, 15), Version::new(5, 23)),
    row("disable_decode_cuda_graph", Version::new(5, 15), Version::new(5, 23)),
    row("enable_piecewise_cuda_graph", Version::post(5, 6, 2), Version::new(5, 9)),
    row("disable_piecewise_cuda_graph", Version::new(5, 10), Version::new(5, 12)),
    row("piecewise_cuda_graph_max_tokens", Version::post(5, 6, 2), Version::new(5, 12)),
    row("piecewise_cuda_graph_tokens", Version::post(5, 6, 2), Version::new(5, 12)),
    row("enable_breakable_cuda_graph", Version::new(5, 12), Version::new(5, 12)),
    row("enable_torch_compile", Version::new(2, 15), Version::new(5, 23)),
    row("torch_compile_max_bs", Version::post(3, 6, 3), Version::new(5, 23)),
    row("speculative_algorithm", Version::post(4, 1, 7), Version::new(5, 23)),
    row("speculative_draft_model_path", Version::post(4, 1, 7), Version::new(5, 23)),
    row("speculative_num_steps", Version::post(4, 1, 7), Version::new(5, 23)),
    row("speculative_eagle_topk", Version::post(4, 1, 7), Version::new(5, 23)),
    row("speculative_num_draft_tokens", Version::post(4, 1, 7), Version::new(5, 23)),
    row("speculative_draft_load_format", Version::post(5, 6, 2), Version::new(5, 23)),
    row("speculative_draft_kv_cache_dtype", Version::new(5, 18), Version::new(5, 23)),
    row("lora_paths", Version::post(3, 6, 3), Version::new(5, 23)),
    row("enable_lora", Version::post(4, 10, 2), Version::new(5, 23)),
    row("max_loras_per_batch", Version::post(3, 6, 3), Version::new(5, 23)),
    row("max_lora_rank", Version::post(4, 10, 2), Version::new(5, 23)),
    row("lora_backend", Version::post(4, 3, 4), Version::new(5, 23)),
    row("max_mamba_cache_size", Version::new(5, 3), Version::new(5, 23)),
    row("mamba_full_memory_ratio", Version::post(5, 6, 2), Version::new(5, 23)),
    row("mamba_ssm_dtype", Version::new(5, 3), Version::new(5, 23)),
    row("enable_hierarchical_cache", Version::post(4, 3, 4), Version::new(5, 23)),
    row("hicache_ratio", Version::post(4, 6, 5), Version::new(5, 23)),
    row("hicache_size", Version::post(4, 6, 5), Version::new(5, 23)),
    row("enable_memory_saver", Version::post(4, 1, 7), Version::new(5, 23)),
    row("enable_symm_mem", Version::post(4, 10, 2), Version::new(5, 23)),
    row("enable_double_sparsity", Version::post(3, 6, 3), Version::new(5, 10)),
    row("enable_mla", Version::new(2, 15), Version::new(2, 15)),
    row("disable_mla", Version::post(3, 6, 3), Version::post(4, 3, 4)),
    row("disaggregation_mode", Version::post(4, 6, 5), Version::new(5, 23)),
    row("enable_multimodal", Version::post(4, 6, 5), Version::new(5, 23)),
    row("language_only", Version::post(5, 8, 1), Version::new(5, 23)),
    row("is_embedding", Version::new(2, 15), Version::new(5, 23)),
    row("prefill_only_disable_kv_cache", Version::new(5, 12), Version::new(5, 23)),
    row("enable_unified_memory", Version::new(5, 15), Version::new(5, 23)),
    row("enable_kv_cache_sharding", Version::new(5, 23), Version::new(5, 23)),
    row("mm_feature_transport", Version::new(5, 18), Version::new(5, 23)),
    row("weight_cache_mode", Version::new(5, 18), Version::new(5, 23)),
    row("log_level", Version::new(1, 20), Version::new(5, 23)),
    row("random_seed", Version::new(1, 20), Version::new(5, 23)),
];

/// The known releases that have the argument `key`. `None` for an argument that this table does not list.
pub fn key_range(key: &str) -> Option<VersionRange> {
    KEYS.iter().find(|row| row.name == key).map(|row| row.range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::KNOWN;

    #[test]
    fn every_range_is_bounded_by_known_releases_in_order() {
        for key in KEYS {
            assert!(KNOWN.contains(&key.range.first) && KNOWN.contains(&key.range.last), "{}", key.name);
            assert!(key.range.first <= key.range.last, "{}", key.name);
        }
    }

    #[test]
    fn names_are_unique() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(KEYS[at + 1..].iter().all(|other| other.name != key.name), "{} twice", key.name);
        }
    }

    #[test]
    fn renamed_arguments_do_not_overlap() {
        let old = key_range("cuda_graph_max_bs").unwrap();
        let new = key_range("cuda_graph_max_bs_decode").unwrap();
        assert_eq!((old.last, new.first), (Version::new(5, 12), Version::new(5, 15)));
        assert_eq!(key_range("no_such_argument"), None);
    }
}
