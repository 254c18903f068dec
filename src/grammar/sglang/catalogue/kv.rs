//! KV, Mamba, sliding-window and unified pools, and the budget figures printed beside them.

use super::releases::*;
use super::{Printers, Template, ends, row};
use crate::event::{PoolRole, Role};
use crate::stage::Stage::MemoryPool;

const PART: Role = Role::Pool(PoolRole::Part);
const SUM: Role = Role::Pool(PoolRole::Sum);
const EVIDENCE: Role = Role::Pool(PoolRole::Evidence);

pub(super) static ROWS: &[Template] = &[
    row(
        "kv.dtype",
        "Using KV cache dtype: {dtype=word}",
        Role::Note,
        (V0_5_3, V0_5_12),
        Printers::TpRankZero,
    ),
    row(
        "kv.fp4_warn",
        "FP4 (E2M1) KV Cache might lead to a accuracy drop!",
        Role::Note,
        (V0_5_6, V0_5_15),
        Printers::EveryRank,
    ),
    row(
        "kv.alloc.v0",
        "KV Cache is allocated. K size: {gib:.2f} GB, V size: {gib:.2f} GB.",
        PART,
        (V0_4_1, V0_4_1),
        Printers::EveryRank,
    ),
    row(
        "kv.alloc.kv2.v1",
        "KV Cache is allocated. #tokens: {n}, K size: {gib:.2f} GB, V size: {gib:.2f} GB",
        PART,
        (V0_4_3, V0_5_12),
        Printers::EveryRank,
    ),
    row(
        "kv.alloc.kv1.v1",
        "KV Cache is allocated. #tokens: {n}, KV size: {gib:.2f} GB",
        PART,
        (V0_4_6, V0_5_12),
        Printers::EveryRank,
    ),
    row(
        "kv.alloc.kv2.v2",
        "KV Cache is allocated. dtype: {word}, #tokens: {n}, K size: {gib:.2f} GB, V size: {gib:.2f} GB",
        PART,
        (V0_5_15, V0_5_15),
        Printers::EveryRank,
    ),
    row(
        "kv.alloc.kv1.v2",
        "KV Cache is allocated. dtype: {word}, #tokens: {n}, KV size: {gib:.2f} GB",
        PART,
        (V0_5_15, V0_5_15),
        Printers::EveryRank,
    ),
    row(
        "kv.alloc.kv2.v3",
        "[{pool=text} ]KV Cache {backing=is allocated|VA upper bound}. dtype: {word}, #tokens: {n}, \
         K size: {gib:.2f} GB, V size: {gib:.2f} GB",
        PART,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.alloc.kv1.v3",
        "[{pool=text} ]KV Cache {backing=is allocated|VA upper bound}. dtype: {word}, #tokens: {n}, \
         KV size: {gib:.2f} GB",
        PART,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.noop",
        "KV Cache skipped (no-op pool). Logical #tokens: {#tokens=n}, physical K/V size: ~{KV size=kib:.1f} KB \
         placeholder",
        PART,
        (V0_5_12, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.swa.v1",
        "Use Sliding window memory pool. full_layer_tokens={n}, swa_layer_tokens={n}",
        EVIDENCE,
        (V0_4_10, V0_5_6),
        Printers::EveryRank,
    ),
    row(
        "kv.swa.v2",
        "Use sliding window memory pool. full_layer_tokens={n}, swa_layer_tokens={n}",
        EVIDENCE,
        (V0_5_8, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.swa.all",
        "Use sliding window memory pool (all SWA). swa_layer_tokens={n}",
        EVIDENCE,
        (V0_5_9, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.swapool.v1",
        "SWAKVPool mem usage: {gib:repr} GB, swa size: {n}, full size: {n}",
        SUM,
        (V0_5_6, V0_5_6),
        Printers::EveryRank,
    ),
    row(
        "kv.swapool.v2",
        "SWAKVPool mem usage: {gib:.2f} GB, swa size: {n}, full size: {n}",
        SUM,
        (V0_5_8, V0_5_15),
        Printers::EveryRank,
    ),
    row(
        "kv.swapool.v3",
        "SWAKVPool {backing=mem usage|VA upper bound}: {mem usage=gib:.2f} GB, swa size: {n}, full size: {n}",
        SUM,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.mamba.v1",
        "Mamba Cache is allocated. conv_state size: {gib:.2f}GB, ssm_state size: {gib:.2f}GB\
         [ intermediate_ssm_state_cache size: {gib:.2f}GB intermediate_conv_window_cache size: {gib:.2f}GB]",
        PART,
        (V0_5_3, V0_5_3),
        Printers::EveryRank,
    ),
    row(
        "kv.mamba.v2",
        "Mamba Cache is allocated. max_mamba_cache_size: {n}, conv_state size: {gib:.2f}GB, \
         ssm_state size: {gib:.2f}GB[ intermediate_ssm_state_cache size: {gib:.2f}GB \
         intermediate_conv_window_cache size: {gib:.2f}GB]",
        PART,
        (V0_5_6, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.replayssm",
        "GDN ReplaySSM ring buffers allocated ({shape=text}): d={gib:.3f}GB, k={gib:.3f}GB, \
         g={gib:.3f}GB{rest}",
        PART,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.dsv4.calc",
        "DSV4 memory calculation: bytes_per_full_token={f:.2f}, available_bytes={gib:.2f} GB, full_token={n}",
        EVIDENCE,
        (V0_5_12, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.dsv4.sizes",
        "DSV4 pool sizes: full={n}, swa={n}, c4={n}, c128={n}, c4_state={n}, c128_state={n}",
        EVIDENCE,
        (V0_5_12, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.unified",
        r"\[unified-memory-pool\] UnifiedKVPool {backing=allocated|reserved VA upper bound}: total_bytes={gib:.2f} GB (={bytes=b} B), {sub-pools=n} sub-pool(s)",
        PART,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.mm_reserve",
        "Reserving {reserved=gib:.2f} GB of the KV budget for post-sizing multimodal allocations \
         (feature-transport pools + embedding cache).",
        EVIDENCE,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.int8mamba",
        "int8 mamba checkpoint pool ({pool size=gib:.2f}GB) is allocated from --mem-fraction-static headroom and \
         is not reflected in max_total_num_tokens; ensure headroom covers it.",
        PART,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "kv.pool_end",
        "Memory pool end. avail mem={gib:.2f} GB",
        ends(MemoryPool),
        (V0_1_20, V0_5_23),
        Printers::ModelRunner,
    ),
];
