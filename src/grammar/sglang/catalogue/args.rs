//! The launcher's arguments, and the lines by which it adjusts them.

use super::releases::*;
use super::{Printers, Template, row};
use crate::event::Role;

pub(super) static ROWS: &[Template] = &[
    row(
        "args.vlm_dyn",
        "Multimodal model: Dynamically adjusted --mem-fraction-static from: {from=f:.3f} to: {to=f:.3f}.",
        Role::Note,
        (V0_4_10, V0_4_10),
        Printers::Launcher,
    ),
    row(
        "args.repr",
        "server_args={server_args=record}",
        Role::ServerArgs,
        (V0_2_15, V0_5_18),
        Printers::Launcher,
    ),
    row(
        "args.dict",
        "server_args={server_args=dict}",
        Role::ServerArgs,
        (V0_5_20, V0_5_23),
        Printers::Launcher,
    ),
    // Five flags of a worker, printed after the summary: no launch begins with it.
    row("args.mode01", "server_args: {flags=rest}", Role::Note, (V0_1_20, V0_1_20), Printers::TpRankZero),
    row(
        "args.small",
        "Automatically adjust --chunked-prefill-size for small GPUs.",
        Role::Note,
        (V0_3_6, V0_3_6),
        Printers::Launcher,
    ),
    row(
        "args.symm4",
        "Symmetric memory is enabled, setting symmetric memory prealloc size to {prealloc=gib}GB as default.\
         Use environment variable SGLANG_SYMM_MEM_PREALLOC_GB_SIZE to change the prealloc size.",
        Role::Note,
        (V0_5_9, V0_5_23),
        Printers::Launcher,
    ),
];
