//! `held-before-start`: memory that was gone before the log's first figure.

use super::support::rank_words;
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::quantity::{Quantity, mib_text, mib_whole};
use crate::reconcile::BridgeTerm;
use crate::stage::Stage;
use crate::thresholds::Limit;

pub(super) static RULE: Rule = Rule {
    code: "VL009",
    name: "held-before-start",
    severity: Severity::Warning,
    summary: "much of the device was in use before the log's first free figure",
    explanation: "The first free figure of a log comes after distributed init. What was gone by then is: the process's own CUDA context (527 MiB of the \
device on an H200), communicators (NCCL, custom all-reduce: about 1 GiB a rank with two ranks), the first kernels, and other processes.\n\n\
It is computed as card − what the driver keeps − first free figure, so it needs the card's size from an nvidia-smi dump.\n\n\
mem_fraction_static is a share of what was left then, not of the card: memory held before start counts on neither side, and makes the KV \
pool smaller without a word in the log.\n\n\
Remedies: look at the process list of the same device (nvidia-smi, --query-compute-apps); end what does not belong there; wait for the \
previous server's processes to be gone before starting the next.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let ranks = context.launch.ranks.len();
    let limit = context.thresholds.get(if ranks > 1 { Limit::HeldParallel } else { Limit::HeldSingle });
    let mut findings = Vec::new();
    for (index, rank, ledger) in context.books() {
        let Some(reconciliation) = context.reconciliation(index) else { continue };
        let Some(held) =
            reconciliation.amount(BridgeTerm::HeldBefore).filter(|held| held.surely_above(limit))
        else {
            continue;
        };
        let init: Option<Quantity> = ledger
            .stages(Stage::DistributedInit)
            .find(|posting| !posting.in_chain)
            .and_then(|posting| posting.claimed);
        let mut finding = Finding::new(&RULE, format!("{} MiB were in use before the first figure of {}", mib_text(held), rank_words(&rank.tag.text)))
            .rank(&rank.tag.text)
            .explain("Context and communicators take less than that: something else was on the device when the server started.")
            .sum(format!(
                "card {} − kept by the driver {} − first free figure {} = {} MiB",
                mib_text(reconciliation.amount(BridgeTerm::Total).unwrap_or(Quantity::ZERO)),
                mib_text(reconciliation.amount(BridgeTerm::Reserve).unwrap_or(Quantity::ZERO)),
                mib_text(ledger.opening.unwrap_or(Quantity::ZERO)),
                mib_text(held)
            ))
            .sum(format!("expected at most {} MiB with {ranks} rank{}", mib_whole(Quantity::exact(limit)), if ranks == 1 { "" } else { "s" }))
            .advise("look at the device's process list, and free the card before the next start")
            .amount(held)
            .at(ledger.opening_place.clone());
        if let Some(init) = init {
            finding = finding.sum(format!("of it, distributed init claims {} MiB", mib_text(init)));
        }
        findings.push(finding);
    }
    findings
}
