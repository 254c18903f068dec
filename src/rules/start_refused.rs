//! `start-refused`: SGLang's own arithmetic left no room, and the log holds no figures to redo it with.

use super::death::fetch;
use super::{Context, Rule, budget_exhausted};
use crate::finding::{Finding, Severity};
use crate::quantity::{Decimal, Quantity, mib_text};
use crate::stage::Stage;
use crate::triage::{Diagnosis, Resource};

pub(super) static RULE: Rule = Rule {
    code: "VL038",
    name: "start-refused",
    severity: Severity::Error,
    summary: "SGLang refused to start: no room for KV or for a hybrid model's state, by its own arithmetic",
    explanation: "Nothing ran out: SGLang computes before it allocates, and what it computed was nothing, or less.\n\n\
`Not enough memory. Please try to increase --mem-fraction-static`, `Loaded weights leave no GPU memory for the KV cache`: weights use up the static budget, pre × f. \
The fraction must go UP, above 1 − available / pre; the opposite direction of an out-of-memory error in capture. Where the log has the free memory before and \
after the weights, budget-exhausted does the sum and this finding keeps silent.\n\n\
`Trying to create tensor with negative dimension`: the same, in releases that notice only when they allocate.\n\n\
`Not enough GPU memory for hybrid state cache`: models with linear attention or Mamba layers keep a state for each request, out of the same rest. Raise the fraction, or ask for \
fewer requests (--max-running-requests), or a smaller share (--mamba-full-memory-ratio).",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let Some(diagnosis) = context.diagnosis else { return Vec::new() };
    let finding = match diagnosis.resource {
        // With figures the budget's own finding does the sum.
        Resource::StaticBudget if (budget_exhausted::RULE.check)(context).is_empty() => {
            static_budget(diagnosis)
        }
        Resource::StateCache => state_cache(context, diagnosis),
        _ => return Vec::new(),
    };
    vec![fetch(finding.stage(Stage::KvCache), context)]
}

fn static_budget(diagnosis: &Diagnosis<'_>) -> Finding {
    let event = diagnosis.cause;
    let mut finding = Finding::new(&RULE, "the weights leave no room for KV under --mem-fraction-static")
        .explain("SGLang refused before anything ran out: up, not down, is the way.");
    if let Some(now) = event.number("mem_fraction_static") {
        finding = finding.sum(format!("--mem-fraction-static was {now}"));
    }
    if let Some(tokens) = event.count("dimension") {
        finding = finding.sum(format!("the pool came out at {tokens} tokens"));
    }
    match event.number("suggested") {
        Some(suggested) => finding
            .sum(format!("least viable, by SGLang's own figure: {suggested}"))
            .advise(format!("raise --mem-fraction-static above {suggested}: up, not down; well above it, for the pool to hold more than a handful of tokens")),
        None => finding.advise("raise --mem-fraction-static: up, not down; the least that works is 1 − available / pre, free memory after and before the weights"),
    }
    .advise("where no fraction below 0.95 will do: spread the weights (--tp, --ep), quantise them, or free the card of other processes")
}

fn state_cache(context: &Context<'_>, diagnosis: &Diagnosis<'_>) -> Finding {
    let event = diagnosis.cause;
    let finding = Finding::new(&RULE, "the state cache of the hybrid model does not fit")
        .explain("Models with linear attention or Mamba layers keep a state for each request, out of what the weights leave under the fraction.");
    let needed = event
        .memory("total_rest_memory")
        .zip(event.memory("mamba_cache_per_req"))
        .map(|(rest, slot)| (rest, slot, slot - rest));
    let Some((rest, slot, missing)) = needed else {
        return finding.advise("raise --mem-fraction-static: up, not down; or raise --max-mamba-cache-size, or ask for fewer requests at once");
    };
    let finding = finding
        .sum(format!(
            "left {} MiB, one request's state {} MiB: {} missing",
            mib_text(rest),
            mib_text(slot),
            mib_text(missing)
        ))
        .amount(missing);
    let Some(higher) = raised(context, missing) else {
        return finding
            .advise("raise --mem-fraction-static: up, not down, until some states of a request fit");
    };
    finding.advise(format!(
        "raise --mem-fraction-static to {higher} at least: up, not down; for every further state {} MiB more",
        mib_text(slot)
    ))
}

/// The least fraction in hundredths that gives so much more to the budget, in whole numbers. `None` where it would leave
/// next to nothing for graphs and activations.
fn raised(context: &Context<'_>, more: Quantity) -> Option<Decimal> {
    const MOST: i128 = 97;
    let baseline = context.worlds().first()?.baseline.as_ref()?.best().low();
    let (numerator, denominator) = context.audit?.fraction.as_ref()?.value.to_fraction()?;
    let scaled = numerator.checked_mul(baseline)?.checked_add(more.high().checked_mul(denominator)?)?;
    let below = denominator.checked_mul(baseline).filter(|below| *below > 0)?;
    let hundredths = -(-scaled.checked_mul(100)?).div_euclid(below);
    (more.high() > 0 && hundredths <= MOST).then(|| Decimal::new(hundredths, 2))
}
