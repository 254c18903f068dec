//! *Pre*: the free memory at the end of distributed init, the base of all of SGLang's arithmetic, which no release prints.

use super::AuditInputs;
use crate::event::{FailureKind, Role};
use crate::launch::Launch;
use crate::place::Place;
use crate::quantity::{MIB, Quantity};

/// How much more than `Load weight begin` prints pre may have been. Between the two lie sampler set-up, expert tables and
/// lazily loaded modules: 70 MiB were measured on an H200 (0.5.12), and this leaves room for larger models.
pub const ALLOWANCE: i128 = 256 * MIB;

/// How pre is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaselineBasis {
    /// The check for unbalanced ranks printed it, unrounded.
    Printed,
    /// The least first free figure of the ranks, usually that of `Load weight begin`: what was free a moment later, so a
    /// lower bound; [`ALLOWANCE`] is added above it.
    FirstFigure,
}

/// Pre, as far as the log tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// What the log's own figures say, tokens aside.
    pub estimate: Quantity,
    /// How.
    pub basis: BaselineBasis,
    /// The line.
    pub place: Option<Place>,
    /// The rank with the least, as an index into the launch's ranks.
    pub poorest: usize,
    /// What the printed token count implies, where nothing capped it.
    pub implied: Option<Quantity>,
}

impl Baseline {
    pub(super) fn of(inputs: &AuditInputs<'_>, ranks: &[usize]) -> Option<Baseline> {
        let first = |rank: &usize| {
            let ledger = inputs.ledgers.get(*rank)?;
            Some((*rank, ledger.opening?, ledger.opening_place.clone()))
        };
        let openings: Vec<_> = ranks.iter().filter_map(first).collect();
        let least = openings.iter().map(|(_, opening, _)| *opening).reduce(Quantity::min)?;
        let (poorest, _, place) = openings.into_iter().min_by_key(|(_, opening, _)| opening.midpoint())?;
        if let Some((estimate, place)) = printed(inputs.launch) {
            let basis = BaselineBasis::Printed;
            return Some(Baseline { estimate, basis, place: Some(place), poorest, implied: None });
        }
        let estimate = Quantity::between(least.low(), least.high() + ALLOWANCE);
        Some(Baseline { estimate, basis: BaselineBasis::FirstFigure, place, poorest, implied: None })
    }

    /// The narrowest true interval: the estimate, narrowed by the printed tokens where both can be true.
    pub fn best(&self) -> Quantity {
        self.implied.and_then(|implied| implied.intersect(self.estimate)).unwrap_or(self.estimate)
    }
}

/// `pre_model_load_memory=…` of the check that ranks are balanced: the minimum over the ranks, as a float in GiB.
fn printed(launch: &Launch) -> Option<(Quantity, Place)> {
    launch.failures.iter().filter(|event| event.role == Role::Failure(FailureKind::Unbalanced)).find_map(
        |event| {
            let field =
                ["pre_model_load_memory", "min_per_gpu_memory"].iter().find_map(|name| event.field(name))?;
            // The float went through a 32-bit tensor: its last digits are exact for what SGLang computes with.
            Some((field.memory()?, field.place.clone()))
        },
    )
}
