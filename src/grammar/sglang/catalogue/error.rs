//! Warnings and errors.

use super::releases::*;
use super::{Printers, Template, row};
use crate::event::{FailureKind, Role};

const BUDGET: Role = Role::Failure(FailureKind::BudgetExhausted);
const CAPTURE: Role = Role::Failure(FailureKind::CaptureFailed);
const SLOTS: Role = Role::Failure(FailureKind::SlotsExhausted);
const STATE_CACHE: Role = Role::Failure(FailureKind::StateCache);
// Of its three figures the last is 0.9 of the second; it is no amount here, because it stands at the line's end
// without a unit, where a cut number cannot be told from a whole one.
const UNBALANCED: Role = Role::Failure(FailureKind::Unbalanced);

pub(super) static ROWS: &[Template] = &[
    row(
        "err.unbal.v1",
        "The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
        UNBALANCED,
        (V0_1_20, V0_4_3),
        Printers::EveryRank,
    ),
    row(
        "err.unbal.v2",
        "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. \
         min_per_gpu_memory={gib}, local_gpu_memory={gib}, local_gpu_memory * 0.9={f}",
        UNBALANCED,
        (V0_4_6, V0_5_6),
        Printers::EveryRank,
    ),
    // The same visible text as v2, assembled from two halves.
    row(
        "err.unbal.v2b",
        "[The memory capacity is unbalanced. Some GPUs may be occupied by other processes. ]\
         min_per_gpu_memory={gib}, local_gpu_memory={gib}, local_gpu_memory * 0.9={f}",
        UNBALANCED,
        (V0_5_8, V0_5_9),
        Printers::EveryRank,
    ),
    row(
        "err.unbal.v3",
        "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. \
         pre_model_load_memory={gib}, local_gpu_memory={gib}, local_gpu_memory * 0.9={f}",
        UNBALANCED,
        (V0_5_10, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.nomem.v1",
        "Not enough memory. Please try to increase --mem-fraction-static.",
        BUDGET,
        (V0_1_20, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.nomem.v2",
        "Not enough memory. Please try to increase --mem-fraction-static. Current value: \
         self.server_args.mem_fraction_static={mem_fraction_static=f}",
        BUDGET,
        (V0_5_3, V0_5_9),
        Printers::EveryRank,
    ),
    row(
        "err.nomem.v3",
        "[Not enough memory. Please try to increase --mem-fraction-static. ]Current value: \
         mem_fraction_static={mem_fraction_static=f}",
        BUDGET,
        (V0_5_10, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.rest",
        "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=\
         {mem_fraction_static=f}. Raise --mem-fraction-static above {suggested=f:.3f} (minimum viable = 1 - \
         available/pre = {minimum viable=f:.4f}). If using speculative decoding, draft weights are now counted.",
        BUDGET,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.mamba.rest",
        "Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed \
         max_mamba_cache_size={max_mamba_cache_size=n} (total_rest_memory={total_rest_memory=gib:.2f} GB, \
         mamba_cache_per_req={mamba_cache_per_req=mib:.2f} MB).{rest}",
        STATE_CACHE,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.mamba.reqs",
        "Hybrid (mamba/linear-attention) state cache is too small to serve any requests. \
         max_mamba_cache_size={max_mamba_cache_size=n}, mamba_ratio={mamba_ratio=f}, resulting \
         max_num_reqs={max_num_reqs=n}.{rest}",
        STATE_CACHE,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.swacap",
        "SWA pool cap ({#tokens=n} tokens, {cap=gib:.2f} GiB) leaves no room for the full KV pool within the \
         available {available=gib:.2f} GiB.{rest}",
        BUDGET,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.unified_floor",
        r"\[unified-memory-pool\] {pool=text}: byte budget {budget=b} cannot fit ONE worst-case request{rest}",
        BUDGET,
        (V0_5_20, V0_5_23),
        Printers::EveryRank,
    ),
    // A token count below zero got as far as the allocation of the pool.
    row(
        "err.negative",
        "Trying to create tensor with negative dimension {dimension=n}: {shape=list}",
        BUDGET,
        ANY,
        Printers::EveryRank,
    ),
    row(
        "warn.maxtok",
        "max_total_tokens={max_total_tokens=n} is larger than the profiled value {profiled=n}. Use the profiled \
         value instead.",
        Role::Note,
        (V0_2_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "warn.reqs_reduced",
        "max_running_requests was reduced from the requested {requested=n} to {granted=n} (per dp worker) due to \
         the available KV cache capacity.",
        Role::Note,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "warn.reqs_mamba",
        "max_running_requests is capped to {granted=n} by the mamba state cache (max_mamba_cache_size=\
         {max_mamba_cache_size=n}, {slots per request=n} state slots per request).{rest}",
        Role::Note,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "warn.kv_small",
        "KV pool holds {#tokens=n} tokens, fewer than --context-length {context_length=n}.{rest}",
        Role::Note,
        (V0_5_23, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "warn.device",
        "[WARNING: ]current device is not {expected=n}, but {current=n}, which may cause useless memory \
         allocation for torch {device=word} context.",
        Role::Note,
        ANY,
        Printers::EveryRank,
    ),
    row(
        "warn.deepgemm",
        "Available memory {available=gib}GB is less than required memory {required=gib}GB for warmup, reducing \
         max_m to {max_m=n} to avoid out of memory{rest}",
        Role::Note,
        (V0_5_6, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "warn.leak",
        "{pool=KV cache pool|token_to_kv_pool_allocator memory} leak detected!{rest}",
        Role::Note,
        ANY,
        Printers::EveryRank,
    ),
    row(
        "err.graph.v1",
        "Capture cuda graph failed: {cause=rest}",
        CAPTURE,
        (V0_2_15, V0_4_3),
        Printers::EveryRank,
    ),
    row(
        "err.graph.v2",
        "Capture CUDA graph failed: {cause=rest}",
        CAPTURE,
        (V0_4_6, V0_4_6),
        Printers::EveryRank,
    ),
    row(
        "err.graph.v3",
        "Capture cuda graph failed: {cause=rest}",
        CAPTURE,
        (V0_4_8, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.graph.cpu",
        "Capture CPU graph failed: {cause=rest}",
        CAPTURE,
        (V0_5_3, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.graph.pcg",
        "Piecewise CUDA Graph failed with error: {cause=rest}",
        CAPTURE,
        (V0_5_6, V0_5_12),
        Printers::EveryRank,
    ),
    row(
        "err.req_slots.v1",
        "Out of memory. Please set a smaller number for `--max-running-requests`.",
        SLOTS,
        (V0_2_15, V0_4_1),
        Printers::EveryRank,
    ),
    row(
        "err.req_slots.v2",
        "alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`. \
         {expression=text}={available=n}, num_reqs={num_reqs=n},",
        SLOTS,
        (V0_4_3, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.prefill.v0",
        "Prefill out of memory. This should never happen.",
        SLOTS,
        (V0_1_20, V0_1_20),
        Printers::EveryRank,
    ),
    row(
        "err.decode.v0",
        "Decode out of memory. This should never happen.",
        SLOTS,
        (V0_1_20, V0_1_20),
        Printers::EveryRank,
    ),
    // Four rows whose first line is the same; the lines after it are rows of their own below.
    row(
        "err.prefill.v1",
        "Prefill out of memory. Try to lower your batch size.",
        SLOTS,
        (V0_2_15, V0_2_15),
        Printers::EveryRank,
    ),
    row(
        "err.phase",
        "{phase=Prefill|Decode} out of memory. Try to lower your batch size.",
        SLOTS,
        (V0_3_6, V0_5_3),
        Printers::EveryRank,
    ),
    row(
        "err.prefill.v2",
        "Prefill out of memory. Try to lower your batch size.",
        SLOTS,
        (V0_4_6, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.decode.v2",
        "Decode out of memory. Try to lower your batch size.",
        SLOTS,
        (V0_4_6, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "err.tok.v3",
        "Out of memory. Try to lower your batch size.",
        SLOTS,
        (V0_5_6, V0_5_23),
        Printers::EveryRank,
    ),
    row("err.slots.asked", "Try to allocate {#tokens=n} tokens.", Role::Note, ANY, Printers::EveryRank),
    row(
        "err.slots.available",
        "{Avaliable|Available} tokens: {#tokens=n}{rest}",
        Role::Note,
        ANY,
        Printers::EveryRank,
    ),
];
