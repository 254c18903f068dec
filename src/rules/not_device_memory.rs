//! `not-device-memory`: words that sound like memory, or a death that memory did not cause.

use super::death::last_free;
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::triage::Resource;

pub(super) static RULE: Rule = Rule {
    code: "VL037",
    name: "not-device-memory",
    severity: Severity::Error,
    summary: "the launch failed, and device memory was not what ran out",
    explanation: "Words that sound like it, and are not:\n\n\
`out of resource: shared memory` (Triton): memory on the chip, a fixed size per multiprocessor.\n\n\
`an illegal memory access was encountered`, `Memory access fault by GPU node` (ROCm), Xid 31 and 43: a kernel touched what was not its own. Xid 79: the card fell \
off the bus.\n\n\
`alloc_req_slots runs out of memory`, `Prefill out of memory`, `Decode out of memory`: slots of the request table or the KV pool, both allocated at start-up.\n\n\
cuBLAS `NOT_INITIALIZED`, NCCL `unhandled cuda error` without `out of memory`: anything; where next to nothing was free they are taken for exhaustion.\n\n\
`Tried to allocate more than 1EB`: a size that overflowed.\n\n\
And words that do not sound like it, and are: `CUDA driver error: 2`, `CUresult 2`, `CUBLAS_STATUS_ALLOC_FAILED` (see out-of-memory-outside-torch), `Killed` and exit code \
-9 (host memory, see out-of-memory-host).\n\n\
The evidence is the free memory that was last printed: where gigabytes were free, no fraction helps.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some(diagnosis) = context.diagnosis else { return Vec::new() };
    let Resource::Other(friend) = &diagnosis.resource else { return Vec::new() };
    let mut finding = Finding::new(&RULE, format!("not device memory: {}", friend.name))
        .stage(diagnosis.phase.stage())
        .explain(friend.meaning);
    finding =
        last_free(finding, diagnosis).at(diagnosis.last_free.as_ref().and_then(|free| free.place.clone()));
    if diagnosis.last_free.is_none() && friend.doubtful {
        finding = finding.sum("what was free at the time is not in the input".to_string());
    }
    let faults: Vec<String> = context
        .launch
        .notes
        .iter()
        .filter(|note| note.template.is_some_and(|row| row.id == "machine.xid"))
        .filter_map(|note| Some(format!("Xid {} in line {}", note.count("code")?, note.place.line)))
        .take(4)
        .collect();
    if !faults.is_empty() {
        finding = finding.sum(format!("the driver reports: {}", faults.join(", ")));
    }
    vec![finding.advise(friend.advice)]
}
