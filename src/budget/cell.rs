//! Bytes of KV cache per token on one rank: the divisor of the budget, SGLang's `cell_size`.
//!
//! Counted and stored bytes are kept apart: for some models and releases SGLang counts less than its pool takes, and then
//! the pool is larger than the budget.

use super::python::truncate;
use crate::version::Version;

/// How KV entries are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KvType {
    /// 4 bytes.
    Float32,
    /// 2 bytes: bfloat16 or float16.
    Half,
    /// 1 byte: any FP8.
    Fp8,
    /// 1 byte and a shared scale per 32 elements.
    Mxfp8,
    /// Half a byte and a scale per 16 elements.
    Fp4,
}

impl KvType {
    /// The type that `kv_cache_dtype` names; `auto` takes the model's. `None` for a name unknown here.
    pub fn named(kv_cache_dtype: &str, model: KvType) -> Option<KvType> {
        Some(match kv_cache_dtype {
            "auto" => model,
            "bfloat16" | "bf16" | "float16" | "half" => KvType::Half,
            "float32" => KvType::Float32,
            "mxfp8" => KvType::Mxfp8,
            name if name.starts_with("fp8") || name.starts_with("float8") => KvType::Fp8,
            name if name.starts_with("fp4") || name.starts_with("float4") => KvType::Fp4,
            _ => return None,
        })
    }

    /// The element size that torch reports: 1 byte for FP4 too, which packs two.
    const fn element_bytes(self) -> i128 {
        match self {
            KvType::Float32 => 4,
            KvType::Half => 2,
            KvType::Fp8 | KvType::Mxfp8 | KvType::Fp4 => 1,
        }
    }
}

/// What attention keeps per token and layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attention {
    /// Multi-head or grouped-query attention: keys and values.
    Heads {
        /// KV heads of one rank: `max(1, heads / attention tensor-parallel size)`.
        kv_heads: u32,
        /// Elements of a key per head.
        head_dim: u32,
        /// Elements of a value per head.
        value_head_dim: u32,
    },
    /// Multi-head latent attention: one compressed entry, the same on every rank.
    Latent {
        /// `kv_lora_rank`.
        rank: u32,
        /// `qk_rope_head_dim`.
        rope_dim: u32,
        /// The index of sparse attention (DSA), where the model has one.
        index: Option<SparseIndex>,
    },
}

/// The index by which sparse attention (DSA) selects tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseIndex {
    /// `index_head_dim`.
    pub head_dim: u32,
    /// Local layers that keep an index: all of them, unless some skip the selection (asked from 0.5.18).
    pub layers: u32,
    /// Whether FP8 rows are stored without scales (the TensorRT-LLM backend, from 0.5.9).
    pub raw_fp8: bool,
}

/// What the KV cache of one rank looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// What a layer keeps.
    pub attention: Attention,
    /// Local layers with full attention: of this pipeline stage, without linear-attention layers.
    pub layers: u32,
    /// How it is stored.
    pub kv_type: KvType,
    /// Layers of an EAGLE or STANDALONE draft model, 0 for none.
    pub draft_layers: u32,
}

/// FP8 rows of sparse attention hold a 4-byte scale for each of this many elements; so does the index.
const SCALE_BLOCK: i128 = 128;

/// The bytes per token that SGLang divides the budget by on one rank. `None` where the release cannot store the type, or
/// its size is not derivable (FP4 with heads from 0.5.23: a recipe decides).
///
/// Sources: `profile_max_num_token` (up to 0.5.6), `get_cell_size_per_token` (0.5.8 to 0.5.10), `DefaultPoolConfigurator`
/// (0.5.12 and later).
pub fn counted(version: Version, geometry: &Geometry) -> Option<i128> {
    let main = match geometry.attention {
        Attention::Heads { .. } => heads(version, geometry)?,
        Attention::Latent { .. } => latent(version, geometry, Purpose::Count)?,
    };
    let index = if version >= Version::new(5, 6) { index_bytes(version, geometry) } else { 0 };
    with_draft(version, geometry, main, index)
}

/// The bytes per token that the target's pool takes on one rank. It exceeds [`counted`] for sparse attention: up to 0.5.3
/// by the index, with FP8 from 0.5.6 to 0.5.15 by the scales and the unquantised rotary part. Draft layers are not in it.
pub fn stored(version: Version, geometry: &Geometry) -> Option<i128> {
    match geometry.attention {
        Attention::Heads { kv_heads, head_dim, value_head_dim } => match geometry.kv_type {
            KvType::Fp4 | KvType::Mxfp8 => heads(version, geometry),
            simple => {
                let per_head = i128::from(head_dim) + i128::from(value_head_dim);
                Some(i128::from(kv_heads) * per_head * i128::from(geometry.layers) * simple.element_bytes())
            }
        },
        Attention::Latent { .. } => {
            Some(latent(version, geometry, Purpose::Store)? + index_bytes(version, geometry))
        }
    }
}

fn heads(version: Version, geometry: &Geometry) -> Option<i128> {
    let Attention::Heads { kv_heads, head_dim, value_head_dim } = geometry.attention else { return None };
    let (kv_heads, key, layers) = (i128::from(kv_heads), i128::from(head_dim), i128::from(geometry.layers));
    let value = if version >= Version::new(5, 8) { i128::from(value_head_dim) } else { key };
    let plain = kv_heads * (key + value) * layers * geometry.kv_type.element_bytes();
    match geometry.kv_type {
        KvType::Float32 | KvType::Half | KvType::Fp8 => Some(plain),
        KvType::Fp4 if version >= Version::new(5, 23) || version < Version::new(5, 6) => None,
        KvType::Fp4 => {
            let workspace = if version >= Version::new(5, 18) { kv_heads * key * 2 } else { 0 };
            Some(plain / 2 + kv_heads * key * layers * 2 / 16 + workspace)
        }
        KvType::Mxfp8 if version < Version::new(5, 18) => None,
        KvType::Mxfp8 => Some(plain + kv_heads * (key + value) * layers / 32),
    }
}

/// Whether a size is asked for the budget or for the pool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Count,
    Store,
}

fn latent(version: Version, geometry: &Geometry, purpose: Purpose) -> Option<i128> {
    let Attention::Latent { rank, rope_dim, index } = geometry.attention else { return None };
    let (rank, rope_dim, layers) = (i128::from(rank), i128::from(rope_dim), i128::from(geometry.layers));
    let plain = (rank + rope_dim) * layers * geometry.kv_type.element_bytes();
    match geometry.kv_type {
        KvType::Mxfp8 => None,
        KvType::Fp4 if version < Version::new(5, 6) => None,
        KvType::Fp4 => Some(plain / 2 + (rank + rope_dim) / 16 * layers),
        KvType::Fp8 => {
            let raw = |index: SparseIndex| index.raw_fp8 && version >= Version::new(5, 8);
            let scaled = index.is_some_and(|index| !raw(index))
                && version >= Version::new(5, 6)
                && (purpose == Purpose::Store || version >= Version::new(5, 18));
            Some(if scaled { (rank + rank / SCALE_BLOCK * 4 + rope_dim * 2) * layers } else { plain })
        }
        KvType::Float32 | KvType::Half => Some(plain),
    }
}

/// Bytes per token of the sparse index, one byte an element and its scales.
fn index_bytes(version: Version, geometry: &Geometry) -> i128 {
    let Attention::Latent { index: Some(index), .. } = geometry.attention else { return 0 };
    let layers = if version >= Version::new(5, 18) { index.layers } else { geometry.layers };
    index_row(index) * i128::from(layers)
}

fn index_row(index: SparseIndex) -> i128 {
    let head_dim = i128::from(index.head_dim);
    head_dim + head_dim / SCALE_BLOCK * 4
}

/// Up to 0.5.12 the draft's layers are no part of the cell; from 0.5.15 they are, as Python floats compute it.
fn with_draft(version: Version, geometry: &Geometry, main: i128, index: i128) -> Option<i128> {
    let cell = main + index;
    let (layers, draft) = (geometry.layers, geometry.draft_layers);
    if version < Version::new(5, 15) || draft == 0 || layers == 0 {
        return Some(cell);
    }
    let share = |bytes: i128| truncate(bytes as f64 * f64::from(draft) / f64::from(layers));
    match geometry.attention {
        Attention::Latent { index: Some(row), .. } if version >= Version::new(5, 18) => {
            Some(cell + share(main)? + index_row(row) * i128::from(draft))
        }
        _ if version >= Version::new(5, 23) => Some(cell + share(cell)?),
        _ => truncate(cell as f64 * (1.0 + f64::from(draft) / f64::from(layers))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::KNOWN;

    fn grouped(kv_heads: u32, layers: u32, kv_type: KvType) -> Geometry {
        let attention = Attention::Heads { kv_heads, head_dim: 128, value_head_dim: 128 };
        Geometry { attention, layers, kv_type, draft_layers: 0 }
    }

    fn deepseek(index: bool, kv_type: KvType) -> Geometry {
        let index = index.then_some(SparseIndex { head_dim: 128, layers: 61, raw_fp8: false });
        let attention = Attention::Latent { rank: 512, rope_dim: 64, index };
        Geometry { attention, layers: 61, kv_type, draft_layers: 0 }
    }

    #[test]
    fn grouped_query_attention_is_the_same_in_all_releases() {
        for version in KNOWN {
            assert_eq!(counted(version, &grouped(8, 32, KvType::Half)), Some(131_072), "Llama-3.1-8B");
            assert_eq!(counted(version, &grouped(2, 80, KvType::Half)), Some(81_920), "Llama-3.1-70B, tp 4");
            assert_eq!(counted(version, &grouped(2, 80, KvType::Fp8)), Some(40_960));
            assert_eq!(counted(version, &deepseek(false, KvType::Half)), Some(70_272), "DeepSeek-V3");
            assert_eq!(counted(version, &deepseek(false, KvType::Fp8)), Some(35_136));
        }
    }

    #[test]
    fn values_narrower_than_keys_count_from_0_5_8() {
        let attention = Attention::Heads { kv_heads: 4, head_dim: 192, value_head_dim: 128 };
        let geometry = Geometry { attention, layers: 10, kv_type: KvType::Half, draft_layers: 0 };
        assert_eq!(counted(Version::post(5, 6, 2), &geometry), Some(4 * 384 * 10 * 2));
        assert_eq!(counted(Version::post(5, 8, 1), &geometry), Some(4 * 320 * 10 * 2));
        assert_eq!(stored(Version::post(5, 6, 2), &geometry), Some(4 * 320 * 10 * 2));
    }

    #[test]
    fn sparse_attention_counts_less_than_it_stores_up_to_0_5_15() {
        let fp8 = deepseek(true, KvType::Fp8);
        assert_eq!(counted(Version::new(5, 3), &fp8), Some(35_136), "no index counted");
        for version in [Version::post(5, 6, 2), Version::new(5, 9), Version::new(5, 12), Version::new(5, 15)]
        {
            assert_eq!(counted(version, &fp8), Some(43_188));
            assert_eq!(stored(version, &fp8), Some(48_068));
            assert_eq!(counted(version, &deepseek(true, KvType::Half)), Some(78_324));
        }
        assert_eq!(counted(Version::new(5, 18), &fp8), Some(48_068));
    }

    #[test]
    fn raw_rows_and_skipped_indexes() {
        let index = Some(SparseIndex { head_dim: 128, layers: 61, raw_fp8: true });
        let attention = Attention::Latent { rank: 512, rope_dim: 64, index };
        let raw = Geometry { attention, ..deepseek(true, KvType::Fp8) };
        assert_eq!(counted(Version::new(5, 18), &raw), Some(43_188));
        assert_eq!(stored(Version::new(5, 9), &raw), Some(43_188));
        let index = Some(SparseIndex { head_dim: 128, layers: 21, raw_fp8: false });
        let attention = Attention::Latent { rank: 512, rope_dim: 64, index };
        let skipping = Geometry { attention, ..deepseek(true, KvType::Fp8) };
        assert_eq!(counted(Version::new(5, 18), &skipping), Some(656 * 61 + 132 * 21));
        assert_eq!(counted(Version::new(5, 15), &skipping), Some(43_188));
    }

    #[test]
    fn four_bit_and_block_scaled_types() {
        for version in [Version::post(5, 6, 2), Version::new(5, 15)] {
            assert_eq!(counted(version, &grouped(8, 32, KvType::Fp4)), Some(36_864));
            assert_eq!(counted(version, &deepseek(false, KvType::Fp4)), Some(19_764));
        }
        for version in [Version::new(5, 18), Version::new(5, 20)] {
            assert_eq!(counted(version, &grouped(8, 32, KvType::Fp4)), Some(36_864 + 2048), "a workspace");
        }
        assert_eq!(counted(Version::new(5, 23), &grouped(8, 32, KvType::Fp4)), None);
        assert_eq!(counted(Version::new(5, 3), &deepseek(false, KvType::Fp4)), None);
        assert_eq!(counted(Version::new(5, 23), &grouped(8, 32, KvType::Mxfp8)), Some(65_536 + 2048));
        assert_eq!(counted(Version::new(5, 15), &grouped(8, 32, KvType::Mxfp8)), None);
    }

    #[test]
    fn draft_layers_count_from_0_5_15() {
        let eagle = Geometry { draft_layers: 1, ..grouped(8, 32, KvType::Half) };
        assert_eq!(counted(Version::new(5, 12), &eagle), Some(131_072));
        for version in [Version::new(5, 15), Version::new(5, 18), Version::new(5, 23)] {
            assert_eq!(counted(version, &eagle), Some(135_168));
        }
        let sparse = Geometry { draft_layers: 1, ..deepseek(true, KvType::Half) };
        assert_eq!(counted(Version::new(5, 18), &sparse), Some(78_324 + 1152 + 132));
    }

    #[test]
    fn types_are_named_as_the_arguments_name_them() {
        assert_eq!(KvType::named("auto", KvType::Half), Some(KvType::Half));
        assert_eq!(KvType::named("fp8_e5m2", KvType::Half), Some(KvType::Fp8));
        assert_eq!(KvType::named("fp4_e2m1", KvType::Half), Some(KvType::Fp4));
        assert_eq!(KvType::named("int3", KvType::Half), None);
    }
}
