//! Python tracebacks: the frames that lead to a failure, kept because triage needs them.

use super::releases::*;
use super::{Printers, Template, row};
use crate::event::{FailureKind, Role};

pub(super) static ROWS: &[Template] = &[
    row("trace.begin", "Traceback (most recent call last):", Role::Note, ANY, Printers::EveryRank),
    row(
        "trace.frame",
        "File \"{file=text}\", line {line=n}, in {function=rest}",
        Role::Note,
        ANY,
        Printers::EveryRank,
    ),
    row(
        "trace.while",
        "During handling of the above exception, another exception occurred:",
        Role::Note,
        ANY,
        Printers::EveryRank,
    ),
    row(
        "trace.cause",
        "The above exception was the direct cause of the following exception:",
        Role::Note,
        ANY,
        Printers::EveryRank,
    ),
    // False friends: these speak of memory, and device memory has not run out.
    row(
        "trace.rocm_fault",
        "Memory access fault by GPU node{where=rest}",
        Role::Failure(FailureKind::Exception),
        ANY,
        Printers::EveryRank,
    ),
    row(
        "trace.shared_memory",
        "out of resource: shared memory{figures=rest}",
        Role::Failure(FailureKind::Exception),
        ANY,
        Printers::EveryRank,
    ),
];
