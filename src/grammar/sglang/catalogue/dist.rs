//! Distributed init.

use super::releases::*;
use super::{Printers, Template, begins, ends, row};
use crate::event::{Edge, Role, WorkerHint};
use crate::stage::Stage::DistributedInit;

pub(super) static ROWS: &[Template] = &[
    row(
        "dist.nccl_begin",
        "Init nccl begin.",
        begins(DistributedInit),
        (V0_1_20, V0_2_15),
        Printers::ModelRunner,
    ),
    row(
        "dist.begin",
        "Init torch distributed begin.",
        begins(DistributedInit),
        (V0_3_6, V0_5_20),
        Printers::ModelRunner,
    ),
    row(
        "dist.end.v1",
        "Init torch distributed ends. mem usage={gib:.2f} GB",
        ends(DistributedInit),
        (V0_4_3, V0_5_8),
        Printers::ModelRunner,
    ),
    row(
        "dist.end.v2",
        "Init torch distributed ends. elapsed={s:.2f} s, mem usage={gib:.2f} GB",
        ends(DistributedInit),
        (V0_5_9, V0_5_20),
        Printers::ModelRunner,
    ),
    row(
        "dist.par_begin",
        "Init parallel begin.",
        begins(DistributedInit),
        (V0_5_23, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "dist.par_end",
        "Init parallel ends. elapsed={s:.2f} s",
        ends(DistributedInit),
        (V0_5_23, V0_5_23),
        Printers::ModelRunner,
    ),
    // Not the communicators' cost: a delta around the baseline's own all-reduce, normally 0.00.
    row(
        "dist.baseline",
        "Memory baseline taken. mem usage={gib:.2f} GB",
        Role::Stage(DistributedInit, Edge::Whole, WorkerHint::ByOrder),
        (V0_5_23, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "dist.tp_a2a",
        "TP LM-head PyNCCL all-to-all warmup completed in {elapsed=s:.3f}s (tp_size={n}, bytes_per_peer={n})",
        Role::Note,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
];
