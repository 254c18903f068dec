//! The hierarchical cache: host memory, in decimal gigabytes.

use super::releases::*;
use super::{Printers, Template, row};
use crate::event::{FailureKind, PoolRole, Role};

const HOST: Role = Role::Pool(PoolRole::Host);

pub(super) static ROWS: &[Template] = &[
    row(
        "host.alloc.v1",
        "Allocating {host memory=gb:.2f} GB host memory for hierarchical KV cache.",
        HOST,
        (V0_4_1, V0_5_15),
        Printers::EveryRank,
    ),
    row(
        "host.alloc.v2",
        "Allocating {pool=text} hierarchical KV host pool: {#tokens=n} tokens, {host memory=gb:.2f} GB host memory.",
        HOST,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "host.alloc.v3",
        "Allocating {pool=text} hierarchical KV host pool: {#tokens=n} tokens, {host memory=gb:.2f} GB host memory, \
         packed MTP KV layers: target_layers={target_layers=n}, draft_layers={draft_layers=n}, \
         total_layers={total_layers=n}.",
        HOST,
        (V0_5_18, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "host.mamba",
        "Allocating {host memory=gb:.2f} GB host memory for hierarchical Mamba cache (layout={layout=word}).",
        HOST,
        (V0_5_10, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "host.small",
        "HiCache {pool=text} host pool ({host tokens=n} tokens) is smaller than the device pool \
         ({device tokens=n} tokens);{rest}",
        Role::Note,
        (V0_5_15, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "host.err",
        "Not enough host memory available. Requesting {requested=gb:.2f} GB but only have {free=gb:.2f} GB free. \
         Please reduce the size of the hierarchical cache.",
        Role::Failure(FailureKind::HostMemory),
        (V0_4_1, V0_5_23),
        Printers::EveryRank,
    ),
    row(
        "host.headroom",
        "HiCache memory headroom: host {host=gib:.1f} GiB, cgroup {cgroup=gib:.1f} GiB",
        HOST,
        (V0_5_23, V0_5_23),
        Printers::EveryRank,
    ),
];
