//! Totals of a snapshot: by device, by pool, and by the place in the program that allocated.
//!
//! They are PyTorch's own statistics, to the byte: `reserved_bytes.all.current` is the segments of all pools,
//! `allocated_bytes` the blocks in tensors, `inactive_split_bytes` the free parts of segments that are partly in use
//! (PyTorch leaves expandable segments out of that last one, and so does [`Totals::inactive_split`]).

use super::{Block, BlockState, PoolId, Segment, Site, SizeClass, Snapshot};
use crate::quantity::Quantity;
use std::collections::BTreeMap;

/// A pool of PyTorch's allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pool {
    /// The ordinary pool: segments of one size class.
    Ordinary {
        /// The size class.
        class: SizeClass,
        /// Whether the segments grow by mapping.
        expandable: bool,
    },
    /// A private pool: of CUDA graphs, or of a `torch.cuda.MemPool`.
    Private(PoolId),
    /// The release did not record the pool.
    Unrecorded,
}

impl Pool {
    fn of(segment: &Segment) -> Pool {
        match segment.pool {
            None => Pool::Unrecorded,
            Some(id) if id.is_ordinary() => {
                Pool::Ordinary { class: segment.size_class, expandable: segment.expandable }
            }
            Some(id) => Pool::Private(id),
        }
    }

    /// Whether it is a private pool.
    pub const fn is_private(self) -> bool {
        matches!(self, Pool::Private(_))
    }
}

/// Sums over segments. All are parts of `reserved`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Segments.
    pub segments: usize,
    /// Everything got from the driver.
    pub reserved: Quantity,
    /// In tensors.
    pub allocated: Quantity,
    /// In tensors, or freed and still awaited by a stream.
    pub active: Quantity,
    /// Free, and kept: reserved − active.
    pub inactive: Quantity,
    /// The part of `inactive` in segments that are partly in use, expandable ones left out.
    pub inactive_split: Quantity,
    /// The part of `inactive` in segments that are free as a whole: what `empty_cache()` returns.
    pub releasable: Quantity,
    /// The largest free block: no request above it fits without asking the driver. `None` where nothing is free.
    pub largest_free: Option<Quantity>,
    /// What tensors asked for, before rounding. `None` where the release does not record it.
    pub requested: Option<Quantity>,
}

impl Totals {
    const NOTHING: Totals = Totals {
        segments: 0,
        reserved: Quantity::ZERO,
        allocated: Quantity::ZERO,
        active: Quantity::ZERO,
        inactive: Quantity::ZERO,
        inactive_split: Quantity::ZERO,
        releasable: Quantity::ZERO,
        largest_free: None,
        requested: Some(Quantity::ZERO),
    };

    fn add(&mut self, segment: &Segment) {
        let free = |block: &&Block| block.state == BlockState::Inactive;
        let inactive = Quantity::exact(segment.total - segment.active);
        let whole = segment.active == 0;
        self.segments += 1;
        self.reserved = self.reserved + Quantity::exact(segment.total);
        self.allocated = self.allocated + Quantity::exact(segment.allocated);
        self.active = self.active + Quantity::exact(segment.active);
        self.inactive = self.inactive + inactive;
        if whole {
            self.releasable = self.releasable + inactive;
        } else if !segment.expandable {
            self.inactive_split = self.inactive_split + inactive;
        }
        let largest = segment.blocks.iter().filter(free).map(|block| block.size).max();
        self.largest_free =
            self.largest_free.map(Quantity::low).into_iter().chain(largest).max().map(Quantity::exact);
        self.requested = self.requested.zip(segment.requested).map(|(sum, one)| sum + Quantity::exact(one));
    }

    /// How scattered the free memory is: the share of it that lies outside its largest block, 0 to 1. `None` where
    /// nothing is free.
    pub fn fragmentation(&self) -> Option<f64> {
        let (inactive, largest) = (self.inactive.low(), self.largest_free?.low());
        (inactive > 0).then(|| 1.0 - largest.min(inactive) as f64 / inactive as f64)
    }
}

/// The sums of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolSummary {
    /// Which pool.
    pub pool: Pool,
    /// Its sums.
    pub totals: Totals,
}

/// What one place in a program allocated and still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteSummary {
    /// The place. `None` for blocks without frames.
    pub site: Option<Site>,
    /// Blocks.
    pub blocks: usize,
    /// Their size.
    pub held: Quantity,
}

/// The sums of one device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSummary {
    /// The device as PyTorch counts it in the process.
    pub device: u32,
    /// Over all pools.
    pub totals: Totals,
    /// By pool.
    pub pools: Vec<PoolSummary>,
    /// By allocation site, the largest first. Empty where no frames were recorded.
    pub sites: Vec<SiteSummary>,
    /// Segments whose own sums are not those of their blocks: a broken export.
    pub inconsistent: usize,
}

impl DeviceSummary {
    /// Reserved by the ordinary pools. `None` where the release does not record pools.
    pub fn ordinary(&self) -> Option<Quantity> {
        Some(self.totals.reserved - self.private()?)
    }

    /// Reserved by private pools: part of PyTorch's reserved memory. `None` where the release does not record pools.
    pub fn private(&self) -> Option<Quantity> {
        if self.pools.iter().any(|pool| pool.pool == Pool::Unrecorded) {
            return None;
        }
        Some(self.pools.iter().filter(|pool| pool.pool.is_private()).map(|pool| pool.totals.reserved).sum())
    }
}

/// Sums up a snapshot, by device in their order.
pub fn summarise(snapshot: &Snapshot) -> Vec<DeviceSummary> {
    let mut devices: BTreeMap<u32, Vec<&Segment>> = BTreeMap::new();
    for segment in &snapshot.segments {
        devices.entry(segment.device).or_default().push(segment);
    }
    devices.into_iter().map(|(device, segments)| of_device(snapshot, device, &segments)).collect()
}

fn of_device(snapshot: &Snapshot, device: u32, segments: &[&Segment]) -> DeviceSummary {
    let mut totals = Totals::NOTHING;
    let mut pools: BTreeMap<Pool, Totals> = BTreeMap::new();
    for segment in segments {
        totals.add(segment);
        pools.entry(Pool::of(segment)).or_insert(Totals::NOTHING).add(segment);
    }
    DeviceSummary {
        device,
        totals,
        pools: pools.into_iter().map(|(pool, totals)| PoolSummary { pool, totals }).collect(),
        sites: sites(snapshot, segments),
        inconsistent: segments.iter().filter(|segment| !adds_up(segment)).count(),
    }
}

fn adds_up(segment: &Segment) -> bool {
    let sum = |wanted: &[BlockState]| -> i128 {
        segment.blocks.iter().filter(|block| wanted.contains(&block.state)).map(|block| block.size).sum()
    };
    let all = [BlockState::Allocated, BlockState::AwaitingFree, BlockState::Inactive];
    sum(&all) == segment.total
        && sum(&[BlockState::Allocated]) == segment.allocated
        && sum(&[BlockState::Allocated, BlockState::AwaitingFree]) == segment.active
}

fn sites(snapshot: &Snapshot, segments: &[&Segment]) -> Vec<SiteSummary> {
    let mut held: BTreeMap<Option<SiteKey<'_>>, (usize, i128)> = BTreeMap::new();
    let blocks = segments.iter().flat_map(|segment| &segment.blocks);
    for block in blocks.filter(|block| block.state == BlockState::Allocated) {
        let site = block.site.and_then(|site| snapshot.sites.get(site));
        let key = site.map(|site| (site.file.as_str(), site.line, site.function.as_str()));
        let sum = held.entry(key).or_default();
        *sum = (sum.0 + 1, sum.1 + block.size);
    }
    if held.keys().all(Option::is_none) {
        return Vec::new();
    }
    let mut sites: Vec<SiteSummary> = held
        .into_iter()
        .map(|(key, (blocks, bytes))| SiteSummary {
            site: key.map(|(file, line, function)| Site {
                function: function.to_string(),
                file: file.to_string(),
                line,
            }),
            blocks,
            held: Quantity::exact(bytes),
        })
        .collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.held.low()));
    sites
}

/// File, line and function: two stacks that end there are one site.
type SiteKey<'s> = (&'s str, Option<u64>, &'s str);
