//! `stage-unfinished`: a stage began, and its end was never printed.

use super::support::{rank_words, stage_words};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::launch::{Expectation, Outcome, expectation};
use crate::ledger::{Ledger, Posting, PostingKind, PostingState};
use crate::quantity::mib_text;
use crate::stage::Stage;
use crate::version::Version;

pub(super) static RULE: Rule = Rule {
    code: "VL003",
    name: "stage-unfinished",
    severity: Severity::Warning,
    summary: "a stage began and never printed its end",
    explanation: "A `begin` line without its `end`. Where the launch failed in that very stage, launch-failed says so, and how far the capture bars came. Where the \
launch went on, the end line was lost, and the stage's memory is inside the gap that follows it.\n\n\
Releases up to 0.4.1 print no end of graph capture, and none up to 0.3.6 an end of distributed init: that is no finding.\n\n\
A capture that is still running looks the same: the first (largest) batch size may take minutes when kernels are compiled on first use.\n\n\
Remedy: if the process is gone, read on at the failure; if the log is of a running server, take it again later.",
    check,
};

/// From here on every stage prints both ends.
const BOTH_ENDS: Version = Version::post(4, 3, 4);

fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, rank, ledger) in context.books() {
        for (index, posting) in
            ledger.postings.iter().enumerate().filter(|(_, posting)| is_unfinished(posting))
        {
            if context.launch.versions.first < BOTH_ENDS && posting.before.is_none()
                || is_other_ranks_end(context, rank, posting)
                || is_where_it_failed(context, ledger, index, posting)
            {
                continue;
            }
            let went_on = ledger.postings.len() > index + 1
                || matches!(context.launch.outcome, Outcome::Ready | Outcome::Running);
            let mut finding = Finding::new(&RULE, format!("{} began for {} and never ended", stage_words(posting.stage, posting.worker), rank_words(&rank.tag.text)))
                .rank(&rank.tag.text)
                .stage(posting.stage)
                .at(posting.places.clone())
                .explain(if went_on { "Later lines of the rank are there: its end line was lost, and its memory is inside what follows." } else { "Nothing of this rank follows: it died here, is still at work, or the log was cut." });
            if let (Some(first), Some(last)) = (posting.progress.first(), posting.progress.last()) {
                finding = finding.sum(format!(
                    "{} begun; free memory went from {} to {} MiB (last: {})",
                    if posting.progress.len() == 1 {
                        "one size was".to_string()
                    } else {
                        format!("{} sizes were", posting.progress.len())
                    },
                    mib_text(first.available),
                    mib_text(last.available),
                    last.label
                ));
            }
            findings.push(finding);
        }
    }
    findings
}

fn is_unfinished(posting: &Posting) -> bool {
    posting.kind == PostingKind::Stage && posting.state == PostingState::Begun
}

/// The stage at which the launch failed, and nothing of the rank behind it: `launch-failed` says that, and how far the
/// stage came.
fn is_where_it_failed(context: &Context<'_>, ledger: &Ledger, index: usize, posting: &Posting) -> bool {
    context.launch.outcome == Outcome::Failed
        && context.launch.failed_stage == Some(posting.stage)
        && ledger.postings.len() == index + 1
}

/// Pool lines of a rank that prints no `Memory pool end` in these releases, or whose stage ended under another worker.
fn is_other_ranks_end(context: &Context<'_>, rank: &crate::launch::Rank, posting: &Posting) -> bool {
    let pool = matches!(posting.stage, Stage::KvCache | Stage::MemoryPool);
    pool && expectation(context.launch, &rank.tag, Stage::KvCache, posting.worker) != Expectation::Printed
}

/// Stages of a ledger that never ended.
pub(super) fn unfinished(ledger: &Ledger) -> impl Iterator<Item = &Posting> {
    ledger.postings.iter().filter(|posting| is_unfinished(posting))
}
