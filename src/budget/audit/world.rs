//! The ranks that share one budget, and the terms of that budget.

use super::baseline::Baseline;
use super::cell::{self, Cell};
use super::expected::Expected;
use super::fraction::FractionFact;
use super::limit::RankLimit;
use super::post_capture::PostCaptureAudit;
use super::requests::Requests;
use super::reservations::{Reservation, reservations};
use super::slack::SlackUse;
use super::tokens::Tokens;
use super::{AuditInputs, ledger_of};
use crate::budget::capacity::Budget;
use crate::budget::checks::minimal_fraction_bounds;
use crate::launch::Launch;
use crate::ledger::{Ledger, Posting, PostingState};
use crate::place::Place;
use crate::quantity::{Decimal, Quantity};
use crate::stage::{Stage, Worker};
use crate::version::Version;
use std::collections::BTreeMap;

/// Free memory when the pool is sized: the least over the ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Available {
    /// How much.
    pub amount: Quantity,
    /// The rank that has the least, as an index into the launch's ranks.
    pub rank: usize,
    /// The line that printed it.
    pub place: Option<Place>,
}

/// The budget of the ranks that share one.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// Indices into the launch's ranks.
    pub ranks: Vec<usize>,
    /// How many ranks the arguments call for. Where fewer printed figures, another may be the poorest.
    pub expected_ranks: usize,
    /// Pre.
    pub baseline: Option<Baseline>,
    /// Free memory when the pool was sized.
    pub available: Option<Available>,
    /// Weights of the rank that had the least left then.
    pub weights: Option<Quantity>,
    /// Weights of the draft model, where the release charges them to the budget (from 0.5.15).
    pub draft_weights: Option<Quantity>,
    /// What is taken off first: state of linear-attention layers, multimodal buffers.
    pub reservations: Vec<Reservation>,
    /// pre × f: for weights and KV.
    pub static_budget: Option<Quantity>,
    /// pre × (1 − f): for graphs, activations and everything late.
    pub slack: Option<Quantity>,
    /// What is left for KV. Negative where nothing is.
    pub rest: Option<Quantity>,
    /// Bytes of KV per token on the rank where they are most.
    pub cell: Option<Cell>,
    /// Bytes of KV per token in a draft's pool that the budget does not know of (up to 0.5.12): it comes out of the slack.
    pub uncharged_cell: Option<Cell>,
    /// KV memory as printed, on that rank; the draft's where it is charged.
    pub kv: Option<Quantity>,
    /// The tokens.
    pub tokens: Option<Tokens>,
    /// The limits on running requests.
    pub requests: Option<Requests>,
    /// The least fraction that leaves anything for KV, in thousandths rounded up as SGLang does, as an interval.
    pub minimal_fraction: Option<(Decimal, Decimal)>,
    /// What the slack was used for, on the rank that has the least left.
    pub slack_use: Option<SlackUse>,
    /// The rank that holds the others back.
    pub limit: Option<RankLimit>,
    /// What the model's config lets expect.
    pub expected: Option<Expected>,
    /// The pool's size after capture, where the release sizes it then: `tokens` is then what addresses are reserved for.
    pub post_capture: Option<PostCaptureAudit>,
}

/// The worlds of a launch: data-parallel replicas apart, unless they share attention.
pub(super) fn worlds(
    inputs: &AuditInputs<'_>,
    versions: &[Version],
    fraction: Option<&FractionFact>,
) -> Vec<World> {
    let shared =
        inputs.launch.args().and_then(|arguments| arguments.flag("enable_dp_attention")) == Some(true);
    let mut groups: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for (index, rank) in inputs.launch.ranks.iter().enumerate() {
        let replica = rank.tag.coordinates.dp.filter(|_| !shared);
        groups.entry(replica).or_default().push(index);
    }
    let worlds = groups.into_values().map(|ranks| world(inputs, versions, fraction, ranks));
    worlds.filter(|world| world.baseline.is_some()).collect()
}

fn world(
    inputs: &AuditInputs<'_>,
    versions: &[Version],
    fraction: Option<&FractionFact>,
    ranks: Vec<usize>,
) -> World {
    let baseline = Baseline::of(inputs, &ranks);
    let available = available(inputs, &ranks);
    let widest = widest(inputs, versions, &ranks);
    let mut world = World {
        expected_ranks: expected_ranks(inputs.launch).max(ranks.len()),
        weights: weights(inputs, available.as_ref(), Worker::Target),
        draft_weights: weights(inputs, available.as_ref(), Worker::Draft)
            .filter(|_| draft_is_charged(versions)),
        reservations: reservations(inputs, &ranks),
        cell: widest.map(|(_, cell)| cell),
        uncharged_cell: widest
            .and_then(|(rank, _)| uncharged_cell(inputs, ledger_of(inputs, rank)?, versions)),
        kv: widest.and_then(|(rank, _)| charged_kv(ledger_of(inputs, rank)?, versions)),
        baseline,
        available,
        ranks,
        static_budget: None,
        slack: None,
        rest: None,
        tokens: None,
        requests: None,
        minimal_fraction: None,
        slack_use: None,
        limit: None,
        expected: None,
        post_capture: None,
    };
    world.post_capture = PostCaptureAudit::of(inputs, versions, fraction, &world);
    if world.post_capture.is_some() {
        // The pool's lines print addresses: no memory to account for.
        world.kv = None;
    }
    world.tokens = Tokens::of(inputs, versions, fraction, &world);
    let implied = world.tokens.as_ref().and_then(|tokens| tokens.implied_baseline);
    if let Some(baseline) = &mut world.baseline {
        baseline.implied = implied;
    }
    if let Some(budget) = fraction.and_then(|fraction| world.budget(fraction)) {
        world.static_budget = budget.static_budget();
        world.slack = budget.slack();
        world.rest = budget.rest();
    }
    world.minimal_fraction = world
        .available
        .as_ref()
        .zip(world.baseline.as_ref())
        .and_then(|(available, baseline)| minimal_fraction_bounds(available.amount, baseline.best()));
    world.requests = Requests::of(inputs, versions, &world);
    world.slack_use = SlackUse::of(inputs, versions, &world).filter(|_| world.post_capture.is_none());
    world.limit = RankLimit::of(inputs, fraction, &world);
    world.expected = Expected::of(inputs, versions, &world);
    world
}

impl World {
    /// The budget's inputs, with pre as narrow as it is known.
    pub fn budget(&self, fraction: &FractionFact) -> Option<Budget> {
        Some(Budget {
            free: self.available.as_ref()?.amount,
            baseline: self.baseline.as_ref()?.best(),
            fraction: fraction.value,
            extras: self.reserved(),
            several_ranks: self.expected_ranks > 1,
        })
    }

    /// All reservations together.
    pub fn reserved(&self) -> Quantity {
        self.reservations.iter().map(|reservation| reservation.amount).sum()
    }
}

/// Tensor- times pipeline-parallel size.
fn expected_ranks(launch: &Launch) -> usize {
    let size = |key: &str| {
        let size = launch.args().and_then(|arguments| arguments.integer(key)).unwrap_or(1);
        usize::try_from(size).unwrap_or(1).clamp(1, 1 << 16)
    };
    size("tp_size").saturating_mul(size("pp_size"))
}

/// From 0.5.15 the draft model is loaded before the target's pool is sized, and its layers are in the cell.
pub(super) fn draft_is_charged(versions: &[Version]) -> bool {
    versions.iter().all(|version| *version >= Version::new(5, 15))
}

/// The target's pool: the first stage that sizes one.
pub(super) fn pool_of(ledger: &Ledger) -> Option<&Posting> {
    ledger.stage(Stage::KvCache, Worker::Target).or_else(|| ledger.stage(Stage::MemoryPool, Worker::Target))
}

/// Free memory when a rank's pool was sized: the level before it; where it never was, the level after the weights.
pub(super) fn free_at_pool(ledger: &Ledger) -> Option<(Quantity, Option<Place>)> {
    let level_place = |posting: &Posting| posting.places.last().cloned();
    let last_weights = ledger
        .stages(Stage::Weights)
        .filter(|posting| posting.state != PostingState::Begun)
        .filter_map(|posting| Some((posting.after?, level_place(posting))))
        .last();
    match pool_of(ledger) {
        Some(pool) => {
            let before = pool.before?;
            let place = ledger.postings.iter().rev().find(|posting| posting.after == Some(before));
            Some((before, place.and_then(level_place)))
        }
        None => last_weights,
    }
}

fn available(inputs: &AuditInputs<'_>, ranks: &[usize]) -> Option<Available> {
    let known = |rank: &usize| {
        let (amount, place) = free_at_pool(ledger_of(inputs, *rank)?)?;
        Some(Available { amount, rank: *rank, place })
    };
    let all: Vec<Available> = ranks.iter().filter_map(known).collect();
    let least = all.iter().map(|available| available.amount).reduce(Quantity::min)?;
    let poorest = all.into_iter().min_by_key(|available| available.amount.midpoint())?;
    Some(Available { amount: least, ..poorest })
}

fn weights(inputs: &AuditInputs<'_>, available: Option<&Available>, worker: Worker) -> Option<Quantity> {
    ledger_of(inputs, available?.rank)?.stage(Stage::Weights, worker)?.used
}

/// The rank whose tokens cost most, and what they cost: it decides where pipeline stages differ.
fn widest(inputs: &AuditInputs<'_>, versions: &[Version], ranks: &[usize]) -> Option<(usize, Cell)> {
    let cell = |rank: &usize| Some((*rank, charged_cell(inputs, ledger_of(inputs, *rank)?, versions)?));
    ranks.iter().filter_map(cell).max_by_key(|(_, cell)| cell.best())
}

fn charged_cell(inputs: &AuditInputs<'_>, ledger: &Ledger, versions: &[Version]) -> Option<Cell> {
    let page = page_size(inputs.launch);
    let pool = ledger.stage(Stage::KvCache, Worker::Target).filter(|pool| cell::kv_bytes(pool).is_some());
    let target =
        cell::of_pool(pool.or_else(|| ledger.stage(Stage::PostCaptureResize, Worker::Target))?, page)?;
    let draft = draft_pool(ledger, versions).and_then(|pool| cell::of_pool(pool, page));
    Some(draft.map_or(target, |draft| target.plus(draft)))
}

fn uncharged_cell(inputs: &AuditInputs<'_>, ledger: &Ledger, versions: &[Version]) -> Option<Cell> {
    let pool = ledger.stage(Stage::KvCache, Worker::Draft).filter(|_| !draft_is_charged(versions))?;
    cell::of_pool(pool, page_size(inputs.launch))
}

fn charged_kv(ledger: &Ledger, versions: &[Version]) -> Option<Quantity> {
    let target = cell::kv_bytes(ledger.stage(Stage::KvCache, Worker::Target)?)?;
    let draft = draft_pool(ledger, versions).and_then(cell::kv_bytes);
    Some(target + draft.unwrap_or(Quantity::ZERO))
}

/// The draft's pool, where it is charged to the budget.
pub(super) fn draft_pool<'a>(ledger: &'a Ledger, versions: &[Version]) -> Option<&'a Posting> {
    ledger.stage(Stage::KvCache, Worker::Draft).filter(|_| draft_is_charged(versions))
}

/// `page_size`, 1 where the arguments do not hold it.
pub(super) fn page_size(launch: &Launch) -> i128 {
    launch.args().and_then(|arguments| arguments.integer("page_size")).unwrap_or(1).clamp(1, 1 << 20)
}
