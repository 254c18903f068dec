//! Post-capture KV sizing (0.5.18 and later): the pool's first figures are addresses, its last ones memory.

use super::world::{World, page_size, pool_of};
use super::{AuditInputs, FractionFact, ledger_of, settings, span};
use crate::budget::post_capture::{PostCapture, activation_reserve_mib};
use crate::event::{Event, PoolRole, Role};
use crate::ledger::Posting;
use crate::place::Place;
use crate::quantity::{GIB, Quantity};
use crate::stage::{Stage, Worker};
use crate::version::Version;

/// A pool that was sized after graphs were captured.
#[derive(Debug, Clone, PartialEq)]
pub struct PostCaptureAudit {
    /// Tokens that addresses were reserved for: an upper bound, not memory.
    pub reserved_tokens: Option<i128>,
    /// Tokens that memory was mapped for in the end.
    pub tokens: i128,
    /// Memory of the pool as printed.
    pub kv: Option<Quantity>,
    /// Free memory when it was sized: after capture.
    pub free: Option<Quantity>,
    /// Fewest and most tokens by the arithmetic.
    pub predicted: Option<(i128, i128)>,
    /// Whether activations were given room beyond the slack, because some batches run without graphs.
    pub eager_reserve: bool,
    /// `max_running_requests` before and after.
    pub requests: Option<(i128, i128)>,
    /// The line.
    pub place: Option<Place>,
}

impl PostCaptureAudit {
    /// The resize of the first rank that prints one.
    pub(super) fn of(
        inputs: &AuditInputs<'_>,
        versions: &[Version],
        fraction: Option<&FractionFact>,
        world: &World,
    ) -> Option<PostCaptureAudit> {
        let resize_of = |rank: &usize| {
            let ledger = ledger_of(inputs, *rank)?;
            Some((*rank, ledger, ledger.stage(Stage::PostCaptureResize, Worker::Target)?))
        };
        let (rank, ledger, resize) = world.ranks.iter().find_map(resize_of)?;
        let tokens = resize.parts.iter().find_map(|part| part.tokens).map(i128::from)?;
        let reserved_tokens = reserved(inputs, rank);
        let note = |needle: &str| notes(inputs, rank).find(|event| event.text.contains(needle));
        let eager_reserve = note("reserving activation headroom").is_some();
        let sizes = versions.iter().filter_map(|version| {
            let eager = settings(inputs, *version)
                .filter(|_| eager_reserve)
                .map(|settings| activation_reserve_mib(&settings));
            sizes(
                *version,
                fraction?,
                world,
                resize,
                pool_of(ledger)?,
                eager,
                page_size(inputs.launch),
                reserved_tokens?,
            )
        });
        let ends: Vec<i128> = sizes.flatten().collect();
        Some(PostCaptureAudit {
            reserved_tokens,
            tokens,
            kv: (!resize.parts.is_empty()).then(|| resize.parts.iter().map(|part| part.size).sum()),
            free: resize.before,
            predicted: span(ends),
            eager_reserve,
            requests: note("max_running_requests")
                .and_then(|event| Some((event.count("requested")?, event.count("granted")?))),
            place: resize.places.first().cloned(),
        })
    }
}

fn notes<'a>(inputs: &AuditInputs<'a>, rank: usize) -> impl Iterator<Item = &'a Event> {
    let events = inputs.launch.ranks.get(rank).map(|rank| rank.events.as_slice()).unwrap_or_default();
    events
        .iter()
        .map(|event| event.event.as_ref())
        .filter(|event| event.text.starts_with("Post-capture KV sizing"))
}

/// Tokens of the pool's address space, by its own lines.
fn reserved(inputs: &AuditInputs<'_>, rank: usize) -> Option<i128> {
    let events = &inputs.launch.ranks.get(rank)?.events;
    let pools = events.iter().filter(|event| event.event.role == Role::Pool(PoolRole::AddressSpace));
    pools.filter_map(|event| event.event.count("#tokens")).max()
}

/// The two ends of the arithmetic: least free, largest headroom, nothing backed yet; and the other way round.
#[allow(clippy::too_many_arguments, reason = "the inputs of one formula")]
fn sizes(
    version: Version,
    fraction: &FractionFact,
    world: &World,
    resize: &Posting,
    pool: &Posting,
    eager_reserve_mib: Option<f64>,
    page_size: i128,
    reserved_tokens: i128,
) -> Option<[i128; 2]> {
    let (free, baseline, cell) = (resize.before?, world.baseline.as_ref()?.estimate, world.cell?);
    let gib = |bytes: i128| bytes as f64 / GIB as f64;
    let size = |free: i128, baseline: i128, multimodal: i128, backed: i128, cell: i128| {
        let inputs = PostCapture {
            free_gib: gib(free),
            baseline_gib: gib(baseline),
            fraction: fraction.value.to_f64(),
            multimodal_gib: gib(multimodal),
            sampling_gib: 0.0,
            eager_reserve_mib,
            backed,
            canary: 0,
            cell,
            page_size,
            reserved_tokens,
        };
        Some(inputs.size(version)?.tokens)
    };
    let (reserved, (least, most)) = (world.reserved(), cell.bounds());
    let backed = pool.used.map_or(0, |used| used.high().max(0));
    Some([
        size(free.low(), baseline.high(), reserved.high(), 0, most)?,
        size(free.high(), baseline.low(), reserved.low(), backed, least)?,
    ])
}
