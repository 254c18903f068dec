//! Weight updates at run time, the memory saver, expert balancing.

use super::releases::*;
use super::{Printers, Template, begins, ends, row};
use crate::event::Role;
use crate::stage::Stage::Other;

pub(super) static ROWS: &[Template] = &[
    row(
        "upd.begin.v1",
        "Update weights begin. avail mem={gib:.2f} GB",
        begins(Other),
        (V0_2_15, V0_3_6),
        Printers::ModelRunner,
    ),
    row(
        "upd.begin.v2",
        "Update engine weights online from disk begin. avail mem={gib:.2f} GB",
        begins(Other),
        (V0_4_1, V0_5_23),
        Printers::ModelRunner,
    ),
    row("upd.end", "Update weights end.", ends(Other), (V0_2_15, V0_5_23), Printers::ModelRunner),
    row(
        "saver.missing",
        "enable_memory_saver is enabled, but torch-memory-saver is not installed. {rest}",
        Role::Note,
        (V0_4_6, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "saver.noop",
        "`{caller=text}` will not save memory because torch_memory_saver is not enabled. {rest}",
        Role::Note,
        (V0_4_6, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "eplb.start",
        r"\[EPLBManager\] system started, will rebalance per {iterations=n} iterations.",
        Role::Note,
        (V0_4_6, V0_5_23),
        Printers::EveryRank,
    ),
];
