//! Which snapshot belongs to which rank.
//!
//! A snapshot numbers devices as its process did, and so do the launcher's arguments, both before the renumbering of
//! `CUDA_VISIBLE_DEVICES`. It holds no clock and no rank: what is not certain is left out and said.

use crate::launch::Launch;
use crate::reconcile::device_by_arguments;
use crate::snapshot::DeviceSummary;
use std::sync::Arc;

/// A snapshot that the user named.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotSource {
    /// The path as given.
    pub name: Arc<str>,
    /// Its sums by device.
    pub devices: Vec<DeviceSummary>,
}

/// A snapshot's device that belongs to a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedSnapshot<'s> {
    /// The snapshot's path.
    pub name: Arc<str>,
    /// The sums of the device.
    pub summary: &'s DeviceSummary,
}

/// A snapshot's device that no rank could be found for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The snapshot's path.
    pub name: Arc<str>,
    /// The device in it.
    pub device: u32,
    /// Why.
    pub why: &'static str,
}

/// Gives each rank of a launch its snapshot: the only one to the only rank, otherwise by the device that the arguments
/// give the rank.
pub fn match_snapshots<'s>(
    launch: &Launch,
    snapshots: &'s [SnapshotSource],
) -> (Vec<Option<MatchedSnapshot<'s>>>, Vec<Unmatched>) {
    let mut matched: Vec<Option<MatchedSnapshot<'s>>> = launch.ranks.iter().map(|_| None).collect();
    let mut unmatched = Vec::new();
    let devices: Vec<(&SnapshotSource, &DeviceSummary)> = snapshots
        .iter()
        .flat_map(|source| source.devices.iter().map(move |device| (source, device)))
        .collect();
    for (source, summary) in &devices {
        let leave = |why| Unmatched { name: Arc::clone(&source.name), device: summary.device, why };
        let on_device = |rank: &usize| {
            let rank = launch.ranks.get(*rank);
            rank.and_then(|rank| device_by_arguments(launch, rank)) == Some(summary.device)
        };
        let ranks: Vec<usize> = match (launch.ranks.len(), devices.len()) {
            (1, 1) => vec![0],
            (ranks, _) => (0..ranks).filter(on_device).collect(),
        };
        match ranks.as_slice() {
            [] => unmatched.push(leave("no rank of the launch runs on that device by its arguments")),
            [one] => match matched.get_mut(*one) {
                Some(place) if place.is_none() => {
                    *place = Some(MatchedSnapshot { name: Arc::clone(&source.name), summary });
                }
                _ => unmatched.push(leave("another snapshot is of the same rank")),
            },
            _ => unmatched.push(leave("several ranks run on that device by their arguments")),
        }
    }
    (matched, unmatched)
}
