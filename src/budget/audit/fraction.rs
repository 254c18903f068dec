//! `mem_fraction_static` of a launch, and the default that its arguments give.

use super::AuditInputs;
use crate::budget::defaults::{DefaultFraction, Settings, default_fraction};
use crate::event::Role;
use crate::launch::Launch;
use crate::ledger::Ledger;
use crate::place::Place;
use crate::quantity::Decimal;
use crate::stage::{Stage, Worker};
use crate::version::Version;

/// The fraction that the budget is computed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FractionFact {
    /// Its value, exact.
    pub value: Decimal,
    /// Where it stands: in the arguments, or in the line that lowered it afterwards.
    pub place: Place,
    /// Whether a later line changed what the arguments say (multimodal models up to 0.4.8).
    pub changed_later: bool,
}

impl FractionFact {
    /// The fraction of a launch. `None` without arguments, and for one outside of 0 to 1.
    pub(super) fn of(launch: &Launch) -> Option<FractionFact> {
        let (arguments, place) = launch.arguments.as_ref()?;
        let printed = arguments.float("mem_fraction_static").filter(|value| *value > 0.0 && *value < 1.0)?;
        let given = FractionFact { value: decimal(printed)?, place: place.clone(), changed_later: false };
        Some(lowered_later(launch).unwrap_or(given))
    }
}

/// A float as Python would print it: the shortest form that reads back the same.
pub(super) fn decimal(number: f64) -> Option<Decimal> {
    Decimal::parse(&number.to_string())
}

/// The runner's own line, such as `Automatically reduce --mem-fraction-static to 0.792`.
fn lowered_later(launch: &Launch) -> Option<FractionFact> {
    let of_ranks = launch.ranks.iter().flat_map(|rank| &rank.events).map(|event| &event.event);
    let mut lines = of_ranks.chain(&launch.notes).filter(|event| event.role == Role::Note);
    lines.find_map(|event| {
        let value = event.number("mem_fraction_static")?;
        let place = event.field("mem_fraction_static")?.place.clone();
        Some(FractionFact { value, place, changed_later: true })
    })
}

/// The default fraction of a launch's arguments, and whether it is what was printed.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultAudit {
    /// The release whose rule was applied.
    pub version: Version,
    /// The card's size that it was applied to, in MiB.
    pub card_mib: u32,
    /// The result and its parts.
    pub derived: DefaultFraction,
    /// Whether the printed fraction is the same. `None` where none was printed.
    pub equals_printed: Option<bool>,
}

impl DefaultAudit {
    pub(super) fn of(
        inputs: &AuditInputs<'_>,
        versions: &[Version],
        fraction: Option<&FractionFact>,
    ) -> Option<DefaultAudit> {
        let card_mib = inputs.card_mib?;
        let printed = inputs.launch.args()?.float("mem_fraction_static").filter(|_| fraction.is_some());
        let by_release = versions.iter().rev().filter_map(|version| {
            let derived = default_fraction(&settings(inputs, *version)?);
            let equals_printed = printed.map(|printed| (printed - derived.printed).abs() < 1e-9);
            Some(DefaultAudit { version: *version, card_mib, derived, equals_printed })
        });
        let audits: Vec<DefaultAudit> = by_release.collect();
        audits.iter().find(|audit| audit.equals_printed == Some(true)).or(audits.first()).cloned()
    }
}

/// What the default rules ask, from the arguments and from what the log and the config tell of the model.
pub(in crate::budget) fn settings(inputs: &AuditInputs<'_>, version: Version) -> Option<Settings> {
    let mut settings = Settings::from_arguments(inputs.launch.args()?, version, inputs.card_mib);
    settings.mla = inputs.ledgers.iter().any(has_latent_pool);
    if let Some(facts) = inputs.model {
        settings.vision = facts.model.vision;
        settings.multimodal = facts.model.vision.is_some();
    }
    Some(settings)
}

/// MLA keeps one entry where other attention keeps two: its pool line has a `KV size` instead of K and V.
fn has_latent_pool(ledger: &Ledger) -> bool {
    ledger
        .stage(Stage::KvCache, Worker::Target)
        .is_some_and(|pool| pool.parts.iter().any(|part| part.label == "KV"))
}
