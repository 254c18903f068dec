//! `kv-capped`: `--max-total-tokens` keeps the KV pool below what the budget gives.

use super::{Context, Rule};
use crate::budget::audit::World;
use crate::budget::plan::{Change, project};
use crate::finding::{Finding, Severity};
use crate::quantity::{group_digits, mib_text, mib_whole};
use crate::stage::Stage;

pub(super) static RULE: Rule = Rule {
    code: "VL024",
    name: "kv-capped",
    severity: Severity::Info,
    summary: "--max-total-tokens keeps the KV pool below what the budget gives",
    explanation: "The pool is sized by the least of two: what is left under mem_fraction_static, and --max-total-tokens. Here the cap decides, and the rest of the \
static budget is never allocated. That can be wanted: to share a card, to compare runs, or to leave room under load.\n\n\
While the cap decides, another mem_fraction_static changes nothing but the refusal to start. The cap does not scale with the card or the model: \
on another card the same number may be too much or too little. To leave room under load, a lower fraction is the better knob.\n\n\
Remedy, if it was not wanted: drop --max-total-tokens.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    context.worlds().iter().filter_map(|world| capped(context, world)).collect()
}

fn capped(context: &Context<'_>, world: &World) -> Option<Finding> {
    let tokens = world.tokens.as_ref().filter(|tokens| tokens.is_capped())?;
    let (cap, printed, (least, most)) = (tokens.user_cap?, tokens.printed?, tokens.divided?);
    if least <= printed {
        return None;
    }
    let rank = world.available.as_ref()?.rank;
    let unused = world.cell?.bytes(least - printed)?.hull(world.cell?.bytes(most - printed)?);
    let mut finding = Finding::new(
        &RULE,
        format!("--max-total-tokens {cap} leaves {} MiB of the budget unused", mib_text(unused)),
    )
    .rank(context.tag(rank))
    .stage(Stage::KvCache)
    .explain("The cap decides the size of the pool, not mem_fraction_static.")
    .sum(format!(
        "the budget gives {} to {} tokens, the cap {}",
        group_digits(least),
        group_digits(most),
        group_digits(printed)
    ))
    .amount(unused)
    .at(tokens.place.clone())
    .at(context.audit.and_then(|audit| audit.fraction.as_ref()).map(|fraction| fraction.place.clone()));
    let uncapped = Change { max_total_tokens: Some(None), ..Change::default() };
    if let Some(then) = context.facts_of(rank).and_then(|facts| project(facts, &uncapped).ok())
        && let Some(left) = then.remaining.filter(|left| left.low() > 0)
    {
        finding = finding.advise(format!(
            "without --max-total-tokens the pool holds {} tokens or more, and about {} MiB stay free after start-up",
            group_digits(then.tokens.0),
            mib_whole(left)
        ));
    }
    Some(finding)
}
