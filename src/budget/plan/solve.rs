//! From a goal to flags: the fraction is searched through the projection itself, so that what is found holds in it.

use super::{Change, Facts, FractionChoice, PlanError, Projection, project};
use crate::quantity::{Decimal, GIB, Quantity, group_digits, mib_text, mib_whole};

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// At least this many tokens.
    Tokens(i128),
    /// At least this many bytes left after start-up, and as many tokens as that allows.
    Headroom(i128),
}

/// The card that SGLang's tuning guide speaks of with its 5 to 8 GB.
const GUIDE_CARD: i128 = 80 * GIB;

/// A limit of the guide for a card: the lower end shrinks with smaller cards, the upper end goes with the card either way.
pub fn guide_limit(guide: i128, card: Option<i128>, lower_end: bool) -> i128 {
    let Some(card) = card else { return guide };
    let scaled = guide.saturating_mul(card) / GUIDE_CARD;
    if lower_end { guide.min(scaled) } else { scaled }
}

/// Fractions are searched in thousandths, as SGLang rounds its own.
const STEPS: i128 = 1000;

/// Completes `change` with the fraction that meets the goal. Its own fraction is not asked; a cap on the tokens that
/// stands in the way of the goal is dropped.
pub fn solve(facts: &Facts, change: &Change, goal: Goal) -> Result<(Change, Projection), PlanError> {
    let base = without_cap(facts, change, goal);
    let mut last = None;
    let mut tried = (1..STEPS).filter_map(|thousandths| {
        let fraction = FractionChoice::Set(Decimal::new(thousandths, 3));
        let change = Change { fraction, ..base.clone() };
        let projection = project(facts, &change).ok()?;
        last = Some(projection.clone());
        Some((change, projection))
    });
    match goal {
        Goal::Tokens(wanted) => {
            let found = tried.find(|(_, projection)| projection.tokens.0 >= wanted);
            let found = found.ok_or_else(|| too_few(last.as_ref(), wanted))?;
            match found.1.remaining {
                Some(remaining) if remaining.high() < 0 => Err(PlanError::OutOfReach(format!(
                    "{} tokens take {} MiB more than the card has beside weights and graphs",
                    group_digits(wanted),
                    mib_text(-remaining)
                ))),
                _ => Ok(found),
            }
        }
        Goal::Headroom(wanted) => {
            let leaves = |projection: &Projection| {
                projection.starts() && projection.remaining.is_some_and(|left| left.low() >= wanted)
            };
            let found = tried.filter(|(_, projection)| leaves(projection)).last();
            found.ok_or_else(|| {
                PlanError::OutOfReach(format!(
                    "no mem_fraction_static leaves {} MiB after start-up and anything for KV",
                    mib_whole(Quantity::exact(wanted))
                ))
            })
        }
    }
}

/// A cap below the goal is in the way of it; one that was given with the change stays.
fn without_cap(facts: &Facts, change: &Change, goal: Goal) -> Change {
    let in_the_way = match (goal, facts.user_cap) {
        (Goal::Tokens(wanted), Some(cap)) => cap < wanted,
        (Goal::Headroom(_), cap) => cap.is_some(),
        _ => false,
    };
    match change.max_total_tokens {
        None if in_the_way => Change { max_total_tokens: Some(None), ..change.clone() },
        _ => change.clone(),
    }
}

fn too_few(most: Option<&Projection>, wanted: i128) -> PlanError {
    let most = most.map_or(0, |projection| projection.tokens.0.max(0));
    PlanError::OutOfReach(format!(
        "{} tokens are out of reach: even a fraction of 0.999 gives {}",
        group_digits(wanted),
        group_digits(most)
    ))
}
