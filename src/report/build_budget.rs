//! From an audit to its JSON.

use super::budget::*;
use super::build::{amount, position};
use crate::budget::audit::{
    Audit, Baseline, BaselineBasis, Cell, DefaultAudit, Expected, RankLimit, Requests, SlackUse, Tokens,
    World,
};
use crate::launch::Launch;

/// The budget of a launch.
pub(super) fn budget(launch: &Launch, audit: &Audit) -> BudgetReport {
    let fraction = audit.fraction.as_ref();
    BudgetReport {
        fraction: fraction.map(|fraction| fraction.value.to_f64()),
        fraction_place: fraction.map(|fraction| position(&fraction.place)),
        default: audit.default.as_ref().map(default),
        worlds: audit.worlds.iter().map(|one| world(launch, one)).collect(),
    }
}

fn default(audit: &DefaultAudit) -> DefaultReport {
    let terms = audit.derived.terms.iter();
    DefaultReport {
        version: audit.version.to_string(),
        rule: audit.derived.rule.to_string(),
        card_mib: audit.card_mib,
        fraction: audit.derived.printed,
        equals_printed: audit.equals_printed,
        reserved: terms
            .map(|term| TermReport { label: term.label.to_string(), amount: amount(term.amount) })
            .collect(),
    }
}

fn world(launch: &Launch, world: &World) -> WorldReport {
    let available = world.available.as_ref();
    WorldReport {
        ranks: world.ranks.iter().map(|rank| tag(launch, *rank)).collect(),
        expected_ranks: world.expected_ranks,
        pre: world.baseline.as_ref().map(|baseline| pre(launch, baseline)),
        static_budget: world.static_budget.map(amount),
        slack: world.slack.map(amount),
        weights: world.weights.map(amount),
        draft_weights: world.draft_weights.map(amount),
        available: available.map(|available| amount(available.amount)),
        available_place: available.and_then(|available| available.place.as_ref()).map(position),
        reservations: world
            .reservations
            .iter()
            .map(|one| TermReport { label: one.label.clone(), amount: amount(one.amount) })
            .collect(),
        rest: world.rest.map(amount),
        kv: world.kv.map(amount),
        cell: world.cell.map(cell),
        tokens: world.tokens.as_ref().map(tokens),
        requests: world.requests.as_ref().map(requests),
        minimal_fraction: world
            .minimal_fraction
            .map(|(low, high)| FractionRange { low: low.to_f64(), high: high.to_f64() }),
        slack_use: world.slack_use.as_ref().map(|used| slack(launch, used)),
        limited_by: world.limit.as_ref().map(|limit| limited(launch, limit)),
        expected: world.expected.as_ref().map(|expected| expectation(launch, expected)),
        post_capture: world.post_capture.as_ref().map(|audit| PostCaptureReport {
            reserved_tokens: audit.reserved_tokens.map(count),
            tokens: count(audit.tokens),
            predicted: audit.predicted.map(range),
            kv: audit.kv.map(amount),
            free: audit.free.map(amount),
            eager_reserve: audit.eager_reserve,
        }),
    }
}

fn tag(launch: &Launch, rank: usize) -> String {
    launch.ranks.get(rank).map(|rank| rank.tag.text.clone()).unwrap_or_default()
}

/// Token counts are far below the limit; a count beyond it is shown as the limit.
pub(super) fn count(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

pub(super) fn range((low, high): (i128, i128)) -> CountRange {
    CountRange { low: count(low), high: count(high) }
}

fn pre(launch: &Launch, baseline: &Baseline) -> PreReport {
    PreReport {
        amount: amount(baseline.best()),
        estimate: amount(baseline.estimate),
        basis: match baseline.basis {
            BaselineBasis::Printed => "printed",
            BaselineBasis::FirstFigure => "first-figure",
        }
        .to_string(),
        place: baseline.place.as_ref().map(position),
        rank: tag(launch, baseline.poorest),
        implied_by_tokens: baseline.implied.map(amount),
    }
}

pub(super) fn cell(cell: Cell) -> CellReport {
    CellReport { low: count(cell.low), high: count(cell.high), likely: cell.likely.map(count) }
}

fn tokens(tokens: &Tokens) -> TokensReport {
    TokensReport {
        divided: tokens.divided.map(range),
        predicted: tokens.predicted.map(range),
        caps: tokens
            .steps
            .iter()
            .map(|step| CapReport { label: step.label.to_string(), tokens: count(step.tokens) })
            .collect(),
        printed: tokens.printed.map(count),
        place: tokens.place.as_ref().map(position),
        page_size: count(tokens.page_size),
        user_cap: tokens.user_cap.map(count),
        verdict: tokens.verdict.map(|verdict| verdict.name().to_string()),
    }
}

fn requests(requests: &Requests) -> RequestsReport {
    RequestsReport {
        context_length: requests.context_length,
        printed: requests.printed.map(count),
        predicted: requests.predicted.map(range),
        at_full_context: count(requests.at_full_context),
    }
}

fn slack(launch: &Launch, used: &SlackUse) -> SlackReport {
    SlackReport {
        rank: tag(launch, used.rank),
        unspent: used.unspent.map(amount),
        overhead: used.overhead.map(amount),
        items: used
            .items
            .iter()
            .map(|item| TermReport { label: item.label.clone(), amount: amount(item.used) })
            .collect(),
        kept_at_ready: used.kept_at_ready.map(amount),
        remaining: used.remaining.map(amount),
    }
}

fn limited(launch: &Launch, limit: &RankLimit) -> LimitReport {
    LimitReport {
        rank: tag(launch, limit.rank),
        cost: amount(limit.cost),
        tokens: limit.tokens.map(range),
        between_stages: limit.between_stages,
    }
}

fn expectation(launch: &Launch, expected: &Expected) -> ExpectedReport {
    ExpectedReport {
        rank: tag(launch, expected.rank),
        weights: expected.weights.map(amount),
        weights_basis: if expected.from_checkpoint { "checkpoint" } else { "config" }.to_string(),
        not_sized: expected.unsized_parts.iter().map(|part| (*part).to_string()).collect(),
        measured_weights: expected.measured_weights.map(amount),
        cell: expected.cell.map(range),
        measured_cell: expected.measured_cell.map(cell),
    }
}
