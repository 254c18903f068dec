use super::split::{TorchFigures, split};
use super::*;
use crate::quantity::MIB;
use proptest::prelude::*;

fn torch(reserved: i128, split: Option<(i128, i128)>) -> TorchFigures {
    TorchFigures {
        reserved: Quantity::exact(reserved),
        split: split.map(|(ordinary, private)| (Quantity::exact(ordinary), Quantity::exact(private))),
        inside: Vec::new(),
        basis: Basis::Measured,
    }
}

fn of(total: i128, own: Option<i128>, torch: Option<TorchFigures>) -> Breakdown {
    split(Moment::Dump, Scope::Device, Quantity::exact(total), own.map(Quantity::exact), torch)
}

#[test]
fn what_is_not_told_apart_stays_together() {
    let holders = |breakdown: Breakdown| -> Vec<(Holder, i128)> {
        breakdown.shares.iter().map(|share| (share.holder, share.amount.low())).collect()
    };
    assert_eq!(
        holders(of(100, Some(90), Some(torch(70, Some((60, 10)))))),
        [
            (Holder::OrdinaryPools, 60),
            (Holder::PrivatePools, 10),
            (Holder::OutsideTorch, 20),
            (Holder::Others, 10)
        ]
    );
    assert_eq!(
        holders(of(100, None, Some(torch(70, None)))),
        [(Holder::TorchPools, 70), (Holder::OutsideTorchAndOthers, 30)]
    );
    assert_eq!(holders(of(100, Some(90), None)), [(Holder::Process, 90), (Holder::Others, 10)]);
    assert_eq!(holders(of(100, None, None)), []);
}

#[test]
fn a_part_larger_than_the_whole_is_a_conflict() {
    for breakdown in [
        of(100, Some(120), None),
        of(100, None, Some(torch(120, None))),
        of(100, Some(50), Some(torch(60, None))),
    ] {
        assert!(breakdown.conflict.is_some() && breakdown.shares.is_empty());
    }
}

proptest! {
    /// Whatever the true values and however coarse the prints: the shares hold the truth and meet the total.
    #[test]
    fn shares_hold_the_truth_and_add_up(
        ordinary in 0i128..1 << 40, private in 0i128..1 << 36, outside in 0i128..1 << 33, others in 0i128..1 << 38,
        blur in 0i128..20 * MIB, split_known: bool, own_known: bool,
    ) {
        let blurred = |bytes: i128| Quantity::between(bytes - blur / 3, bytes + blur);
        let own = ordinary + private + outside;
        let figures = TorchFigures {
            reserved: blurred(ordinary + private),
            ..torch(0, split_known.then_some((ordinary, private)))
        };
        let breakdown = split(
            Moment::Snapshot, Scope::Device, blurred(own + others), own_known.then(|| blurred(own)), Some(figures),
        );
        prop_assert_eq!(&breakdown.conflict, &None);
        let expected = [
            (Holder::OrdinaryPools, ordinary), (Holder::PrivatePools, private), (Holder::TorchPools, ordinary + private),
            (Holder::OutsideTorch, outside), (Holder::Others, others), (Holder::OutsideTorchAndOthers, outside + others),
        ];
        for (holder, bytes) in expected {
            if let Some(share) = breakdown.share(holder) { prop_assert!(share.contains(bytes), "{:?}", holder); }
        }
        let sum: Quantity = breakdown.shares.iter().map(|share| share.amount).sum();
        prop_assert!(sum.contains(own + others) && sum.meets(breakdown.total));
    }
}
