//! The holders at the moment when PyTorch's allocator refused, by the sentence that it raised.
//!
//! PyTorch 2 says (`c10/cuda/CUDACachingAllocator.cpp`, `malloc`): total and free of the device, the process's own memory,
//! its allocated and its reserved but unallocated bytes; the last two add up to reserved. Its 'allocated in private
//! pools' is a misnomer: it sums the blocks that private pools keep *free*. On a recorded server it said 22.00 MiB where the
//! private pool had 22.00 MiB reserved and nothing allocated. So it is a lower bound of what those pools hold, part of
//! 'reserved but unallocated', and nothing to add. PyTorch 1 prints reserved itself, and not the process's own memory.

use super::split::{TorchFigures, split};
use super::{Breakdown, Inside, MatchedSnapshot, Moment, Scope};
use crate::event::{Event, Role};
use crate::launch::{Launch, Rank};
use crate::quantity::Quantity;
use crate::reconcile::{Basis, device_by_arguments};

/// The breakdown at a rank's first out-of-memory sentence that carries PyTorch's figures. A snapshot of the same reserved
/// memory splits it into pools.
pub(super) fn at_failure(
    launch: &Launch,
    rank: &Rank,
    snapshot: Option<&MatchedSnapshot<'_>>,
) -> Option<Breakdown> {
    let of_rank = |event: &&Event| {
        event.rank.coordinates == rank.tag.coordinates && event.rank.text == rank.tag.text
            || launch.ranks.len() == 1
            || event.rank.text.is_empty()
                && event
                    .count("gpu")
                    .and_then(|gpu| u32::try_from(gpu).ok())
                    .is_some_and(|gpu| device_by_arguments(launch, rank) == Some(gpu))
    };
    let failures = launch.failures.iter().map(AsRef::as_ref);
    failures
        .filter(|event: &&Event| matches!(event.role, Role::Failure(_)))
        .filter(of_rank)
        .find_map(|event| of_sentence(event, snapshot))
}

fn of_sentence(event: &Event, snapshot: Option<&MatchedSnapshot<'_>>) -> Option<Breakdown> {
    let total = event.memory("total")? - event.memory("free")?;
    let mut torch = torch_figures(event)?;
    let of_same_state = |one: &&MatchedSnapshot<'_>| one.summary.totals.reserved.meets(torch.reserved);
    let snapshot = snapshot.filter(of_same_state);
    torch.split = snapshot.and_then(|one| one.summary.ordinary().zip(one.summary.private()));
    let breakdown = split(Moment::Failure, Scope::Device, total, event.memory("in use"), Some(torch));
    let log = event.place.source.to_string();
    let sources = [log].into_iter().chain(snapshot.map(|one| one.name.to_string())).collect();
    Some(Breakdown { sources, place: Some(event.place.clone()), ..breakdown })
}

fn torch_figures(event: &Event) -> Option<TorchFigures> {
    let allocated = event.memory("allocated")?;
    let unallocated = event.memory("reserved unallocated");
    let reserved = event.memory("reserved").or_else(|| Some(allocated + unallocated?))?;
    let free: Quantity = unallocated.unwrap_or(reserved - allocated);
    let mut inside = vec![
        Inside { label: "PyTorch: in tensors", amount: allocated },
        Inside { label: "PyTorch: free, kept", amount: free },
    ];
    if let Some(amount) = event.memory("private pools") {
        inside.push(Inside { label: "PyTorch: of that, in private pools", amount });
    }
    Some(TorchFigures { reserved, split: None, inside, basis: Basis::Logged })
}
