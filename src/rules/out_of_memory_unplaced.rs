//! `out-of-memory-unplaced`: device memory ran out, and the input does not show when.

use super::death::{at_death, ending_others, fetch, missing_words, of_torch};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::triage::{Period, Phase};

pub(super) static RULE: Rule = Rule {
    code: "VL039",
    name: "out-of-memory-unplaced",
    severity: Severity::Error,
    summary: "device memory ran out, and the input does not show at which stage",
    explanation: "PyTorch's sentence tells how much was asked for, what was free and who held the rest. It does not tell when, and the direction of the remedy hangs on \
that.\n\n\
Before the KV pool (loading weights): the fraction plays no part; free the card or spread the weights. While the pool is allocated: somebody took \
memory meanwhile. In graph capture or under load: lower the fraction, smaller graphs, smaller chunks.\n\n\
What tells: the last stage line before it (`Load weight begin`, `Memory pool end`, `Capture … begin`, `fired up`), or the frames of the traceback \
(`load_model`, `memory_pool`, `cuda_graph_runner`, `forward_extend`). Memory in private pools (e.g., CUDA Graphs) in the sentence itself says that graphs were \
captured or being captured: behind the pool.\n\n\
Remedy: give the log from its start, or the traceback above the sentence.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let periods = [Period::Unknown, Period::AfterPool];
    let Some((diagnosis, sentence)) = of_torch(context, &periods) else { return Vec::new() };
    if diagnosis.phase != Phase::Unknown && diagnosis.period != Period::Unknown {
        return Vec::new();
    }
    let title = format!("out of memory {}{}", diagnosis.phase.words(), missing_words(sentence));
    let mut finding = at_death(Finding::new(&RULE, title), diagnosis, sentence);
    finding = match diagnosis.period {
        Period::AfterPool => finding
            .explain("Memory in graphs' private pools says that graphs were there or being made, so the KV pool was allocated before: the slack is too small.")
            .advise("lower --mem-fraction-static: down, not up; or smaller graphs (--cuda-graph-max-bs) and chunks (--chunked-prefill-size)"),
        _ => finding
            .explain("The sentence does not say when, and the direction hangs on that.")
            .advise("in graph capture or under load: lower --mem-fraction-static (down, not up)")
            .advise("in loading weights or allocating the KV pool: look for other processes on the card; the fraction plays no part"),
    };
    finding = ending_others(finding, sentence);
    if context.ledgers.is_empty() {
        finding =
            finding.advise("the traceback above the sentence, or the last stage line before it, tells which");
    }
    vec![fetch(finding, context)]
}
