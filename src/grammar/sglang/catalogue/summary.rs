//! The summary line of a rank.

use super::releases::*;
use super::{Printers, Template, row};
use crate::event::Role::Summary;

pub(super) static ROWS: &[Template] = &[
    row(
        "sum.v0",
        "max_total_num_tokens={n}, max_prefill_tokens={n}, context_len={n}",
        Summary,
        (V0_1_20, V0_1_20),
        Printers::EveryRank,
    ),
    row(
        "sum.v1",
        "max_total_num_tokens={n}, max_prefill_tokens={n}, max_running_requests={n}, context_len={n}",
        Summary,
        (V0_2_15, V0_4_1),
        Printers::EveryRank,
    ),
    // Every rank in 0.4.3, TP rank 0 in 0.4.6: the model runner's rule fits both.
    row(
        "sum.v2",
        "max_total_num_tokens={n}, chunked_prefill_size={n}, max_prefill_tokens={n}, max_running_requests={n}, \
         context_len={n}",
        Summary,
        (V0_4_3, V0_4_6),
        Printers::ModelRunner,
    ),
    row(
        "sum.v3",
        "max_total_num_tokens={n}, chunked_prefill_size={n}, max_prefill_tokens={n}, max_running_requests={n}, \
         context_len={n}, available_gpu_mem={gib:.2f} GB",
        Summary,
        (V0_4_8, V0_5_1),
        Printers::TpRankZero,
    ),
    row(
        "sum.v4",
        "max_total_num_tokens={n}, chunked_prefill_size={n}, max_prefill_tokens={n}, max_running_requests={n}, \
         context_len={n}, {available_gpu_mem|available_cpu_mem}={gib:.2f} GB",
        Summary,
        (V0_5_3, V0_5_23),
        Printers::TpRankZero,
    ),
];
