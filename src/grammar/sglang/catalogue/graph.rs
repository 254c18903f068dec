//! Capture of CUDA graphs, its bars, and what is allocated beside it.

use super::releases::*;
use super::{Printers, Template, begins_for, ends_for, row};
use crate::event::Role;
use crate::stage::Stage::{GraphDecode, GraphDraft, GraphDraftExtend, GraphPrefill};
use crate::stage::Worker::{Draft, Target};

pub(super) static ROWS: &[Template] = &[
    row(
        "graph.begin.v0",
        "Capture cuda graph begin.[ This can take up to several minutes.]",
        begins_for(Target, GraphDecode),
        (V0_1_20, V0_4_1),
        Printers::ModelRunner,
    ),
    row(
        "graph.end.v0",
        "Capture cuda graph end. Time elapsed: {s:.2f} s",
        ends_for(Target, GraphDecode),
        (V0_4_1, V0_4_1),
        Printers::ModelRunner,
    ),
    row(
        "graph.begin.v1",
        "Capture cuda graph begin. This can take up to several minutes. avail mem={gib:.2f} GB",
        begins_for(Target, GraphDecode),
        (V0_4_3, V0_5_1),
        Printers::ModelRunner,
    ),
    row(
        "graph.end.v1",
        "Capture cuda graph end. Time elapsed: {s:.2f} s. avail mem={gib:.2f} GB. mem usage={gib:.2f} GB.",
        ends_for(Target, GraphDecode),
        (V0_4_3, V0_4_3),
        Printers::ModelRunner,
    ),
    row(
        "graph.end.v2",
        "Capture cuda graph end. Time elapsed: {s:.2f} s. mem usage={gib:.2f} GB. avail mem={gib:.2f} GB.",
        ends_for(Target, GraphDecode),
        (V0_4_6, V0_5_1),
        Printers::ModelRunner,
    ),
    row(
        "graph.begin.v3",
        "Capture {cuda graph|cpu graph|npu graph} begin. This can take up to several minutes. \
         avail mem={gib:.2f} GB",
        begins_for(Target, GraphDecode),
        (V0_5_3, V0_5_12),
        Printers::ModelRunner,
    ),
    row(
        "graph.end.v3",
        "Capture {cuda graph|cpu graph|npu graph} end. Time elapsed: {s:.2f} s. mem usage={gib:.2f} GB. \
         avail mem={gib:.2f} GB.",
        ends_for(Target, GraphDecode),
        (V0_5_3, V0_5_12),
        Printers::ModelRunner,
    ),
    row(
        "graph.draft.begin.v2",
        "Capture draft decode CUDA graph begin. backend={word}, {num_tokens_per_bs|num_tokens_per_req}={n}, \
         bs={list}, avail mem={gib:.2f} GB",
        begins_for(Draft, GraphDraft),
        (V0_5_15, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.draft.end.v3",
        "Capture draft decode CUDA graph end. elapsed={s:.2f} s, mem usage={gib:.2f} GB, avail mem={gib:.2f} GB.",
        ends_for(Draft, GraphDraft),
        (V0_5_15, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.begin.v4",
        "Capture {worker=target|draft} {step=decode|verify} {device=word} graph begin. backend={word}, \
         num_tokens_per_bs={n}, bs={list}, avail mem={gib:.2f} GB",
        begins_for(Target, GraphDecode),
        (V0_5_15, V0_5_15),
        Printers::ModelRunner,
    ),
    row(
        "graph.begin.v5",
        "Capture {worker=target|draft} {step=decode|verify} {device=word} graph begin. backend={word}, \
         num_tokens_per_req={n}, bs={list}, avail mem={gib:.2f} GB",
        begins_for(Target, GraphDecode),
        (V0_5_18, V0_5_20),
        Printers::ModelRunner,
    ),
    row(
        "graph.begin.v6",
        "Capture {worker=target|draft} {step=decode|verify} {device=word} graph begin. backend={word}, \
         num_tokens_per_req={n}, avail mem={gib:.2f} GB",
        begins_for(Target, GraphDecode),
        (V0_5_23, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "graph.end.v4",
        "Capture {worker=target|draft} {step=decode|verify} {device=word} graph end. elapsed={s:.2f} s, \
         mem usage={gib:.2f} GB, avail mem={gib:.2f} GB.",
        ends_for(Target, GraphDecode),
        (V0_5_15, V0_5_20),
        Printers::ModelRunner,
    ),
    row(
        "graph.end.v6",
        "Capture {worker=target|draft} {step=decode|verify} {device=word} graph end. bs={list}, \
         elapsed={s:.2f} s, mem usage={gib:.2f} GB, avail mem={gib:.2f} GB.",
        ends_for(Target, GraphDecode),
        (V0_5_23, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "graph.prefill.begin",
        "Capture {worker=target|draft} prefill CUDA graph begin. backend={word}, num_tokens={list}, \
         avail mem={gib:.2f} GB",
        begins_for(Target, GraphPrefill),
        (V0_5_15, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "graph.prefill.end",
        "Capture {worker=target|draft} prefill CUDA graph end. elapsed={s:.2f} s, mem usage={gib:.2f} GB, \
         avail mem={gib:.2f} GB.",
        ends_for(Target, GraphPrefill),
        (V0_5_15, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "graph.pcg.begin",
        "Capture piecewise CUDA graph begin. avail mem={gib:.2f} GB",
        begins_for(Target, GraphPrefill),
        (V0_5_6, V0_5_12),
        Printers::ModelRunner,
    ),
    row(
        "graph.pcg.end",
        "Capture piecewise CUDA graph end. Time elapsed: {s:.2f} s. mem usage={gib:.2f} GB. \
         avail mem={gib:.2f} GB.",
        ends_for(Target, GraphPrefill),
        (V0_5_6, V0_5_12),
        Printers::ModelRunner,
    ),
    row(
        "graph.prefill.off",
        "Disable prefill CUDA graph because {reason=rest}",
        Role::Note,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "graph.pcg.off",
        "Disable piecewise CUDA graph because {reason=rest}",
        Role::Note,
        (V0_5_6, V0_5_12),
        Printers::EveryRank,
    ),
    row(
        "graph.bslist",
        "Capture cuda graph bs {bs=list}",
        Role::Note,
        (V0_4_6, V0_5_12),
        Printers::TpRankZero,
    ),
    row(
        "graph.pcglist",
        "Capture cuda graph num tokens {num_tokens=list}",
        Role::Note,
        (V0_5_6, V0_5_12),
        Printers::TpRankZero,
    ),
    row(
        "graph.cpulist",
        "Capture cpu graph bs {bs=list}",
        Role::Note,
        (V0_5_3, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.bar.v1",
        "Capturing batches (avail_mem={gib:.2f} GB): {rest}",
        Role::Progress(GraphDecode),
        (V0_4_6, V0_4_6),
        Printers::TpRankZero,
    ),
    row(
        "graph.bar.v2",
        "Capturing batches (bs={n} avail_mem={gib:.2f} GB): {rest}",
        Role::Progress(GraphDecode),
        (V0_4_8, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.bar.pcg",
        "Capturing num tokens (num_tokens={n} avail_mem={gib:.2f} GB): {rest}",
        Role::Progress(GraphPrefill),
        (V0_5_6, V0_5_20),
        Printers::TpRankZero,
    ),
    row(
        "graph.bar.bcg",
        r"\[BCG\] Capturing (num_tokens={n} avail_mem={gib:.2f} GB): {rest}",
        Role::Progress(GraphPrefill),
        (V0_5_12, V0_5_12),
        Printers::TpRankZero,
    ),
    row(
        "graph.bar.pre23",
        "Capturing prefill shape (num_tokens={n} avail_mem={gib:.2f} GB): {rest}",
        Role::Progress(GraphPrefill),
        (V0_5_23, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.draft.begin.v1",
        "Capture draft cuda graph begin. This can take up to several minutes. avail mem={gib:.2f} GB",
        begins_for(Draft, GraphDraft),
        (V0_4_3, V0_5_12),
        Printers::DraftWorker,
    ),
    row(
        "graph.draft.end.v0",
        "Capture draft cuda graph end. Time elapsed: {s:.2f} s. avail mem={gib:.2f} GB",
        ends_for(Draft, GraphDraft),
        (V0_4_3, V0_4_3),
        Printers::DraftWorker,
    ),
    row(
        "graph.draft.end.v1",
        "Capture draft cuda graph end. Time elapsed: {s:.2f} s. avail mem={gib:.2f} GB. mem usage={gib:.2f} GB.",
        ends_for(Draft, GraphDraft),
        (V0_4_6, V0_4_6),
        Printers::DraftWorker,
    ),
    row(
        "graph.draft.end.v2",
        "Capture draft cuda graph end. Time elapsed: {s:.2f} s. mem usage={gib:.2f} GB. avail mem={gib:.2f} GB.",
        ends_for(Draft, GraphDraft),
        (V0_4_8, V0_5_12),
        Printers::DraftWorker,
    ),
    row(
        "graph.draftext.begin.v1",
        "Capture draft extend cuda graph begin. This can take up to several minutes. avail mem={gib:.2f} GB",
        begins_for(Draft, GraphDraftExtend),
        (V0_4_8, V0_5_12),
        Printers::DraftWorker,
    ),
    row(
        "graph.draftext.end.v1",
        "Capture draft extend cuda graph end. Time elapsed: {s:.2f} s. mem usage={gib:.2f} GB. \
         avail mem={gib:.2f} GB.",
        ends_for(Draft, GraphDraftExtend),
        (V0_4_8, V0_5_12),
        Printers::DraftWorker,
    ),
    row(
        "graph.draftext.begin.v2",
        "Capture draft extend CUDA graph begin. backend={word}, {num_tokens_per_bs|num_tokens_per_req}={n}, \
         bs={list}, avail mem={gib:.2f} GB",
        begins_for(Draft, GraphDraftExtend),
        (V0_5_15, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.draftext.end.v2",
        "Capture draft extend CUDA graph end. elapsed={s:.2f} s, mem usage={gib:.2f} GB, avail mem={gib:.2f} GB.",
        ends_for(Draft, GraphDraftExtend),
        (V0_5_15, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.mle.begin.v1",
        "Capture draft extend cuda graph begin (step {step=n}). This can take up to several minutes. \
         avail mem={gib:.2f} GB",
        begins_for(Draft, GraphDraftExtend),
        (V0_5_8, V0_5_12),
        Printers::EveryRank,
    ),
    row(
        "graph.mle.begin.v2",
        "Capture draft extend CUDA graph begin. step={n}, avail mem={gib:.2f} GB",
        begins_for(Draft, GraphDraftExtend),
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "graph.mle.end.v2",
        "Capture draft extend CUDA graph end. step={n}, elapsed={s:.2f} s, mem usage={gib:.2f} GB, \
         avail mem={gib:.2f} GB.",
        ends_for(Draft, GraphDraftExtend),
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "graph.mle1.begin",
        "Capture single-CG draft extend begin. This can take several minutes. avail mem={gib:.2f} GB",
        begins_for(Draft, GraphDraftExtend),
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "graph.mle1.end",
        "Capture single-CG draft extend end. elapsed={s:.2f} s, mem usage={gib:.2f} GB, avail mem={gib:.2f} GB.",
        ends_for(Draft, GraphDraftExtend),
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "graph.uno.begin",
        "Capture UNO tree draft CUDA graph begin. num_tokens_per_req={n}, avail mem={gib:.2f} GB",
        begins_for(Draft, GraphDraft),
        (V0_5_20, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.uno.end",
        "Capture UNO tree draft CUDA graph end. elapsed={s:.2f} s, mem usage={gib:.2f} GB, \
         avail mem={gib:.2f} GB.",
        ends_for(Draft, GraphDraft),
        (V0_5_20, V0_5_23),
        Printers::TpRankZero,
    ),
    // The figure spans capture lines that may be printed as well, so it is no posting of its own.
    row(
        "graph.adaptive",
        "Built adaptive runtime state steps={n}: elapsed={s:.2f}s, mem={gib:.2f}GB",
        Role::Note,
        (V0_5_12, V0_5_23),
        Printers::TpRankZero,
    ),
    row(
        "graph.deepgemm",
        "DeepGEMM masked layout budget: {budget=gib:.2f} GiB from {free=gib:.2f} GiB free.",
        Role::Note,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "graph.symm",
        "Pre-allocating symmetric memory pool with {pool size=gib} GiB",
        Role::Note,
        (V0_5_9, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "graph.ar_addr",
        "Registering {addresses=n} cuda graph addresses",
        Role::Note,
        (V0_4_1, V0_5_23),
        Printers::EveryRank,
    ),
];
