//! The audit: SGLang's budget arithmetic redone with the figures of one launch, and held against what it printed.
//!
//! Facts only: intervals, counts, and which of them meet. What is worth a finding is decided in [`crate::rules`], what it
//! looks like in [`crate::render`]. It is apart from the arithmetic around it because that is pure and knows no log.

mod baseline;
mod cell;
mod expected;
mod fraction;
mod limit;
mod post_capture;
mod requests;
mod reservations;
mod slack;
mod tokens;
mod world;

pub use baseline::{ALLOWANCE, Baseline, BaselineBasis};
pub use cell::Cell;
pub(super) use expected::parallel;
pub use expected::{Expected, ModelFacts};
pub(super) use fraction::settings;
pub use fraction::{DefaultAudit, FractionFact};
pub use limit::RankLimit;
pub use post_capture::PostCaptureAudit;
pub use requests::Requests;
pub use reservations::Reservation;
pub use slack::{SlackItem, SlackUse};
pub use tokens::{TokenVerdict, Tokens};
pub use world::{Available, World};

use crate::launch::Launch;
use crate::ledger::Ledger;
use crate::version::{KNOWN, Version};

/// What an audit is made from.
#[derive(Debug, Clone, Copy)]
pub struct AuditInputs<'a> {
    /// The launch.
    pub launch: &'a Launch,
    /// One ledger a rank.
    pub ledgers: &'a [Ledger],
    /// nvidia-smi's `memory.total` of the smallest card, in MiB, where it is known.
    pub card_mib: Option<u32>,
    /// The model's config and checkpoint size, where they were given.
    pub model: Option<&'a ModelFacts>,
}

/// The budget of one launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// The releases that the launch can be of: what differs between them is stated as an interval.
    pub versions: Vec<Version>,
    /// `mem_fraction_static`, where the arguments hold it.
    pub fraction: Option<FractionFact>,
    /// The default that these arguments give, where the card's size is known.
    pub default: Option<DefaultAudit>,
    /// One entry a data-parallel replica: ranks of one world share one budget. Replicas size their pools apart.
    pub worlds: Vec<World>,
}

/// Audits a launch. `None` where no rank printed any free memory.
pub fn audit(inputs: &AuditInputs<'_>) -> Option<Audit> {
    let versions = versions_of(inputs.launch);
    let fraction = FractionFact::of(inputs.launch);
    let default = DefaultAudit::of(inputs, &versions, fraction.as_ref());
    let worlds = world::worlds(inputs, &versions, fraction.as_ref());
    (!worlds.is_empty()).then_some(Audit { versions, fraction, default, worlds })
}

/// The known releases that a launch can be of, oldest first; never empty.
fn versions_of(launch: &Launch) -> Vec<Version> {
    let range = launch.versions;
    let known: Vec<Version> =
        KNOWN.into_iter().filter(|version| *version >= range.first && *version <= range.last).collect();
    if known.is_empty() { vec![range.last] } else { known }
}

/// The least and most of several counts.
fn span(counts: impl IntoIterator<Item = i128>) -> Option<(i128, i128)> {
    counts.into_iter().fold(None, |span, count| match span {
        None => Some((count, count)),
        Some((low, high)) => Some((low.min(count), high.max(count))),
    })
}

impl Audit {
    /// The world that a rank belongs to.
    pub fn world_of(&self, rank: usize) -> Option<&World> {
        self.worlds.iter().find(|world| world.ranks.contains(&rank))
    }

    /// Whether the fraction is the default of these arguments, by the rules known here: whoever set it, SGLang would
    /// have. `None` where the card's size or the fraction is unknown.
    pub fn is_default(&self) -> Option<bool> {
        self.default.as_ref().and_then(|default| default.equals_printed)
    }
}

/// The ledger of a rank.
fn ledger_of<'a>(inputs: &AuditInputs<'a>, rank: usize) -> Option<&'a Ledger> {
    inputs.ledgers.get(rank)
}
