//! The tokens: what the arithmetic gives, what caps them, and what was printed.

use super::cell::holds_kv;
use super::fraction::FractionFact;
use super::world::{World, page_size};
use super::{AuditInputs, ledger_of, span};
use crate::budget::capacity::{Budget, CapStep, Caps, capped, speculative_headroom};
use crate::event::Role;
use crate::launch::Launch;
use crate::place::Place;
use crate::quantity::Quantity;
use crate::stage::{Stage, Worker};
use crate::version::Version;

/// How a printed token count stands to the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenVerdict {
    /// It lies within what the arithmetic gives.
    Agrees,
    /// It is less than the budget allows.
    Fewer,
    /// It is more than the budget allows.
    More,
}

impl TokenVerdict {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            TokenVerdict::Agrees => "agrees",
            TokenVerdict::Fewer => "fewer",
            TokenVerdict::More => "more",
        }
    }
}

/// The token count and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Tokens {
    /// Fewest and most that the division gives, before caps; negative where nothing is left.
    pub divided: Option<(i128, i128)>,
    /// Fewest and most after caps.
    pub predicted: Option<(i128, i128)>,
    /// What changed the count after the division, at its middle.
    pub steps: Vec<CapStep>,
    /// `max_total_num_tokens`, or the pool's own count where no summary was printed; with post-capture sizing, the tokens
    /// that addresses were reserved for.
    pub printed: Option<i128>,
    /// Where it is printed.
    pub place: Option<Place>,
    /// `--max-total-tokens`.
    pub user_cap: Option<i128>,
    /// `page_size`.
    pub page_size: i128,
    /// How the two compare.
    pub verdict: Option<TokenVerdict>,
    /// Pre as the printed count implies it, where nothing capped it.
    pub(super) implied_baseline: Option<Quantity>,
}

impl Tokens {
    pub(super) fn of(
        inputs: &AuditInputs<'_>,
        versions: &[Version],
        fraction: Option<&FractionFact>,
        world: &World,
    ) -> Option<Tokens> {
        let launch = inputs.launch;
        let reserved = world.post_capture.as_ref().and_then(|audit| audit.reserved_tokens);
        let (printed, place) = match reserved {
            Some(tokens) => (Some(tokens), world.post_capture.as_ref().and_then(|audit| audit.place.clone())),
            None => printed(inputs, world).unzip(),
        };
        let budget = fraction.and_then(|fraction| world.budget(fraction));
        let divided = budget.zip(world.cell).and_then(|(budget, cell)| Some(cell.tokens(budget.rest()?)));
        if printed.is_none() && divided.is_none() {
            return None;
        }
        let mut tokens = Tokens {
            divided,
            predicted: None,
            steps: Vec::new(),
            printed,
            place,
            user_cap: user_cap(launch),
            page_size: page_size(launch),
            verdict: None,
            implied_baseline: None,
        };
        if let Some((low, high)) = divided {
            let ends = versions.iter().flat_map(|version| {
                let least = tokens.caps(launch, *version, slots(launch, low, LEAST_SLOTS));
                let most = tokens.caps(launch, *version, slots(launch, high, MOST_SLOTS));
                [(low, least), (high, most)]
                    .map(|(count, caps)| final_count(&capped(*version, count, &caps), count))
            });
            tokens.predicted = span(ends.collect::<Vec<_>>());
            let middle = low + (high - low) / 2;
            if let Some(version) = versions.last() {
                let caps = tokens.caps(launch, *version, slots(launch, middle, LEAST_SLOTS));
                tokens.steps = capped(*version, middle, &caps);
            }
        }
        // Addresses beyond the budget cost nothing: they are not judged.
        let judged = printed.filter(|_| world.post_capture.is_none());
        tokens.verdict = judged.zip(tokens.predicted).map(|(printed, (low, high))| {
            if printed < low {
                TokenVerdict::Fewer
            } else if printed > high {
                TokenVerdict::More
            } else {
                TokenVerdict::Agrees
            }
        });
        tokens.implied_baseline = budget.and_then(|budget| tokens.implied(&budget, versions, world));
        Some(tokens)
    }

    fn caps(&self, launch: &Launch, version: Version, slots: i128) -> Caps {
        Caps {
            max_total_tokens: self.user_cap,
            page_size: self.page_size,
            pipeline_minimum: None,
            speculative_headroom: drafted(launch, version, slots),
        }
    }

    /// Whether `--max-total-tokens` decided the count: the arithmetic alone would surely give more.
    pub fn is_capped(&self) -> bool {
        match (self.user_cap, self.divided, self.printed) {
            (Some(cap), Some((low, _)), _) if cap < low => true,
            (Some(cap), _, Some(printed)) => printed >= cap - self.page_size && printed <= cap,
            _ => false,
        }
    }

    /// Whether nothing but whole pages changed the count after the division.
    pub fn steps_are_pages_only(&self) -> bool {
        self.steps.iter().all(|step| step.label == crate::budget::capacity::PAGES)
    }

    /// Pre by the printed count. Nothing but the division and whole pages may have shaped it.
    fn implied(&self, budget: &Budget, versions: &[Version], world: &World) -> Option<Quantity> {
        let printed = self.printed?;
        let drafting = self.steps.iter().any(|step| step.label.contains("speculative"));
        if self.is_capped() || drafting || versions.is_empty() {
            return None;
        }
        let (low, high) = world.cell?.bounds();
        let ends = [
            budget.baseline_from_tokens(printed, low)?,
            budget.baseline_from_tokens(printed + self.page_size - 1, high)?,
        ];
        ends.into_iter().reduce(Quantity::hull)
    }
}

fn final_count(steps: &[CapStep], divided: i128) -> i128 {
    steps.last().map_or(divided, |step| step.tokens)
}

pub(super) fn user_cap(launch: &Launch) -> Option<i128> {
    launch.args()?.integer("max_total_tokens").filter(|cap| *cap > 0)
}

/// `max_total_num_tokens` of the summary, else the largest count of the pool's own lines.
fn printed(inputs: &AuditInputs<'_>, world: &World) -> Option<(i128, Place)> {
    let events =
        world.ranks.iter().filter_map(|rank| inputs.launch.ranks.get(*rank)).flat_map(|rank| &rank.events);
    let mut summaries = events.filter(|event| event.event.role == Role::Summary);
    let by_summary = summaries.find_map(|event| {
        let count = event.event.count("max_total_num_tokens")?;
        Some((count, event.event.field("max_total_num_tokens")?.place.clone()))
    });
    let by_pool = || {
        let pools = world
            .ranks
            .iter()
            .filter_map(|rank| ledger_of(inputs, *rank)?.stage(Stage::KvCache, Worker::Target));
        let parts = pools.flat_map(|pool| &pool.parts).filter(|part| holds_kv(part));
        parts
            .filter_map(|part| Some((i128::from(part.tokens?), part.place.clone())))
            .max_by_key(|(count, _)| *count)
    };
    by_summary.or_else(by_pool)
}

/// Request slots that SGLang estimates lie between these.
const LEAST_SLOTS: i128 = 2048;
const MOST_SLOTS: i128 = 4096;

/// Request slots: as asked for, else estimated from the tokens; `otherwise` where the context length is not known.
fn slots(launch: &Launch, divided: i128, otherwise: i128) -> i128 {
    let argument =
        |key: &str| launch.args().and_then(|arguments| arguments.integer(key)).filter(|number| *number > 0);
    let events = launch.ranks.iter().flat_map(|rank| &rank.events);
    let summary = || {
        events
            .filter(|event| event.event.role == Role::Summary)
            .find_map(|event| event.event.count("context_len"))
    };
    let context = || argument("context_length").or_else(summary).filter(|length| *length > 0);
    argument("max_running_requests").unwrap_or_else(|| match context() {
        Some(context) => divided.saturating_mul(512).div_euclid(context).clamp(LEAST_SLOTS, MOST_SLOTS),
        None => otherwise,
    })
}

/// Tokens that speculative decoding adds beyond the budget in the releases that do.
fn drafted(launch: &Launch, version: Version, slots: i128) -> i128 {
    let Some(arguments) = launch.args() else { return 0 };
    let algorithm = arguments.text("speculative_algorithm").map(str::to_ascii_uppercase);
    let drafts = match algorithm.as_deref() {
        None => false,
        Some("NGRAM") => version < Version::new(5, 1),
        Some(_) => true,
    };
    let number = |key: &str| arguments.integer(key).unwrap_or(0).max(0);
    if !drafts {
        return 0;
    }
    speculative_headroom(
        version,
        slots,
        number("speculative_num_steps"),
        number("speculative_eagle_topk"),
        number("speculative_num_draft_tokens"),
    )
}
