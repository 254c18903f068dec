//! `budget-exhausted`: nothing is left for KV under the fraction, and SGLang refuses to start.

use super::{Context, Rule};
use crate::budget::audit::{FractionFact, World};
use crate::event::{FailureKind, Role};
use crate::finding::{Finding, Severity};
use crate::quantity::{Decimal, Quantity, mib_text};
use crate::stage::Stage;

pub(super) static RULE: Rule = Rule {
    code: "VL020",
    name: "budget-exhausted",
    severity: Severity::Error,
    summary: "the weights use up the static budget: nothing is left for KV",
    explanation: "mem_fraction_static is a share of pre, the free memory before the weights (the least over the ranks), not of the card. pre × f must hold \
the weights and the KV pool. Where the weights alone need more, SGLang refuses to start: `Not enough memory. Please try to increase \
--mem-fraction-static` up to 0.5.12, `Loaded weights leave no GPU memory for the KV cache` from 0.5.15.\n\n\
rest = available − pre × (1 − f), where available is what is free after the weights. It is positive only for f above 1 − available / pre, the least \
viable fraction, which SGLang rounds up to three decimals. From 0.5.15 the weights of a draft model are counted too.\n\n\
The knob goes UP here, the opposite direction of an out-of-memory error in graph capture. Or spread the weights: --tp, --ep, quantisation.\n\n\
Just above the least fraction the pool holds a handful of tokens: choose one that leaves room for your context lengths, and see that the slack, \
pre × (1 − f), still holds graphs and activations.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some(fraction) = context.audit.and_then(|audit| audit.fraction.as_ref()) else { return Vec::new() };
    let refused = context
        .launch
        .failures
        .iter()
        .find(|event| event.role == Role::Failure(FailureKind::BudgetExhausted));
    let exhausted = context.worlds().iter().filter(|world| {
        refused.is_some() && world.tokens.as_ref().is_none_or(|tokens| tokens.printed.is_none())
            || world.rest.is_some_and(|rest| rest.high() <= 0)
    });
    exhausted
        .map(|world| {
            let mut finding = Finding::new(&RULE, title(fraction, world)).stage(Stage::KvCache).explain(
                "The weights need more than pre × f. The fraction must go up, or the weights must be spread.",
            );
            finding = sums(finding, fraction, world);
            if let Some(event) = refused {
                finding = finding.at([event.place.clone()]);
                if let Some(suggested) = event.number("suggested") {
                    finding = finding.sum(format!("SGLang's own figure: above {suggested}"));
                }
            }
            finding = finding
                .at([fraction.place.clone()])
                .at(world.available.iter().filter_map(|one| one.place.clone()));
            advice(context, world).into_iter().fold(finding, Finding::advise)
        })
        .collect()
}

fn title(fraction: &FractionFact, world: &World) -> String {
    let value = fraction.value;
    match world.rest.filter(|rest| rest.high() <= 0) {
        Some(rest) => {
            format!("--mem-fraction-static {value} leaves nothing for KV: {} MiB too little", mib_text(-rest))
        }
        None => format!("--mem-fraction-static {value} leaves nothing for KV"),
    }
}

fn sums(mut finding: Finding, fraction: &FractionFact, world: &World) -> Finding {
    let value = fraction.value;
    let (Some(baseline), Some(available)) = (&world.baseline, &world.available) else { return finding };
    let pre = baseline.best();
    if let (Some(budget), Some(slack), Some(rest)) = (world.static_budget, world.slack, world.rest) {
        finding = finding
            .sum(format!("static budget: pre {} × {value} = {} MiB", mib_text(pre), mib_text(budget)))
            .sum(format!(
                "rest: available {} − pre × (1 − {value}) {} = {} MiB",
                mib_text(available.amount),
                mib_text(slack),
                mib_text(rest)
            ))
            .amount(rest);
    }
    match world.minimal_fraction {
        Some((low, high)) if low == high => {
            finding.sum(format!("least viable fraction: 1 − available / pre = {high}, rounded up"))
        }
        Some((low, high)) => {
            finding.sum(format!("least viable fraction: 1 − available / pre = {low} to {high}, rounded up"))
        }
        None => finding,
    }
}

/// The fraction that most servers run with where nothing is known of the card.
const USUAL: Decimal = Decimal::new(85, 2);

/// What to set instead: the default of these arguments where the card is known, else a usual fraction; each only where
/// the arithmetic leaves something for KV under it.
pub(super) fn advice(context: &Context<'_>, world: &World) -> Vec<String> {
    let default =
        context.audit.and_then(|audit| audit.default.as_ref()).and_then(|default| default.derived.decimal());
    let candidates = [
        default.map(|value| (value, "SGLang's default for these arguments")),
        Some((USUAL, "a usual value")),
    ];
    let found = candidates.into_iter().flatten().find_map(|(value, what)| {
        Some((value, what, under(context, world, value).filter(|(_, rest)| rest.low() > 0)?))
    });
    match (found, world.minimal_fraction) {
        (Some((value, what, (slack, rest))), Some((_, least))) => vec![format!(
            "raise --mem-fraction-static above {least}: up, not down; {value} ({what}) leaves {} MiB for KV and {} MiB for graphs and activations",
            mib_text(rest),
            mib_text(slack)
        )],
        (None, Some((_, least))) => vec![format!(
            "a fraction above {least} would start, with {} MiB for KV, graphs and activations together: spread the weights (--tp, --ep), quantise them, or take a larger card",
            world.available.as_ref().map(|available| mib_text(available.amount)).unwrap_or_default()
        )],
        _ => vec!["raise --mem-fraction-static: the weights took all of the static budget".to_string()],
    }
}

/// Slack and rest under another fraction.
fn under(context: &Context<'_>, world: &World, value: Decimal) -> Option<(Quantity, Quantity)> {
    let fraction = context.audit?.fraction.as_ref()?;
    let budget = world.budget(&FractionFact { value, ..fraction.clone() })?;
    Some((budget.slack()?, budget.rest()?))
}
