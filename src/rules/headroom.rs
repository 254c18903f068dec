//! `headroom-low` and `headroom-generous`: what is left after start-up, against SGLang's own guide.

use super::support::{fraction, fraction_for_room, pre, rank_words};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::launch::Outcome;
use crate::ledger::Ledger;
use crate::quantity::{GIB, Quantity, group_digits, mib_text, mib_whole};
use crate::stage::{Stage, Worker};
use crate::thresholds::Limit;

/// The card that SGLang's guide of 5 to 8 GB speaks of.
const GUIDE_CARD: i128 = 80 * GIB;

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
Remedies, in order: lower --mem-fraction-static by (wanted − left) / pre, where pre is the free memory before the weights; lower \
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
The gain is computed from this launch's own cell size (bytes of KV per token): tokens = (left − wanted) / cell, by raising \
--mem-fraction-static by (left − wanted) / pre, rounded down to hundredths.\n\n\
Where --max-total-tokens caps the pool, the fraction is not what holds it back: raise or drop the cap instead.\n\n\
What is left after start-up is not what start-up needed: captures peak higher than they end. Raise in steps, and watch the peak under your \
own longest prefill.",
    check: check_generous,
};

/// The limit for a card: in proportion to the guide's, downwards for `low`, upwards for `generous`.
fn limit(context: &Context<'_>, rank: usize, which: Limit) -> i128 {
    let guide = context.thresholds.get(which);
    let Some(card) = context.card(rank).map(Quantity::midpoint) else { return guide };
    let scaled = guide.saturating_mul(card) / GUIDE_CARD;
    if which == Limit::HeadroomLow { guide.min(scaled) } else { scaled }
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
        let mut finding = Finding::new(&LOW, format!("only {} MiB stay free for {}", mib_text(room), rank_words(&rank.tag.text)))
            .rank(&rank.tag.text)
            .stage(Stage::Ready)
            .explain("Prefill activations and the first requests' workspaces must fit in this. Out of memory under load is the likely end.")
            .sum(format!("wanted at least {} MiB, {} short", mib_whole(wanted), mib_text(wanted - room)))
            .amount(room)
            .at(place);
        if let Some(lower) =
            fraction_for_room(context.launch, context.ledgers, wanted.midpoint() - room.midpoint())
        {
            finding = finding.advise(format!(
                "--mem-fraction-static {lower:.2} leaves about {} MiB",
                mib_whole(room_at(context, room, lower))
            ));
        } else {
            finding = finding.advise("lower --mem-fraction-static, or --chunked-prefill-size");
        }
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
        .filter_map(|(index, rank, ledger)| Some((index, rank, ledger, left(ledger)?)))
        .min_by_key(|(.., (room, _))| room.midpoint());
    let Some((index, rank, ledger, (room, place))) = poorest else {
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
        None => match fraction_for_room(context.launch, context.ledgers, wanted - room.midpoint()) {
            Some(higher) => finding.advise(gain(context, ledger, room, higher)),
            None => finding.advise(
                "raise --mem-fraction-static in steps, and watch the peak under your longest prefill",
            ),
        },
    };
    vec![finding]
}

/// What a higher fraction would give.
fn gain(context: &Context<'_>, ledger: &Ledger, room: Quantity, higher: f64) -> String {
    let after = room_at(context, room, higher);
    let tokens = cell_bytes(ledger).map(|cell| (room.midpoint() - after.midpoint()) / cell);
    let gained = tokens
        .map(|tokens| format!(" gives about {} tokens more and", group_digits(tokens / 1000 * 1000)))
        .unwrap_or_default();
    format!("--mem-fraction-static {higher:.2}{gained} leaves about {} MiB", mib_whole(after))
}

/// What is left at another fraction: the slack is pre × (1 − f).
fn room_at(context: &Context<'_>, room: Quantity, fraction_then: f64) -> Quantity {
    let (Some(now), Some(pre)) = (fraction(context.launch), pre(context.ledgers)) else { return room };
    let moved = ((fraction_then - now) * 10_000.0).round() as i128;
    room - pre.scale(moved, 10_000).unwrap_or(Quantity::ZERO)
}

/// Bytes of KV per token, from the pool's own parts.
fn cell_bytes(ledger: &Ledger) -> Option<i128> {
    let pool = ledger.stage(Stage::KvCache, Worker::Target)?;
    let tokens = pool.parts.iter().find_map(|part| part.tokens).filter(|tokens| *tokens > 0)?;
    let bytes: Quantity = pool.parts.iter().map(|part| part.size).sum();
    Some((bytes.midpoint() / i128::from(tokens)).max(1))
}
