//! Weight loading.

use super::releases::*;
use super::{Printers, Template, begins, ends, row};
use crate::event::{FailureKind, Role};
use crate::stage::Stage::Weights;

pub(super) static ROWS: &[Template] = &[
    row(
        "load.begin",
        "Load weight begin. avail mem={gib:.2f} GB",
        begins(Weights),
        (V0_1_20, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "load.end.v1",
        "Load weight end. type={word}, dtype={word}, avail mem={gib:.2f} GB",
        ends(Weights),
        (V0_1_20, V0_4_1),
        Printers::ModelRunner,
    ),
    row(
        "load.end.v2",
        "Load weight end. type={word}, dtype={word}, avail mem={gib:.2f} GB, mem usage={gib:.2f} GB.",
        ends(Weights),
        (V0_4_3, V0_5_8),
        Printers::ModelRunner,
    ),
    row(
        "load.end.v3",
        "Load weight end. elapsed={s:.2f} s, type={word}, dtype={word}, avail mem={gib:.2f} GB, \
         mem usage={gib:.2f} GB.",
        ends(Weights),
        (V0_5_9, V0_5_9),
        Printers::ModelRunner,
    ),
    row(
        "load.end.v4",
        "Load weight end. elapsed={s:.2f} s, type={word}[, quant={text}[, bits={text}][, quant_algo={text}]\
         [, fmt={text}][, requantization_method={text}]], avail mem={gib:.2f} GB, mem usage={gib:.2f} GB.",
        ends(Weights),
        (V0_5_10, V0_5_23),
        Printers::ModelRunner,
    ),
    row(
        "load.timeout",
        "TP rank {rank=n} could finish the model loading, but there are other ranks that didn't finish loading. \
         It is likely due to unexpected failures (e.g., OOM) or a slow node.",
        Role::Failure(FailureKind::LoadTimeout),
        (V0_4_3, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "load.mm_reduce",
        "Automatically reduce --mem-fraction-static to {mem_fraction_static=f:.3f} because this is a multimodal \
         model.",
        Role::Note,
        (V0_4_1, V0_4_8),
        Printers::ModelRunner,
    ),
    row(
        "load.mm_turnoff",
        "Automatically turn off --chunked-prefill-size and adjust --mem-fraction-static for multimodal models.",
        Role::Note,
        (V0_2_15, V0_3_6),
        Printers::ModelRunner,
    ),
];
