//! Lines of forks, day-0 images and branches that no release has.
//!
//! They are evidence for the budget, never postings, and say nothing about the release.

use super::releases::*;
use super::{Printers, Template, row};
use crate::event::{PoolRole, Role};

const EVIDENCE: Role = Role::Pool(PoolRole::Evidence);

pub(super) static ROWS: &[Template] = &[
    row(
        "fork.profiling",
        "Memory profiling: available_gpu_memory={gib:.2f} GB, total_gpu_memory={gib:.2f} GB, \
         mem_fraction_static={f}, rest_memory={gib:.2f} GB",
        EVIDENCE,
        ANY,
        Printers::EveryRank,
    ),
    row(
        "fork.dsv4",
        "DSv4 memory calculation: bytes_per_full_token={f:.2f}, available_bytes={gib:.2f} GB, full_token={n}",
        EVIDENCE,
        ANY,
        Printers::EveryRank,
    ),
    row(
        "fork.sw",
        "SW KV memory calculation: bytes_per_full_token={f:.2f}, available_bytes={gib:.2f} GB, full_token={n}",
        EVIDENCE,
        ANY,
        Printers::EveryRank,
    ),
];
