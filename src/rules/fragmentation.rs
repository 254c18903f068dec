//! `fragmentation`: PyTorch held enough without using it, and could not give it.

use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::grammar::sglang::oom::{Accelerator, Generation};
use crate::quantity::{MIB, mib_text};

pub(super) static RULE: Rule = Rule {
    code: "VL036",
    name: "fragmentation",
    severity: Severity::Warning,
    summary: "PyTorch held more memory without using it than the failed allocation asked for",
    explanation: "PyTorch takes memory from the driver in segments and cuts blocks from them. Before it gives up it hands unused whole segments back; what is \
left over is pieces of segments in use. When these pieces add up to more than was asked for, the allocation failed for want of one piece, not for want of \
memory.\n\n\
Pieces in private pools of CUDA graphs cannot serve others at all, so the sum overstates a little what could be used.\n\n\
Remedy: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets a segment grow in place, so that pieces meet (PyTorch 2.1 and later; PYTORCH_HIP_ALLOC_CONF \
and PYTORCH_NPU_ALLOC_CONF elsewhere). It does not go together with --enable-memory-saver, nor with symmetric memory. It gives at most what is \
reserved but unallocated: where more is missing, the findings beside this one count.",
    check,
};

/// Less than this gained is no remedy by itself.
const LITTLE: i128 = 512 * MIB;

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some(diagnosis) = context.diagnosis else { return Vec::new() };
    let Some(sentence) = diagnosis.out_of_memory().filter(|sentence| sentence.is_fragmented()) else {
        return Vec::new();
    };
    let (Some(unallocated), Some(asked)) = (sentence.unallocated, sentence.asked) else { return Vec::new() };
    let mut finding = Finding::new(
        &RULE,
        format!("{} MiB lay unused in pieces when {} were asked for", mib_text(unallocated), mib_text(asked)),
    )
    .stage(diagnosis.phase.stage())
    .explain("PyTorch held enough, but in no piece large enough.")
    .sum(match sentence.generation {
        Some(Generation::Bracketed) => {
            format!("reserved − allocated = {} MiB ≥ asked {} MiB", mib_text(unallocated), mib_text(asked))
        }
        _ => {
            format!("reserved but unallocated {} MiB ≥ asked {} MiB", mib_text(unallocated), mib_text(asked))
        }
    })
    .amount(unallocated)
    .at(diagnosis
        .cause
        .field("reserved unallocated")
        .or(diagnosis.cause.field("reserved"))
        .map(|field| field.place.clone()));
    if unallocated.surely_below(LITTLE) {
        finding = finding.severity(Severity::Info);
    }
    let variable = match sentence.accelerator {
        Accelerator::Hip => "PYTORCH_HIP_ALLOC_CONF",
        Accelerator::Npu => "PYTORCH_NPU_ALLOC_CONF",
        _ => "PYTORCH_CUDA_ALLOC_CONF",
    };
    let saver =
        context.launch.args().and_then(|arguments| arguments.flag("enable_memory_saver")) == Some(true);
    finding = if saver {
        finding.advise("expandable_segments does not go together with --enable-memory-saver: give the slack room instead")
    } else {
        finding.advise(format!(
            "set {variable}=expandable_segments:True: up to {} MiB become usable",
            mib_text(unallocated)
        ))
    };
    vec![finding]
}
