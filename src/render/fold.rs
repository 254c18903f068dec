//! Folding: ranks that agree are shown once.
//!
//! Two ranks agree when they print the same things and all their figures meet. A group keeps what is possible for all of
//! its members, so agreement holds for the group as a whole and not only from neighbour to neighbour.

use crate::ledger::Ledger;
use crate::quantity::{Quantity, mib_text, mib_whole};
use crate::reconcile::Reconciliation;
use std::fmt::Write;

/// How many of the newest groups a rank is compared with: keeps folding linear for inputs with thousands of odd ranks.
const COMPARED: usize = 64;

/// What must agree for two ranks to be folded: words exactly, figures within their intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Signature {
    words: String,
    figures: Vec<Quantity>,
}

impl Signature {
    fn word(&mut self, word: &str) {
        self.words.push_str(word);
        self.words.push('\n');
    }

    fn figure(&mut self, figure: Option<Quantity>) {
        self.words.push(if figure.is_some() { '1' } else { '0' });
        self.figures.extend(figure);
    }

    /// What is possible under both. `None` where they disagree.
    fn meet(&self, other: &Signature) -> Option<Signature> {
        if self.words != other.words || self.figures.len() != other.figures.len() {
            return None;
        }
        let figures = self.figures.iter().zip(&other.figures).map(|(one, other)| one.intersect(*other));
        Some(Signature { words: self.words.clone(), figures: figures.collect::<Option<_>>()? })
    }
}

/// A ledger's signature: its opening, every amount and part, and what is left at the end.
pub(super) fn of_ledger(ledger: &Ledger) -> Signature {
    let mut signature = Signature::default();
    signature.figure(ledger.opening);
    for posting in &ledger.postings {
        signature.word(posting.stage.name());
        signature.word(&posting.label);
        signature.word(posting.state.name());
        // Writing to a string cannot fail.
        let _ = write!(signature.words, "{:?} {:?} {}", posting.kind, posting.worker, posting.in_chain);
        signature.figure(posting.used);
        signature.figure(posting.claimed);
        for part in &posting.parts {
            signature.word(&part.label);
            let _ = write!(signature.words, "{:?}", part.tokens);
            signature.figure(Some(part.size));
        }
    }
    signature.figure(ledger.final_free());
    let _ = write!(signature.words, "{:?}{:?}", ledger.balance.holds, ledger.balance.broken_at);
    signature
}

/// A bridge's signature: its rows, what is left and the verdict.
pub(super) fn of_bridge(reconciliation: &Reconciliation) -> Signature {
    let mut signature = Signature::default();
    for item in &reconciliation.bridge {
        signature.word(&item.label);
        signature.word(item.basis.name());
        signature.figure(Some(item.amount));
    }
    signature.figure(Some(reconciliation.unexplained));
    let _ = write!(signature.words, "{:?}", reconciliation.verdict);
    // Who else is on a card is told for each card.
    for owner in reconciliation.owners.iter().filter(|owner| !owner.own) {
        signature.word(&owner.process.name);
        let _ = write!(signature.words, "{:?}", owner.process.pid);
        signature.figure(owner.process.used);
    }
    signature
}

/// Groups positions whose signatures agree, largest group first. With `apart` each stays alone.
pub(super) fn fold(signatures: impl IntoIterator<Item = Signature>, apart: bool) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Signature, Vec<usize>)> = Vec::new();
    for (position, signature) in signatures.into_iter().enumerate() {
        let found = groups
            .iter_mut()
            .rev()
            .take(if apart { 0 } else { COMPARED })
            .find_map(|group| group.0.meet(&signature).map(|common| (common, group)));
        match found {
            Some((common, group)) => {
                group.0 = common;
                group.1.push(position);
            }
            None => groups.push((signature, vec![position])),
        }
    }
    // The sort is stable: among groups of one size the lowest rank's comes first.
    groups.sort_by_key(|(_, positions)| std::cmp::Reverse(positions.len()));
    groups.into_iter().map(|(_, positions)| positions).collect()
}

/// The range of the figures' middles. `None` where there is no figure.
fn range(figures: impl IntoIterator<Item = Quantity>) -> Option<Quantity> {
    figures.into_iter().map(|figure| Quantity::exact(figure.midpoint())).reduce(Quantity::hull)
}

/// One figure for several ranks, with half of their spread behind it where that is a MiB or more.
pub(super) fn spread_text(figures: impl IntoIterator<Item = Quantity>) -> Option<String> {
    range(figures).map(mib_text)
}

/// One figure for several ranks, the middle of their range.
pub(super) fn middle_text(figures: impl IntoIterator<Item = Quantity>) -> Option<String> {
    range(figures).map(mib_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(low: i128, high: i128) -> Signature {
        let mut signature = Signature::default();
        signature.figure(Some(Quantity::between(low, high)));
        signature
    }

    #[test]
    fn agreement_is_of_the_whole_group() {
        let groups = fold([signature(0, 10), signature(8, 18), signature(16, 26), signature(9, 12)], false);
        assert_eq!(
            groups,
            [vec![0, 1, 3], vec![2]],
            "the third meets the second, but not what all three share"
        );
    }

    #[test]
    fn unfolded_ranks_stay_in_order() {
        assert_eq!(fold([signature(0, 1), signature(0, 1)], true), [[0], [1]]);
    }

    #[test]
    fn an_unknown_figure_does_not_agree_with_a_known_one() {
        let mut unknown = Signature::default();
        unknown.figure(None);
        assert_eq!(fold([signature(0, 1), unknown], false).len(), 2);
    }

    #[test]
    fn the_spread_is_shown_where_it_matters() {
        let figures = [15_340, 15_344].map(Quantity::exact_mib);
        assert_eq!(spread_text(figures).as_deref(), Some("15,342 ± 2"));
        assert_eq!(middle_text(figures).as_deref(), Some("15,342"));
        assert_eq!(spread_text([Quantity::exact_mib(1)]).as_deref(), Some("1"));
        assert_eq!(spread_text([]), None);
    }
}
