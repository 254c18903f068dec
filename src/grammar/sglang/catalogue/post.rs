//! Post-capture KV sizing (0.5.18 and later).

use super::releases::*;
use super::{Printers, Template, row};
use crate::event::{Edge, PoolRole, Role, WorkerHint};
use crate::stage::{Stage, Worker};

pub(super) static ROWS: &[Template] = &[
    row(
        "post.shape",
        "Post-capture KV sizing: full_layer_tokens={n}, swa_layer_tokens={n}",
        Role::Pool(PoolRole::Evidence),
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "post.alloc",
        "Post-capture KV sizing: KV cache allocated. dtype: {word}, #tokens: {n}, KV size: {gib:.2f} GB, \
         avail mem={gib:.2f} GB",
        Role::Stage(Stage::PostCaptureResize, Edge::Whole, WorkerHint::Known(Worker::Target)),
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "post.draft",
        "Post-capture KV sizing: draft KV cache allocated. dtype: {word}, #tokens: {n}, KV size: {gib:.2f} GB",
        Role::Pool(PoolRole::Part),
        (V0_5_23, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "post.gap",
        "Post-capture KV sizing: decode CUDA graph max_bs={max_bs=n} < max_running_requests=\
         {max_running_requests=n}; reserving activation headroom",
        Role::Note,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "post.reqs",
        "Post-capture KV sizing: max_running_requests {requested=n} -> {granted=n}",
        Role::Note,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "post.canary",
        "Post-capture KV sizing: KV-canary per-forward workspace {workspace=gib:.2f} GB",
        Role::Pool(PoolRole::Evidence),
        (V0_5_20, V0_5_23),
        Printers::EveryRank,
    ),
];
