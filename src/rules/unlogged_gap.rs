//! `unlogged-gap`: memory that moved between two stages, worth knowing about.

use super::support::difference_sum;
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::ledger::{Ledger, Posting, PostingKind};
use crate::quantity::{Quantity, mib_text, mib_whole};
use crate::stage::Stage;
use crate::thresholds::Limit;

pub(super) static RULE: Rule = Rule {
    code: "VL007",
    name: "unlogged-gap",
    severity: Severity::Info,
    summary: "memory moved between two stages without a line of its own",
    explanation: "The free figure at the begin of a stage is lower than at the end of the one before. No line says what took it; the ledger keeps it as an entry \
of its own, so that the books balance.\n\n\
What is known to sit in these places (SGLang 0.4 to 0.5.23):\n\
  weights to KV pool: LoRA buffers, torchao, and from 0.5.15 the whole draft model;\n\
  pool to capture: cuBLAS, attention workspaces (FlashInfer 384 MiB, 512 for Qwen; trtllm_mha 512; deterministic mode 2 GiB), kernel warm-up, \
eager buffers. 98 MiB with Triton attention on an H200: 32 in PyTorch, 66 outside it;\n\
  last capture to ready: symmetric memory (4 GiB by default when enabled), draft stages, and cache that PyTorch did not give back.\n\n\
Only gaps surely above the notice limit are listed (--threshold gap-notice=SIZE); above the gap limit they become stage-oversized.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let (notice, limit) = (context.thresholds.get(Limit::GapNotice), context.thresholds.get(Limit::Gap));
    let worth_a_line = |posting: &&Posting| {
        posting.kind == PostingKind::Gap
            && posting.used.is_some_and(|used| used.surely_above(notice) && !used.surely_above(limit))
    };
    // Ranks that agree make one finding: the first rank's gap stands for the same gap of the others.
    let mut seen: Vec<(String, Quantity)> = Vec::new();
    let mut findings = Vec::new();
    for (_, rank, ledger) in context.books() {
        for posting in ledger.postings.iter().filter(worth_a_line) {
            let Some(used) = posting.used else { continue };
            if seen.iter().any(|(label, amount)| *label == posting.label && amount.meets(used)) {
                continue;
            }
            seen.push((posting.label.clone(), used));
            findings.push(
                Finding::new(&RULE, format!("{} MiB moved {}", mib_text(used), posting.label))
                    .rank(&rank.tag.text)
                    .stage(posting.stage)
                    .explain(usual_content(posting))
                    .sum(difference_sum(posting).unwrap_or_default())
                    .amount(used)
                    .at(posting.places.clone()),
            );
        }
        findings.extend(at_ready(rank.tag.text.as_str(), ledger, notice));
    }
    findings
}

/// What moved between the last stage line and the ready line.
fn at_ready(tag: &str, ledger: &Ledger, notice: i128) -> Option<Finding> {
    let kept = ledger.kept_at_ready().filter(|kept| kept.surely_above(notice))?;
    Some(
        Finding::new(&RULE, format!("{} MiB moved between the last stage and the ready line", mib_text(kept)))
            .rank(tag)
            .stage(Stage::Ready)
            .explain("PyTorch's cache is not emptied before the ready line's figure: either it kept this much, or something was allocated without a line (eager warm-up, symmetric memory).")
            .sum(format!("{} − {} = {} MiB", mib_whole(ledger.closing?), mib_whole(ledger.headroom?), mib_text(kept)))
            .amount(kept)
            .at(ledger.closing_place.clone())
            .at(ledger.headroom_place.clone()),
    )
}

fn usual_content(posting: &Posting) -> &'static str {
    match posting.stage {
        Stage::KvCache | Stage::MemoryPool => {
            "Between weights and pool: LoRA or quantisation buffers, or from 0.5.15 the draft model."
        }
        stage if stage.is_capture() => {
            "Before a capture: cuBLAS and attention workspaces, kernel warm-up, eager buffers."
        }
        Stage::Weights => {
            "Before the weights: memory-saver set-up, expert tables, or the draft's own buffers."
        }
        _ => "No line says what took it.",
    }
}
