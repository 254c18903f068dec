//! `pool-too-small`: the pool cannot hold one request of full context length, or the requests that were asked for.

use super::support::rank_words;
use super::{Context, Rule};
use crate::budget::audit::World;
use crate::budget::plan::{Change, Goal, solve};
use crate::finding::{Finding, Severity};
use crate::quantity::{group_digits, mib_whole};
use crate::stage::Stage;

pub(super) static RULE: Rule = Rule {
    code: "VL026",
    name: "pool-too-small",
    severity: Severity::Warning,
    summary: "the KV pool cannot hold one request of full length, or as many requests as were asked for",
    explanation: "Every running request keeps its tokens in the pool: prompt and output. A request of full context length needs context_len tokens. Where the pool \
has fewer, such a request can be accepted and never finished, or is refused: SGLang shortens what it takes to the pool.\n\n\
max_running_requests is bounded by the pool as well: by half its tokens, and by the request table (see the budget section of the report for the \
rule of the release). Where --max-running-requests asked for more, SGLang lowers it, from 0.5.15 with a warning.\n\n\
Remedies: more tokens (a higher --mem-fraction-static, --kv-cache-dtype fp8_e5m2 for twice as many, more ranks), or a --context-length that the \
pool can hold, so that clients see the limit.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let worlds = context.worlds();
    worlds
        .iter()
        .filter_map(|world| context_too_long(context, world))
        .chain(worlds.iter().filter_map(|world| fewer_requests(context, world)))
        .collect()
}

fn context_too_long(context: &Context<'_>, world: &World) -> Option<Finding> {
    let (requests, tokens) = (world.requests.as_ref()?, world.tokens.as_ref()?);
    let printed = tokens.printed.filter(|printed| requests.context_exceeds_pool(*printed))?;
    let rank = world.available.as_ref().map(|available| available.rank).or(world.ranks.first().copied())?;
    let length = i128::from(requests.context_length);
    let mut finding = Finding::new(
        &RULE,
        format!(
            "the pool holds {} tokens, fewer than one request of {}",
            group_digits(printed),
            group_digits(length)
        ),
    )
    .rank(context.tag(rank))
    .stage(Stage::KvCache)
    .explain("Requests longer than the pool cannot be served, whatever context_len promises.")
    .sum(format!(
        "{} − {} = {} tokens missing",
        group_digits(length),
        group_digits(printed),
        group_digits(length - printed)
    ))
    .at(tokens.place.clone());
    let enough =
        context.facts_of(rank).and_then(|facts| solve(facts, &Change::default(), Goal::Tokens(length)).ok());
    if let Some((change, then)) = enough
        && let Some(left) = then.remaining.filter(|left| left.low() > 0)
    {
        finding = finding.advise(format!(
            "{} gives {} tokens or more and leaves about {} MiB",
            change.flags(false).join(" "),
            group_digits(then.tokens.0),
            mib_whole(left)
        ));
    }
    Some(finding.advise(format!("or --context-length {printed}, so that clients see the limit")))
}

fn fewer_requests(context: &Context<'_>, world: &World) -> Option<Finding> {
    let requests = world.requests.as_ref()?;
    let (asked, printed) = (i128::from(requests.asked?), requests.printed?);
    let dp = context.launch.args().and_then(|arguments| arguments.integer("dp_size")).unwrap_or(1).max(1);
    let share = asked / dp;
    if printed >= share {
        return None;
    }
    let rank = world.ranks.first().copied()?;
    Some(
        Finding::new(
            &RULE,
            format!("{} requests may run, {} were asked for", group_digits(printed), group_digits(share)),
        )
        .rank(context.tag(rank))
        .stage(Stage::KvCache)
        .explain(format!(
            "The pool of {} bounds the number of running requests.",
            rank_words(context.tag(rank))
        ))
        .sum(format!(
            "--max-running-requests {asked} over {dp} data-parallel ranks = {share}, granted {printed}"
        ))
        .at(requests.place.clone())
        .advise("more tokens allow more requests: a higher --mem-fraction-static, or a smaller KV type"),
    )
}
