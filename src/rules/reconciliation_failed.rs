//! `reconciliation-failed`: the log's books and the instrument's figure cannot be brought together.

use super::support::rank_words;
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::quantity::{Quantity, mib_text, signed_mib_text};
use crate::reconcile::{BridgeTerm, Verdict};

pub(super) static RULE: Rule = Rule {
    code: "VL011",
    name: "reconciliation-failed",
    severity: Severity::Error,
    summary: "used memory by the log and by the instrument differ by more than 64 MiB",
    explanation: "The bridge: card − what the driver keeps − free by the log = used by the log. It is compared with what the instrument says is used on \
the same device. Lazily loaded kernels and the first requests move some tens of MiB (56 were measured for a first request of 1,024 tokens), \
so up to 64 MiB either way count as explained.\n\n\
More means that something moved between the last line of the log and the sample, or that the two are not of the same device or launch:\n\
  the sample is of another moment (before ready, after a crash, from the next start);\n\
  the sample is of another device (say which with --map);\n\
  another process came or left;\n\
  the server grew while serving: eager workspaces, communication channels, a leak (a warning where the sample is of more than a minute later).\n\n\
Remedy: take nvidia-smi within seconds of the ready line, with its process list, and give the log of the same start.",
    check,
};

/// From here on, in seconds, requests may have been served between the ready line and the sample.
const LONG_AFTER_READY: f64 = 60.0;

fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for reconciliation in context.reconciliations.iter().filter(|one| one.verdict == Verdict::Fails) {
        let Some((rank, ledger)) =
            context.launch.ranks.get(reconciliation.rank).zip(context.ledgers.get(reconciliation.rank))
        else {
            continue;
        };
        let amount = |term: BridgeTerm| mib_text(reconciliation.amount(term).unwrap_or(Quantity::ZERO));
        let apart = reconciliation.seconds_apart.map_or_else(
            || "Neither the dump nor the log tells how far apart they were taken.".to_string(),
            |seconds| format!("The sample was taken {seconds:.0} s after the ready line."),
        );
        let more = reconciliation.unexplained.low() > 0;
        let direction = if more {
            "more is used than the log accounts for"
        } else {
            "less is used than the log accounts for"
        };
        // A server grows while it serves: a sample of long after ready proves nothing wrong with the books.
        let long_after = reconciliation.seconds_apart.is_some_and(|seconds| seconds > LONG_AFTER_READY);
        let severity = if more && long_after { Severity::Warning } else { Severity::Error };
        findings.push(
            Finding::new(&RULE, format!("{} MiB unexplained for {}: {direction}", signed_mib_text(reconciliation.unexplained), rank_words(&rank.tag.text)))
                .severity(severity)
                .rank(&rank.tag.text)
                .explain(apart)
                .sum(format!(
                    "card {} − kept by the driver {} − free by the log {} = {} MiB used by the log",
                    amount(BridgeTerm::Total),
                    amount(BridgeTerm::Reserve),
                    mib_text(ledger.final_free().unwrap_or(Quantity::ZERO)),
                    amount(BridgeTerm::UsedByLog)
                ))
                .sum(format!("used by the instrument {} MiB", amount(BridgeTerm::UsedByInstrument)))
                .advise("check that dump and log are of the same start and device (--map names the device), and look at the process list")
                .amount(reconciliation.unexplained)
                .at(ledger.headroom_place.clone().or_else(|| ledger.closing_place.clone()))
                .at(context.observations.get(reconciliation.observation).map(|sample| sample.place.clone())),
        );
    }
    findings
}
