//! The arithmetic of holders: a total, what is known of its parts, and what is left for the last one.

use super::{Breakdown, Holder, Inside, Moment, Scope, Share};
use crate::quantity::{Certainty, Quantity};
use crate::reconcile::Basis;
use crate::snapshot::DeviceSummary;

/// What PyTorch says of its own memory on a device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TorchFigures {
    /// Everything it got from the driver.
    pub(super) reserved: Quantity,
    /// Ordinary and private pools, where told apart.
    pub(super) split: Option<(Quantity, Quantity)>,
    /// Parts of the reserved memory.
    pub(super) inside: Vec<Inside>,
    /// How they are known.
    pub(super) basis: Basis,
}

impl TorchFigures {
    pub(super) fn of(summary: &DeviceSummary) -> TorchFigures {
        let totals = &summary.totals;
        TorchFigures {
            reserved: totals.reserved,
            split: summary.ordinary().zip(summary.private()),
            inside: vec![
                Inside { label: "PyTorch: in tensors", amount: totals.allocated },
                Inside { label: "PyTorch: free, kept", amount: totals.inactive },
            ],
            basis: Basis::Measured,
        }
    }
}

/// Splits what is in use between the holders; what is left is the last one's.
pub(super) fn split(
    moment: Moment,
    scope: Scope,
    total: Quantity,
    own: Option<Quantity>,
    torch: Option<TorchFigures>,
) -> Breakdown {
    let mut breakdown = Breakdown {
        moment,
        scope,
        total,
        sources: Vec::new(),
        place: None,
        shares: Vec::new(),
        conflict: None,
        inside: Vec::new(),
    };
    let reserved = torch.as_ref().map(|torch| torch.reserved);
    let holds = own.into_iter().chain(reserved).find(|part| part.more_than(total) == Certainty::Yes);
    let beyond_own = reserved.zip(own).filter(|(reserved, own)| reserved.low() > own.high());
    if holds.is_some() || beyond_own.is_some() {
        breakdown.conflict = Some(
            "a part is larger than the whole: the figures are of different moments, processes or devices"
                .into(),
        );
        return breakdown;
    }
    let derived = |holder, amount| Share { holder, amount: not_below_zero(amount), basis: Basis::Derived };
    let process = |holder, amount| Share { holder, amount, basis: Basis::Measured };
    breakdown.shares = match (torch, own) {
        (Some(torch), own) => {
            let reserved = torch.reserved;
            let mut shares = of_torch(&torch);
            breakdown.inside = torch.inside;
            match own {
                Some(own) => shares.extend([
                    derived(Holder::OutsideTorch, own - reserved),
                    derived(Holder::Others, total - own),
                ]),
                None => shares.push(derived(Holder::OutsideTorchAndOthers, total - reserved)),
            }
            shares
        }
        (None, Some(own)) => vec![process(Holder::Process, own), derived(Holder::Others, total - own)],
        (None, None) => Vec::new(),
    };
    breakdown
}

/// Memory held is never negative: an interval that reaches below zero is cut there.
fn not_below_zero(amount: Quantity) -> Quantity {
    Quantity::between(amount.low().max(0), amount.high().max(0))
}

fn of_torch(torch: &TorchFigures) -> Vec<Share> {
    let share = |holder, amount| Share { holder, amount, basis: torch.basis };
    match torch.split {
        Some((ordinary, private)) => {
            vec![share(Holder::OrdinaryPools, ordinary), share(Holder::PrivatePools, private)]
        }
        None => vec![share(Holder::TorchPools, torch.reserved)],
    }
}
