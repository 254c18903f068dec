//! The room that a fraction leaves, and what other settings would leave: the arithmetic behind every piece of advice.
//!
//! The budget's own formulas are applied, so that no advice contradicts them: a fraction is only advised where, under it,
//! what was missing is there and something is left for KV. Where no fraction does both, that is said.

use crate::budget::capacity::Budget;
use crate::budget::defaults::Settings;
use crate::launch::Launch;
use crate::ledger::{Ledger, Posting};
use crate::quantity::{Decimal, GIB, MIB, Quantity};
use crate::server_args::ServerArgs;
use crate::stage::{Stage, Worker};
use crate::version::Version;

/// The middle of the 5 to 8 GB that SGLang's tuning guide wants free after start-up, and the card it speaks of.
const GUIDE: i128 = 6 * GIB + GIB / 2;
const GUIDE_CARD: i128 = 80 * GIB;

/// What SGLang's default rule sets aside for each token of a chunk and for each request of the largest decode graph
/// (0.5.3 to 0.5.23, `_handle_gpu_memory_settings`: 1.5 MiB and 2 MiB).
const PER_CHUNK_TOKEN: i128 = 3 * MIB / 2;
const PER_GRAPH_REQUEST: i128 = 2 * MIB;

/// A setting with the value that is advised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `--mem-fraction-static`.
    Fraction(Decimal),
    /// `--max-total-tokens`.
    MaxTotalTokens(i128),
    /// The largest decode batch to capture.
    GraphMaxBatch(i128),
    /// The largest prefill to capture, in tokens.
    PrefillGraphTokens(i128),
    /// `--chunked-prefill-size`.
    ChunkedPrefill(i128),
    /// `--max-running-requests`.
    MaxRunningRequests(i128),
    /// `--tp`: twice the ranks.
    TensorParallel(i128),
}

/// A setting and how much device memory it sets free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    /// The setting.
    pub setting: Setting,
    /// What it gives. `None` where only a run could tell.
    pub gains: Option<Quantity>,
}

/// What a launch that ran out behind its KV pool had, and lacked.
#[derive(Debug, Clone)]
pub struct Room<'a> {
    launch: &'a Launch,
    ledger: Option<&'a Ledger>,
    budget: Option<Budget>,
    /// What more than was free was needed when it died, at least.
    missing: Quantity,
    /// What was free at the last figure before.
    last_free: Option<Quantity>,
}

impl<'a> Room<'a> {
    /// The room of a rank with this ledger under this budget, for `missing` bytes and no less; `last_free` is the last
    /// free figure of start-up.
    pub fn new(
        launch: &'a Launch,
        ledger: Option<&'a Ledger>,
        budget: Option<Budget>,
        missing: Quantity,
        last_free: Option<Quantity>,
    ) -> Room<'a> {
        Room { launch, ledger, budget, missing, last_free }
    }

    /// The budget as the log tells it.
    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// How much more free memory is aimed at: what the tuning guide wants, smaller cards in proportion, and no less than
    /// twice what was missing, since the next allocation comes.
    pub fn wanted(&self) -> Quantity {
        let card = self.budget.map_or(GUIDE_CARD, |budget| budget.baseline.midpoint());
        let guide = GUIDE.min(GUIDE.saturating_mul(card) / GUIDE_CARD);
        let short = self.last_free.map_or(0, |free| guide - free.midpoint());
        Quantity::exact(short.max(2 * self.missing.high()).max(0))
    }

    /// A lower fraction that leaves what is aimed at; where too little were left for KV then, one that leaves what was
    /// missing.
    pub fn lower_fraction(&self) -> Option<Remedy> {
        let fraction = self.budget?.fraction;
        [self.wanted().high(), self.missing.high()]
            .into_iter()
            .filter_map(|more| self.fraction_for(more))
            .find(|value| self.holds(*value))
            .map(|value| Remedy {
                setting: Setting::Fraction(value),
                gains: self.slack_gained(fraction, value),
            })
    }

    /// The largest fraction in hundredths that leaves so many bytes more.
    fn fraction_for(&self, more: i128) -> Option<Decimal> {
        let budget = self.budget?;
        let (numerator, denominator) = budget.fraction.to_fraction()?;
        let baseline = budget.baseline.low();
        if baseline <= 0 || more <= 0 {
            return None;
        }
        // hundredths = ⌊100 × (f − more / baseline)⌋, in whole numbers.
        let least = numerator.checked_mul(100)?.checked_mul(baseline)?;
        let taken = more.checked_mul(100)?.checked_mul(denominator)?;
        let hundredths = (least - taken).div_euclid(denominator.checked_mul(baseline)?);
        (hundredths > 0).then(|| Decimal::new(hundredths, 2))
    }

    /// Whether a fraction leaves what was missing and something for KV.
    pub fn holds(&self, fraction: Decimal) -> bool {
        let Some(budget) = self.budget else { return false };
        let gained = self.slack_gained(budget.fraction, fraction);
        let rest = Budget { fraction, ..budget }.rest();
        gained.is_some_and(|gained| gained.low() >= self.missing.high())
            && rest.is_some_and(|rest| rest.low() > 0)
    }

    /// How much more slack one fraction leaves than another: the baseline's uncertainty is the same in both.
    fn slack_gained(&self, from: Decimal, to: Decimal) -> Option<Quantity> {
        let budget = self.budget?;
        let ((from, under), (to, below)) = (from.to_fraction()?, to.to_fraction()?);
        let moved = from.checked_mul(below)?.checked_sub(to.checked_mul(under)?)?;
        budget.baseline.scale(moved, under.checked_mul(below)?)
    }

    /// A cap on the pool that leaves what is aimed at. It stays where it is when the card changes.
    pub fn max_total_tokens(&self) -> Option<Remedy> {
        let (tokens, bytes) = tokens_and_bytes(pool(self.ledger?)?)?;
        let more = self.wanted().high();
        let cell = Quantity::between(bytes.low() / tokens, bytes.high() / tokens + 1);
        let fewer = more.checked_div(cell.low().max(1))?.checked_add(1)?;
        let left = (tokens - fewer) / 1000 * 1000;
        (left > 0).then(|| Remedy {
            setting: Setting::MaxTotalTokens(left),
            gains: bytes.scale(tokens - left, tokens),
        })
    }

    /// The largest power-of-two part of the largest captured batch that SGLang's own estimate says is small enough.
    pub fn graph_max_batch(&self) -> Option<Remedy> {
        let now = graph_max_batch(self.launch.args()?)?;
        let missing = self.missing.high();
        let smaller = halves(now).find(|size| (now - size) * PER_GRAPH_REQUEST >= missing)?;
        Some(Remedy {
            setting: Setting::GraphMaxBatch(smaller),
            gains: Some(Quantity::exact((now - smaller) * PER_GRAPH_REQUEST)),
        })
    }

    /// Half of the largest prefill that is captured: what a size costs is the model's secret.
    pub fn prefill_graph_tokens(&self) -> Option<Remedy> {
        let settings = settings(self.launch.args()?);
        let now = settings
            .prefill_graph_max_tokens
            .or(settings.chunked_prefill_size)
            .filter(|tokens| *tokens > 1)?;
        Some(Remedy { setting: Setting::PrefillGraphTokens(i128::from(now / 2)), gains: None })
    }

    /// What a fraction leaves for KV.
    pub fn kv_under(&self, fraction: Decimal) -> Option<Quantity> {
        Budget { fraction, ..self.budget? }.rest()
    }

    /// The largest half, quarter, … of the chunk that SGLang's own estimate says is small enough; not below 512.
    pub fn chunked_prefill(&self) -> Option<Remedy> {
        let now = self.launch.args()?.integer("chunked_prefill_size").filter(|size| *size > 0)?;
        let missing = self.missing.high();
        let smaller = halves(now)
            .take_while(|size| *size >= 512)
            .find(|size| (now - size) * PER_CHUNK_TOKEN >= missing)?;
        Some(Remedy {
            setting: Setting::ChunkedPrefill(smaller),
            gains: Some(Quantity::exact((now - smaller) * PER_CHUNK_TOKEN)),
        })
    }

    /// No more requests than graphs were captured for: larger batches run eagerly and allocate what graphs have.
    pub fn max_running_requests(&self) -> Option<Remedy> {
        let arguments = self.launch.args()?;
        let captured = graph_max_batch(arguments)?;
        let allowed = self.max_running_requests_now()?;
        (captured < allowed).then_some(Remedy { setting: Setting::MaxRunningRequests(captured), gains: None })
    }

    fn max_running_requests_now(&self) -> Option<i128> {
        let printed = self
            .launch
            .ranks
            .iter()
            .flat_map(|rank| &rank.events)
            .find_map(|event| event.event.count("max_running_requests"));
        printed.or_else(|| self.launch.args()?.integer("max_running_requests"))
    }

    /// Twice the ranks: half of the weights leave each card.
    pub fn tensor_parallel(&self) -> Option<Remedy> {
        let now = self.launch.args()?.integer("tp_size").filter(|size| *size > 0)?;
        let weights = self.ledger?.stage(Stage::Weights, Worker::Target)?.used?;
        Some(Remedy { setting: Setting::TensorParallel(now.checked_mul(2)?), gains: weights.scale(1, 2) })
    }
}

/// Half of a number, a quarter, and so on, while anything is left.
fn halves(number: i128) -> impl Iterator<Item = i128> {
    std::iter::successors(Some(number / 2), |size| Some(size / 2)).take_while(|size| *size > 0)
}

/// The largest decode batch that graphs are captured for, by whichever argument the release has.
pub fn graph_max_batch(arguments: &ServerArgs) -> Option<i128> {
    settings(arguments).graph_max_batch.map(i128::from).filter(|size| *size > 0)
}

/// The arguments, whatever release they are of: what is asked here, each release calls by its own name.
fn settings(arguments: &ServerArgs) -> Settings {
    Settings::from_arguments(arguments, Version::new(5, 23), None)
}

fn pool(ledger: &Ledger) -> Option<&Posting> {
    ledger.stage(Stage::KvCache, Worker::Target).or_else(|| ledger.stage(Stage::MemoryPool, Worker::Target))
}

/// The tokens of a pool, and the bytes of its parts.
fn tokens_and_bytes(pool: &Posting) -> Option<(i128, Quantity)> {
    let tokens = pool.parts.iter().find_map(|part| part.tokens).filter(|tokens| *tokens > 0)?;
    Some((i128::from(tokens), pool.parts.iter().map(|part| part.size).sum()))
}
