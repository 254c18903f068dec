//! `budget-exceeded`: more was taken than the budget set aside: by the KV pool, by a draft model, by graphs.

use super::support::stage_words;
use super::{Context, Rule};
use crate::budget::audit::{SlackItem, TokenVerdict, World};
use crate::finding::{Finding, Severity};
use crate::ledger::PostingKind;
use crate::quantity::{Quantity, group_digits, mib_text};
use crate::stage::{Stage, Worker};

pub(super) static RULE: Rule = Rule {
    code: "VL023",
    name: "budget-exceeded",
    severity: Severity::Warning,
    summary: "KV pool, draft model or graphs take more than the budget set aside for them",
    explanation: "pre × f is for weights and KV, pre × (1 − f), the slack, for everything else. Two things break this:\n\n\
The KV pool holds more tokens than the division gives. From 0.4.1 to 0.5.6 speculative decoding adds requests × (steps × top-k + draft tokens) + 100 \
tokens after the division. Sparse attention with FP8 stores more than it counts up to 0.5.15.\n\n\
The draft model of speculative decoding, up to 0.5.12: its weights, KV pool and graphs are loaded after the target's pool was sized, so they come \
out of the slack. From 0.5.15 its weights and KV are part of the budget.\n\n\
Graphs, workspaces or activations that are larger than the slack end in an out-of-memory error, which has findings of its own (out-of-memory-capture, \
out-of-memory-runtime).",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        context.worlds().iter().filter_map(|world| larger_pool(context, world)).collect();
    findings.extend(context.worlds().iter().filter_map(|world| draft_in_slack(context, world)));
    findings
}

fn larger_pool(context: &Context<'_>, world: &World) -> Option<Finding> {
    let tokens = world.tokens.as_ref().filter(|tokens| tokens.verdict == Some(TokenVerdict::More))?;
    let (printed, (_, most)) = (tokens.printed?, tokens.predicted?);
    let rank = world.available.as_ref()?.rank;
    let excess = world.cell?.bytes(printed - most)?;
    Some(
        Finding::new(&RULE, format!("the KV pool holds {} tokens more than its budget", group_digits(printed - most)))
            .rank(context.tag(rank))
            .stage(Stage::KvCache)
            .explain("More than the division of what was left gives: memory was given back before the pool was sized, tokens were added for speculative decoding, or a token is counted smaller than it is stored.")
            .sum(format!("printed {} tokens, at most {} by the budget: {} MiB more", group_digits(printed), group_digits(most), mib_text(excess)))
            .amount(excess)
            .at(tokens.place.clone())
            .advise("the slack is smaller by that much: see what remains before raising --mem-fraction-static"),
    )
}

fn draft_in_slack(context: &Context<'_>, world: &World) -> Option<Finding> {
    let used = world.slack_use.as_ref()?;
    let is_draft = |item: &&SlackItem| {
        item.worker == Worker::Draft
            && item.kind == PostingKind::Stage
            && matches!(item.stage, Stage::Weights | Stage::KvCache)
    };
    let items: Vec<&SlackItem> = used.items.iter().filter(is_draft).collect();
    if items.is_empty() {
        return None;
    }
    let sum: Quantity = items.iter().map(|item| item.used).sum();
    let terms: Vec<String> = items
        .iter()
        .map(|item| format!("{} {}", stage_words(item.stage, item.worker), mib_text(item.used)))
        .collect();
    let mut finding = Finding::new(&RULE, format!("the draft model takes {} MiB of the slack", mib_text(sum)))
        .severity(Severity::Info)
        .rank(context.tag(used.rank))
        .stage(Stage::KvCache)
        .explain("This release loads the draft model after the target's pool was sized: nothing in the budget is set aside for it.")
        .sum(format!("{} = {} MiB", terms.join(" + "), mib_text(sum)))
        .amount(sum);
    if let Some(slack) = world.slack {
        finding = finding.sum(format!("slack: pre × (1 − f) = {} MiB", mib_text(slack)));
    }
    Some(finding.advise("from 0.5.15 on draft weights and KV are part of the budget: the same fraction then gives fewer tokens and leaves more free"))
}
