//! What a launch measured, as far as a what-if needs it: one rank's terms, the one with the least left.

use super::PlanError;
use crate::budget::audit::{Audit, AuditInputs, Cell, FractionFact, TokenVerdict, World, settings};
use crate::budget::cell::{KvType, counted};
use crate::budget::defaults::Settings;
use crate::budget::model::{Model, Parallel};
use crate::ledger::PostingKind;
use crate::quantity::Quantity;
use crate::stage::{Stage, Worker};
use crate::version::Version;

/// Graphs of one phase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GraphFacts {
    /// What their capture used.
    pub used: Option<Quantity>,
    /// Size and free memory before it was captured, largest first, as the capture's bars print them.
    pub bars: Vec<(u32, Quantity)>,
    /// Free memory after the last.
    pub after: Option<Quantity>,
}

/// The measured terms of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The newest release that it can be.
    pub version: Version,
    /// The fraction it ran with.
    pub fraction: FractionFact,
    /// Whether that was the default of its arguments; `None` where the card is unknown.
    pub fraction_is_default: Option<bool>,
    /// Pre.
    pub baseline: Quantity,
    /// Weights, draft's included where they are charged.
    pub weights: Option<Quantity>,
    /// Free memory when the pool was sized.
    pub available: Quantity,
    /// Taken off before KV.
    pub reserved: Quantity,
    /// What is left for KV, as narrow as the printed tokens make it.
    pub rest: Quantity,
    /// Bytes per token in the budget.
    pub cell: Cell,
    /// Bytes per token in a draft's pool outside of it.
    pub uncharged_cell: Option<Cell>,
    /// The printed tokens.
    pub tokens: Option<i128>,
    /// `--max-total-tokens`.
    pub user_cap: Option<i128>,
    /// `page_size`.
    pub page_size: i128,
    /// The pool stage beyond KV.
    pub overhead: Option<Quantity>,
    /// Decode graphs, and those of a draft or a verify step.
    pub decode: GraphFacts,
    /// Prefill graphs.
    pub prefill: GraphFacts,
    /// Everything else after the pool: gaps, draft model outside the budget, what was kept at ready.
    pub other: Quantity,
    /// What remains, where start-up came to an end.
    pub remaining: Option<Quantity>,
    /// Whether ranks share the budget.
    pub several_ranks: bool,
    /// The settings that the default rules ask.
    pub settings: Settings,
    /// The context length, where it was printed.
    pub context_length: Option<u32>,
    /// `max_running_requests` as printed.
    pub running: Option<i128>,
    /// Whether attention is MLA, whose KV is not split over ranks.
    pub latent: bool,
    /// The type that KV is stored as now; `None` where `auto` hides it.
    pub kv_type: KvType,
    /// The model, where its config was given, and how it is divided.
    pub model: Option<(Model, Parallel)>,
}

impl Facts {
    /// The facts of one world of an audited launch.
    pub fn of(inputs: &AuditInputs<'_>, audit: &Audit, world: &World) -> Result<Facts, PlanError> {
        let fraction = audit.fraction.clone().ok_or(PlanError::NoFraction)?;
        let version = audit.versions.last().copied().ok_or(PlanError::NoFraction)?;
        let settings = settings(inputs, version).ok_or(PlanError::NoFraction)?;
        if world.post_capture.is_some() {
            return Err(PlanError::PostCapture);
        }
        let (Some(baseline), Some(available)) = (&world.baseline, &world.available) else {
            return Err(PlanError::NoFigures);
        };
        let budget = world.budget(&fraction).ok_or(PlanError::NoFigures)?;
        let model = inputs
            .model
            .zip(inputs.launch.ranks.get(available.rank))
            .map(|(facts, rank)| (facts.model.clone(), crate::budget::audit::parallel(inputs.launch, rank)));
        let stored_as =
            inputs.launch.args().and_then(|arguments| arguments.text("kv_cache_dtype")).unwrap_or("auto");
        let unquantised = model.as_ref().map_or(KvType::Half, |(model, _)| model.dtype);
        let kv_type = KvType::named(stored_as, unquantised).unwrap_or(unquantised);
        let cell = world
            .cell
            .or_else(|| expected_cell(version, model.as_ref(), kv_type))
            .ok_or(PlanError::NoCell)?;
        let tokens = world.tokens.as_ref();
        let use_of = world.slack_use.as_ref();
        let ledger = inputs.ledgers.get(use_of.map_or(available.rank, |used| used.rank));
        let graphs = |stage: Stage| ledger.map(|ledger| graph_facts(ledger, stage)).unwrap_or_default();
        let (decode, prefill) = (graphs(Stage::GraphDecode), graphs(Stage::GraphPrefill));
        let in_graphs: Quantity = [&decode, &prefill].into_iter().filter_map(|graphs| graphs.used).sum();
        let outside = use_of.map(|used| used.used() - used.overhead.unwrap_or(Quantity::ZERO));
        let rest = budget.rest().ok_or(PlanError::NoFigures)?;
        let charged = world.draft_weights.unwrap_or(Quantity::ZERO);
        Ok(Facts {
            version,
            fraction_is_default: audit.is_default(),
            fraction,
            baseline: baseline.best(),
            weights: world.weights.map(|weights| weights + charged),
            available: available.amount,
            reserved: world.reserved(),
            rest: narrowed(rest, world, cell),
            cell,
            uncharged_cell: world.uncharged_cell,
            tokens: tokens.and_then(|tokens| tokens.printed),
            user_cap: tokens.and_then(|tokens| tokens.user_cap),
            page_size: tokens.map_or(1, |tokens| tokens.page_size),
            overhead: use_of.and_then(|used| used.overhead),
            other: exactly_apart(outside.unwrap_or(Quantity::ZERO), in_graphs),
            decode,
            prefill,
            remaining: use_of.and_then(|used| used.remaining),
            several_ranks: world.expected_ranks > 1,
            settings,
            context_length: world.requests.as_ref().map(|requests| requests.context_length),
            running: world.requests.as_ref().and_then(|requests| requests.printed),
            latent: ledger.is_some_and(|ledger| {
                let pool = ledger.stage(Stage::KvCache, Worker::Target);
                pool.is_some_and(|pool| pool.parts.iter().any(|part| part.label == "KV"))
            }),
            kv_type,
            model,
        })
    }
}

/// The sum of what is not graphs, where the graphs are terms of the sum: their own uncertainty leaves with them.
fn exactly_apart(sum: Quantity, graphs: Quantity) -> Quantity {
    Quantity::between(sum.low() - graphs.low(), (sum.high() - graphs.high()).max(sum.low() - graphs.low()))
}

/// The rest by the printed tokens, where nothing but the division and whole pages shaped them.
fn narrowed(rest: Quantity, world: &World, cell: Cell) -> Quantity {
    let Some(tokens) = world.tokens.as_ref() else { return rest };
    if tokens.verdict != Some(TokenVerdict::Agrees) || tokens.is_capped() || !tokens.steps_are_pages_only() {
        return rest;
    }
    let pool = tokens.printed.and_then(|printed| {
        let (low, high) = (cell.bytes(printed)?, cell.bytes(printed + tokens.page_size)?);
        rest.intersect(Quantity::between(low.low(), high.high() - 1))
    });
    pool.unwrap_or(rest)
}

fn expected_cell(version: Version, model: Option<&(Model, Parallel)>, kv_type: KvType) -> Option<Cell> {
    let (model, parallel) = model?;
    let bytes = counted(version, &model.geometry(*parallel, kv_type, 0))?;
    Some(Cell { low: bytes, high: bytes, likely: Some(bytes) })
}

fn graph_facts(ledger: &crate::ledger::Ledger, stage: Stage) -> GraphFacts {
    let decode = stage == Stage::GraphDecode;
    let of_phase = |posting: &&crate::ledger::Posting| {
        posting.kind == PostingKind::Stage
            && (posting.stage == stage
                || decode && posting.stage.is_capture() && posting.stage != Stage::GraphPrefill)
    };
    let used = ledger
        .postings
        .iter()
        .filter(of_phase)
        .filter_map(|posting| posting.used)
        .reduce(|one, other| one + other);
    let target = ledger
        .stage(stage, Worker::Target)
        .or_else(|| ledger.stage(Stage::GraphVerify, Worker::Target).filter(|_| decode));
    let size = |label: &str| label.rsplit('=').next().and_then(|number| number.parse().ok());
    GraphFacts {
        used,
        bars: target
            .map(|posting| posting.progress.as_slice())
            .unwrap_or_default()
            .iter()
            .filter_map(|point| Some((size(&point.label)?, point.available)))
            .collect(),
        after: target.and_then(|posting| posting.after),
    }
}
