//! The proof that a ledger balances, in interval arithmetic.
//!
//! Levels (`avail mem`) and claims (`mem usage`) are independent prints of the same memory. The chain walks from the
//! opening down: each posting narrows the level after it to what its claim allows, and the printed level must still be
//! possible. If at some posting it is not, no true values could lie behind the prints, and the books do not balance.

use super::Posting;
use crate::quantity::Quantity;

/// Whether and how well a ledger balances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    /// Whether true values can lie behind all prints. `None` where there are not two levels to balance.
    pub holds: Option<bool>,
    /// Opening − Σ used − closing: contains zero where the books balance.
    pub residual: Option<Quantity>,
    /// The first posting at which no true values are left.
    pub broken_at: Option<usize>,
}

impl Balance {
    /// Balances the postings of the chain between two levels.
    pub(super) fn of(opening: Option<Quantity>, postings: &[Posting], closing: Option<Quantity>) -> Balance {
        let (Some(opening), Some(closing)) = (opening, closing) else {
            return Balance { holds: None, residual: None, broken_at: None };
        };
        let mut level = opening;
        let mut spent = Quantity::ZERO;
        let mut broken_at = None;
        for (index, posting) in postings.iter().enumerate().filter(|(_, posting)| posting.in_chain) {
            let before = posting.before.and_then(|before| before.intersect(level));
            let possible = before.unwrap_or(level);
            if posting.before.is_some() && before.is_none() {
                broken_at = broken_at.or(Some(index));
            }
            let amount = posting.claimed.or_else(|| posting.difference());
            spent = spent + amount.unwrap_or(Quantity::ZERO);
            level = match (posting.after, posting.claimed) {
                (Some(after), Some(claimed)) => match after.intersect(possible - claimed) {
                    Some(narrowed) => narrowed,
                    None => {
                        broken_at = broken_at.or(Some(index));
                        after
                    }
                },
                (Some(after), None) => after,
                (None, Some(claimed)) => possible - claimed,
                (None, None) => possible,
            };
        }
        let holds = broken_at.is_none() && level.meets(closing);
        Balance { holds: Some(holds), residual: Some(opening - spent - closing), broken_at }
    }
}
