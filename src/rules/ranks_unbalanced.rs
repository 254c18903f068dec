//! `ranks-unbalanced`: the ranks' free memory differs, and the poorest decides for all.

use super::support::rank_words;
use super::{Context, Rule};
use crate::budget::checks::{BalanceRule, balance_rule};
use crate::event::{FailureKind, Role};
use crate::finding::{Finding, Severity};
use crate::launch::{Outcome, Rank};
use crate::ledger::Ledger;
use crate::quantity::{Quantity, mib_text, mib_whole};
use crate::stage::{Stage, Worker};
use crate::thresholds::Limit;
use crate::triage::imbalance::{Imbalance, classify};

pub(super) static RULE: Rule = Rule {
    code: "VL005",
    name: "ranks-unbalanced",
    severity: Severity::Warning,
    summary: "free memory before the weights differs between ranks of one group",
    explanation: "The base of mem_fraction_static is the minimum of all ranks' free memory. One occupied card shrinks every rank's KV pool, and what the other \
ranks have more stays unused.\n\n\
SGLang refuses to start where the minimum is below 0.9 of a rank's own free memory (ValueError up to 0.5.6, RuntimeError from 0.5.8; a warning \
with SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0, before 0.5.8 SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK). The rank that complains is a rich one; \
the poor one does not.\n\n\
This finding also stands where the check passed but the difference surely exceeds the peers limit.\n\n\
Causes: another process on the poor card; contexts of the server's own helper processes on GPU 0; cards of different size.\n\n\
Remedy: free the poor card. Changing mem_fraction_static does not help: the minimum rules either way.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let openings: Vec<(&Rank, &Ledger, Quantity)> =
        context.books().filter_map(|(_, rank, ledger)| Some((rank, ledger, ledger.opening?))).collect();
    let complaint =
        context.launch.failures.iter().find(|event| event.role == Role::Failure(FailureKind::Unbalanced));
    let poorest = openings.iter().min_by_key(|(.., free)| free.midpoint());
    let richest = openings.iter().max_by_key(|(.., free)| free.midpoint());
    let mut finding = match (poorest, richest) {
        (Some(poor), Some(rich)) if (rich.2 - poor.2).surely_above(context.thresholds.get(Limit::Peers)) => {
            spread(context, poor, rich)
        }
        _ if complaint.is_some() => {
            Finding::new(&RULE, "the ranks' free memory before the weights differs too much")
        }
        _ => return Vec::new(),
    };
    let minimum_and_local = complaint.and_then(|event| {
        let minimum = event.memory("pre_model_load_memory").or_else(|| event.memory("min_per_gpu_memory"))?;
        Some((minimum, event.memory("local_gpu_memory")?))
    });
    let difference = minimum_and_local.map(|(minimum, local)| local - minimum).or(finding.amount);
    let complaining = complaint.map(AsRef::as_ref);
    let cause = classify(context.launch, context.devices, context.observations, complaining, difference);
    if let Some(event) = complaint {
        if let Some((minimum, local)) = minimum_and_local {
            let needed = local.scale(9, 10).unwrap_or(local);
            finding = finding
                .sum(format!(
                    "minimum over ranks {} MiB < 0.9 × {} = {} MiB: the check fails",
                    mib_whole(minimum),
                    mib_whole(local),
                    mib_whole(needed)
                ))
                .amount(local - minimum);
            if cause != Some(Imbalance::DraftAfterTarget) {
                finding = finding.sum(format!(
                    "{} MiB must be freed on the poorest card for the check to pass",
                    mib_whole(needed - minimum)
                ));
            }
        }
        finding = finding.at([event.place.clone()]);
        if !event.rank.text.is_empty() {
            finding = finding.explain(format!(
                "{} has enough and complains; another rank is the poor one. Its KV pool, and so everybody's, is sized by the poorest.",
                rank_words(&event.rank.text)
            ));
        }
        if context.launch.outcome == Outcome::Failed {
            finding = finding.severity(Severity::Error);
        }
    }
    vec![advised(finding.stage(Stage::DistributedInit), context, cause.as_ref())]
}

/// The advice that the cause calls for; without one, the usual.
fn advised(finding: Finding, context: &Context<'_>, cause: Option<&Imbalance>) -> Finding {
    let Some(cause) = cause else {
        return finding.advise(
            "free the poorest card (look at its process list), then start again; another mem_fraction_static does not help, the minimum rules either way",
        );
    };
    let told = [finding.explanation.as_str(), &cause.words()].join(" ");
    let finding = finding.explain(told.trim()).advise(cause.advice());
    let removable = matches!(cause, Imbalance::Foreign { .. } | Imbalance::OwnContexts { .. });
    match balance_rule(context.launch.versions.last) {
        _ if removable => {
            finding.advise("another mem_fraction_static does not help, the minimum rules either way")
        }
        BalanceRule::RefusesUnlessSwitchedOff { switch } => {
            finding.advise(format!("the check is switched off by {switch}"))
        }
        BalanceRule::Dead | BalanceRule::Refuses => finding,
    }
}

/// Two ranks' first figures, and what the difference costs.
fn spread(
    context: &Context<'_>,
    poor: &(&Rank, &Ledger, Quantity),
    rich: &(&Rank, &Ledger, Quantity),
) -> Finding {
    let difference = rich.2 - poor.2;
    let mut finding = Finding::new(
        &RULE,
        format!("{} has {} MiB less free before the weights than {}", rank_words(&poor.0.tag.text), mib_text(difference), rank_words(&rich.0.tag.text)),
    )
    .rank(&poor.0.tag.text)
    .explain("The poorest rank's free memory is the base for all: every rank's KV pool shrank to what it can hold.")
    .sum(format!("{} − {} = {} MiB", mib_text(rich.2), mib_text(poor.2), mib_text(difference)))
    .amount(difference)
    .at(poor.1.opening_place.clone())
    .at(rich.1.opening_place.clone());
    if let Some((idle, ..)) = rich.1.closing.zip(poor.1.closing).map(|(rich, poor)| (rich - poor, ()))
        && rich.1.stage(Stage::KvCache, Worker::Target).is_some_and(|pool| pool.used.is_some())
        && matches!(context.launch.outcome, Outcome::Ready | Outcome::Running)
    {
        finding = finding.sum(format!(
            "after start-up {} has {} MiB more idle than {}",
            rank_words(&rich.0.tag.text),
            mib_text(idle),
            rank_words(&poor.0.tag.text)
        ));
    }
    finding
}
