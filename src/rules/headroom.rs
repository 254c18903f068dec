//! `headroom-low` and `headroom-generous`: what is left after start-up, against SGLang's own guide.

use super::support::rank_words;
use super::{Context, Rule};
use crate::budget::plan::{Change, Goal, Projection, guide_limit, project, solve};
use crate::finding::{Finding, Severity};
use crate::launch::Outcome;
use crate::ledger::Ledger;
use crate::quantity::{Decimal, Quantity, group_digits, mib_text, mib_whole};
use crate::stage::Stage;
use crate::thresholds::Limit;

pub(super) static LOW: Rule = Rule {
    code: "VL013",
    name: "headroom-low",
    severity: Severity::Warning,
    summary: "less free memory after start-up than SGLang's guide wants for activation peaks",
    explanation: "`available_gpu_mem` in the summary line is what is left for everything that start-up did not need: activations of large prefills, \
eager workspaces, communication channels of the first requests. The KV pool is not part of it: it was allocated at start-up.\n\n\
SGLang's tuning guide wants 5 to 8 GB here. On cards smaller than 80 GiB the limit shrinks in proportion. PyTorch's cache is not emptied \
before this figure, so a little more may be usable.\n\n\
Too little room ends in an out-of-memory error under load, not at start.\n\n\
Remedies, in order: lower --mem-fraction-static by (wanted − left) / pre, rounded down to thousandths, where pre is the free memory before the weights; lower \
--chunked-prefill-size; lower --cuda-graph-max-bs. --max-total-tokens leaves room too, but does not scale with the card.",
    check: check_low,
};

pub(super) static GENEROUS: Rule = Rule {
    code: "VL014",
    name: "headroom-generous",
    severity: Severity::Info,
    summary: "more free memory after start-up than needed: KV tokens given away",
    explanation: "SGLang's tuning guide aims at 5 to 8 GB of `available_gpu_mem` after start-up; on cards larger than 80 GiB the upper end grows in \
proportion, since larger chunks and graphs are the default there. What is free beyond it could hold KV cache.\n\n\
The advice is projected from this launch's own budget, as `vramledger plan` does: the least fraction, in thousandths, that leaves no more than \
wanted, and the tokens that (pre × change) / cell then gives.\n\n\
Where --max-total-tokens caps the pool, the fraction is not what holds it back: raise or drop the cap instead.\n\n\
What is left after start-up is not what start-up needed: captures peak higher than they end. Raise in steps, and watch the peak under your \
own longest prefill.",
    check: check_generous,
};

/// The limit for a card: in proportion to the guide's, downwards for `low`, both ways for `generous`.
fn limit(context: &Context<'_>, rank: usize, which: Limit) -> i128 {
    let card = context.card(rank).map(Quantity::midpoint);
    guide_limit(context.thresholds.get(which), card, which == Limit::HeadroomLow)
}

fn is_up(context: &Context<'_>) -> bool {
    matches!(context.launch.outcome, Outcome::Ready | Outcome::Running)
}

/// What is left on a rank's device: by its summary line, else by its last stage.
fn left(ledger: &Ledger) -> Option<(Quantity, Option<crate::place::Place>)> {
    match ledger.headroom {
        Some(headroom) => Some((headroom, ledger.headroom_place.clone())),
        None => Some((ledger.closing?, ledger.closing_place.clone())),
    }
}

fn check_low(context: &Context<'_>) -> Vec<Finding> {
    if !is_up(context) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, rank, ledger) in context.books() {
        let (Some((room, place)), wanted) = (left(ledger), limit(context, index, Limit::HeadroomLow)) else {
            continue;
        };
        // A pool sized after capture leaves what SGLang reserved for activations, by its own arithmetic.
        let sized_after_capture = ledger.stages(Stage::PostCaptureResize).next().is_some();
        if !room.surely_below(wanted) || room.contains(0) || sized_after_capture {
            continue;
        }
        let wanted = Quantity::exact(wanted);
        let lower = context
            .facts_of(index)
            .and_then(|facts| solve(facts, &Change::default(), Goal::Headroom(wanted.midpoint())).ok());
        let mut finding = Finding::new(&LOW, format!("only {} MiB stay free for {}", mib_text(room), rank_words(&rank.tag.text)))
            .rank(&rank.tag.text)
            .stage(Stage::Ready)
            .explain("Prefill activations and the first requests' workspaces must fit in this. Out of memory under load is the likely end.")
            .sum(format!("wanted at least {} MiB, {} short", mib_whole(wanted), mib_text(wanted - room)))
            .amount(room)
            .at(place);
        finding = finding.advise(match lower {
            Some((change, then)) => format!(
                "{} leaves about {} MiB, and {} tokens or more",
                change.flags(false).join(" "),
                then.remaining.map(mib_whole).unwrap_or_default(),
                group_digits(then.tokens.0)
            ),
            None => "lower --mem-fraction-static, or --chunked-prefill-size".to_string(),
        });
        findings.push(finding);
    }
    findings
}

fn check_generous(context: &Context<'_>) -> Vec<Finding> {
    if !is_up(context) {
        return Vec::new();
    }
    // The poorest rank decides how far the pool can grow; the richer ones are not worth a finding of their own.
    // Where captures came behind the last figure, what is left is not known.
    let poorest = context
        .books()
        .filter(|(.., ledger)| !ledger.captured_unlogged())
        .filter_map(|(index, rank, ledger)| Some((index, rank, left(ledger)?)))
        .min_by_key(|(.., (room, _))| room.midpoint());
    let Some((index, rank, (room, place))) = poorest else {
        return Vec::new();
    };
    let wanted = limit(context, index, Limit::HeadroomGenerous);
    if !room.surely_above(wanted) {
        return Vec::new();
    }
    let mut finding = Finding::new(&GENEROUS, format!("{} MiB stay free after start-up", mib_text(room)))
        .rank(&rank.tag.text)
        .stage(Stage::Ready)
        .explain("More than SGLang's guide aims at: memory that could hold KV cache.")
        .sum(format!(
            "left {} − aimed at {} = {} MiB",
            mib_text(room),
            mib_whole(Quantity::exact(wanted)),
            mib_text(room - Quantity::exact(wanted))
        ))
        .amount(room)
        .at(place);
    finding = match context.launch.args().and_then(|arguments| arguments.integer("max_total_tokens")) {
        Some(cap) => finding.advise(format!(
            "--max-total-tokens {cap} caps the pool: raise or drop it; the fraction is not what holds it back"
        )),
        None => match higher(context, index, wanted) {
            Some((fraction, then)) => finding.advise(gain(context, index, fraction, &then)),
            None => finding.advise(
                "raise --mem-fraction-static in steps, and watch the peak under your longest prefill",
            ),
        },
    };
    vec![finding]
}

/// The least fraction, in thousandths, under which no more than wanted is left: raised no further than the guide asks.
fn higher(context: &Context<'_>, rank: usize, wanted: i128) -> Option<(Decimal, Projection)> {
    let facts = context.facts_of(rank)?;
    let projected = |thousandths: i128| {
        let fraction = Decimal::new(thousandths, 3);
        Some((fraction, project(facts, &Change::fraction(fraction)).ok()?))
    };
    let fits = |projection: &Projection| {
        projection.remaining.is_some_and(|left| left.midpoint() <= wanted && left.low() > 0)
    };
    (1..1000).filter_map(projected).find(|(_, projection)| fits(projection))
}

/// What a higher fraction would give.
fn gain(context: &Context<'_>, rank: usize, fraction: Decimal, then: &Projection) -> String {
    let now = context.facts_of(rank).and_then(|facts| facts.tokens);
    let gained = now.map(|now| then.tokens.0 - now).filter(|more| *more > 0);
    let gained = gained.map(|more| format!(" gives at least {} tokens more and", group_digits(more)));
    format!(
        "--mem-fraction-static {fraction}{} leaves about {} MiB",
        gained.unwrap_or_default(),
        then.remaining.map(mib_whole).unwrap_or_default()
    )
}
