//! `out-of-memory-outside-torch`: the driver or a library was refused, not PyTorch.

use super::death::{at_death, ending_others, fetch, last_free, missing_words, more_slack};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::grammar::sglang::oom::Refuser;
use crate::triage::Period;

pub(super) static RULE: Rule = Rule {
    code: "VL034",
    name: "out-of-memory-outside-torch",
    severity: Severity::Error,
    summary: "device memory ran out in an allocation outside PyTorch: driver, NCCL, NVSHMEM, cuBLAS, memory saver",
    explanation: "Not every allocation goes through PyTorch. Communication libraries, cuBLAS handles, kernels loaded on first use, graphs' own memory in the driver \
and physical memory that torch_memory_saver maps are asked of the driver directly. When the card is full they fail without PyTorch's sentence, and often \
without the word: `CUDA driver error: 2`, `CUresult 2` and `CUBLAS_STATUS_ALLOC_FAILED` all mean out of memory.\n\n\
PyTorch's cache makes it worse: what it holds without using it is free for PyTorch and taken for everybody else, and nobody empties it for them. So \
this can happen while memory_reserved is far above memory_allocated.\n\n\
Which way to turn: before the KV pool the fraction plays no part. Behind it, in capture and under load, these allocations live in the slack like \
graphs do: the fraction must go DOWN.\n\n\
cuBLAS `NOT_INITIALIZED` and NCCL errors without the words can be anything; they are only taken for exhaustion where next to nothing was free.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some(diagnosis) = context.diagnosis.filter(|diagnosis| diagnosis.is_outside_torch()) else {
        return Vec::new();
    };
    let Some(sentence) = diagnosis.out_of_memory() else { return Vec::new() };
    let title = format!(
        "{} was refused device memory {}{}",
        sentence.refuser.words(),
        diagnosis.phase.words(),
        missing_words(sentence)
    );
    let mut finding =
        at_death(Finding::new(&RULE, title), diagnosis, sentence).explain(match sentence.refuser {
            Refuser::Collectives | Refuser::Nvshmem => {
                "Communication buffers are made on first use, outside PyTorch."
            }
            Refuser::MemorySaver => "Physical pages are mapped through the driver, outside PyTorch's pools.",
            Refuser::MathLibrary => {
                "Handles and workspaces of math libraries are made on first use, outside PyTorch."
            }
            _ => "The driver itself had nothing left; what PyTorch keeps in its cache does not help here.",
        });
    if sentence.asked.is_some() {
        finding = last_free(finding, diagnosis);
    }
    finding = match diagnosis.period {
        Period::AfterPool | Period::Serving => more_slack(finding, context, diagnosis, sentence),
        Period::BeforePool | Period::Pool => ending_others(finding, sentence)
            .advise("look for other processes on the card (nvidia-smi): before the KV pool is there, --mem-fraction-static plays no part"),
        Period::Unknown => ending_others(finding, sentence)
            .advise("behind the KV pool (in capture, under load) lower --mem-fraction-static; before it, look for other processes on the card"),
    };
    vec![fetch(finding, context)]
}
