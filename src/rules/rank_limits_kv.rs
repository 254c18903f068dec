//! `rank-limits-kv`: one rank has less memory than the others, and all pools shrink to what it can hold.

use super::support::rank_words;
use super::{Context, Rule};
use crate::budget::audit::{RankLimit, World};
use crate::finding::{Finding, Severity};
use crate::quantity::{group_digits, mib_text};
use crate::stage::Stage;
use crate::thresholds::Limit;

pub(super) static RULE: Rule = Rule {
    code: "VL025",
    name: "rank-limits-kv",
    severity: Severity::Warning,
    summary: "one rank's memory keeps every rank's KV pool small",
    explanation: "All ranks of a launch hold the same number of tokens. Both inputs of the budget are minima over the ranks: the free memory before the weights \
(pre), and the free memory when the pool is sized. So one card with less free costs every rank the same tokens, and what the others have more stays \
unused.\n\n\
The cost is computed from the ranks' own figures: what would be left for KV if the others alone decided, less what is.\n\n\
Between pipeline stages a difference is usual: the first and last stage hold embeddings and head besides their layers, and a stage with more \
layers pays more per token. It is then information, and a different split of the layers (SGLANG_PP_LAYER_PARTITION) the remedy.\n\n\
Between ranks of one stage it is another process on the poor card, or a smaller card: free it. SGLang refuses to start where the least is below \
0.9 of another rank's (see ranks-unbalanced), so up to a tenth is lost in silence.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let allowed = context.thresholds.get(Limit::Peers);
    let limited = |world: &World| {
        let limit = world.limit.as_ref().filter(|limit| limit.cost.surely_above(allowed))?;
        finding(context, world, limit)
    };
    context.worlds().iter().filter_map(limited).collect()
}

fn finding(context: &Context<'_>, world: &World, limit: &RankLimit) -> Option<Finding> {
    let tag = context.tag(limit.rank);
    let tokens = limit.tokens.map(|(low, _)| format!("{} tokens or more", group_digits(low.max(0))));
    let cost = tokens.unwrap_or_else(|| format!("{} MiB", mib_text(limit.cost)));
    let places = context.ledgers.get(limit.rank).and_then(|ledger| ledger.opening_place.clone());
    let finding = Finding::new(&RULE, format!("{} costs every rank {cost} of KV", rank_words(tag)))
        .severity(if limit.between_stages { Severity::Info } else { Severity::Warning })
        .rank(tag)
        .stage(Stage::KvCache)
        .sum(format!(
            "left for KV if the other ranks decided {} − as it is {} = {} MiB a rank",
            mib_text(limit.rest_without),
            mib_text(limit.rest_without - limit.cost),
            mib_text(limit.cost)
        ))
        .amount(limit.cost)
        .at(places)
        .at(world.available.as_ref().and_then(|available| available.place.clone()));
    Some(if limit.between_stages {
        finding
            .explain("This pipeline stage holds more weights than the others, and all stages hold the same tokens.")
            .advise("another split of the layers evens it out: SGLANG_PP_LAYER_PARTITION")
    } else {
        finding
            .explain("The least free memory decides for all ranks; what the others have more stays unused.")
            .advise(format!("free the card of {}: look at its process list", rank_words(tag)))
    })
}
