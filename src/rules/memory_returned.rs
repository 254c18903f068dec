//! `memory-returned`: free memory rose where it should fall.

use super::support::{difference_sum, posting_words, rank_words};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::ledger::{Posting, PostingKind};
use crate::quantity::{mib_text, signed_mib_text};
use crate::stage::Worker;

pub(super) static RULE: Rule = Rule {
    code: "VL008",
    name: "memory-returned",
    severity: Severity::Info,
    summary: "free memory rose during a stage or between two",
    explanation: "A negative usage is legal: the ledger posts it with its sign, and the books still balance.\n\n\
Benign causes: with speculative decoding the draft model drops its own embedding and head and shares the target's, so free memory rises \
between the draft's pool and its graph capture (2,004 MiB on an 8B model); caches freed before the next reading; on unified memory (GB10, \
Jetson) the page cache shrinking; quantised weights repacked.\n\n\
Not benign: another process that left the device in the meantime. Then the stage that was being measured looks cheaper than it is, and the \
KV pool was sized while the card was still occupied: a restart would give more tokens.\n\n\
Check: does the device's process list show what left? Does a second start give the same figure?",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, rank, ledger) in context.books() {
        for posting in
            ledger.postings.iter().filter(|posting| posting.used.is_some_and(|used| used.surely_below(0)))
        {
            let Some(used) = posting.used else { continue };
            let mut finding = Finding::new(
                &RULE,
                format!("{} MiB came back in {}", mib_text(-used), posting_words(posting)),
            )
            .rank(&rank.tag.text)
            .stage(posting.stage)
            .explain(cause(posting))
            .amount(used)
            .at(posting.places.clone());
            if let Some(sum) = difference_sum(posting) {
                finding = finding.sum(format!(
                    "{sum} ({} for {})",
                    signed_mib_text(used),
                    rank_words(&rank.tag.text)
                ));
            }
            findings.push(finding);
        }
    }
    findings
}

fn cause(posting: &Posting) -> &'static str {
    if posting.worker == Worker::Draft || posting.stage == crate::stage::Stage::GraphDraft {
        return "The draft model gave up its own embedding and output head and shares the target's: normal with EAGLE.";
    }
    match posting.kind {
        PostingKind::Gap => {
            "Freed caches between two stages, or another process that left the device meanwhile."
        }
        PostingKind::Stage => {
            "Caches freed inside the stage, page cache on unified memory, or another process that left the device meanwhile."
        }
    }
}
