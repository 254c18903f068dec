//! PyTorch memory snapshots: what the caching allocator held in a process, block by block.
//!
//! Reads what `torch.cuda.memory._dump_snapshot` writes (a pickle of protocol 2 to 5, packed with gzip or not), what
//! `torch.cuda.memory_snapshot()` returns, and JSON exports of either. A pickle is a program for a small machine; the one
//! here knows plain data only, runs nothing and imports nothing, and has limits on everything that a file can claim.
//! Separate, because it knows PyTorch's allocator and neither SGLang nor its logs.

mod extract;
mod json;
pub mod pickle;
mod summary;
mod tree;
mod unpack;

#[cfg(test)]
mod tests;

pub use summary::{DeviceSummary, Pool, PoolSummary, SiteSummary, Totals, summarise};

use pickle::PickleError;
use thiserror::Error;

/// The most bytes of a snapshot that are read, after unpacking.
pub const LARGEST: usize = 1 << 30;

/// How the snapshot was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A pickle of this protocol.
    Pickle(u8),
    /// JSON.
    Json,
}

impl Form {
    /// The name in JSON reports.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Pickle(_) => "pickle",
            Form::Json => "json",
        }
    }
}

/// Why a file gave no snapshot.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SnapshotError {
    /// No bytes.
    #[error("is empty")]
    Empty,
    /// More bytes than are read.
    #[error("is larger than {} MiB after unpacking, more than is read", LARGEST >> 20)]
    TooLarge,
    /// Packed so tightly that it is taken for an attack: PyTorch's snapshots pack 10 to 20 times.
    #[error("unpacks to more than {ratio} times its size: no snapshot packs like that")]
    PackedTooTightly {
        /// The limit.
        ratio: usize,
    },
    /// Broken gzip data.
    #[error("is broken gzip data: {0}")]
    Gzip(String),
    /// Neither a pickle nor JSON.
    #[error(
        "is neither a pickle (protocol 2 to 5) nor JSON; torch.cuda.memory._dump_snapshot(FILE) writes one"
    )]
    NeitherForm,
    /// The pickle is refused.
    #[error("is refused as a pickle at byte {}: {}", .0.at, .0.problem)]
    Pickle(#[from] PickleError),
    /// The JSON does not parse.
    #[error("is broken JSON: {0}")]
    Json(String),
    /// The data is something else than a snapshot.
    #[error("holds no memory snapshot: {0}")]
    Shape(String),
}

/// A snapshot of the allocator of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// How it was written.
    pub form: Form,
    /// All segments, of all devices.
    pub segments: Vec<Segment>,
    /// The sites that blocks refer to.
    pub sites: Vec<Site>,
    /// `expandable_segments` of the allocator's settings, where recorded.
    pub expandable_segments: Option<bool>,
}

/// A piece of memory that the allocator got from the driver. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The device as PyTorch counts it in the process: `CUDA_VISIBLE_DEVICES` renumbers.
    pub device: u32,
    /// `small` (blocks up to 1 MiB) or `large`.
    pub size_class: SizeClass,
    /// Its pool. `None` in releases that don't record it.
    pub pool: Option<PoolId>,
    /// Whether it grows by mapping pages (`expandable_segments:True`).
    pub expandable: bool,
    /// All of it.
    pub total: i128,
    /// In tensors.
    pub allocated: i128,
    /// In tensors, or freed and still awaited by a stream.
    pub active: i128,
    /// What tensors asked for, before rounding. `None` in releases that don't record it.
    pub requested: Option<i128>,
    /// Its blocks in the order of addresses.
    pub blocks: Vec<Block>,
}

/// A block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its size in bytes.
    pub size: i128,
    /// Its state.
    pub state: BlockState,
    /// Who allocated it: an index into [`Snapshot::sites`]. `None` where no frames were recorded.
    pub site: Option<usize>,
}

/// The state of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// Handed out to a tensor.
    Allocated,
    /// Freed, but a stream may still use it.
    AwaitingFree,
    /// Free, kept by the allocator.
    Inactive,
}

/// The size class of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SizeClass {
    /// For blocks up to 1 MiB.
    Small,
    /// For larger ones.
    Large,
    /// A class that no release known here has.
    Other,
}

/// A pool's id as PyTorch prints it. `(0, 0)` is the ordinary pool; `(n, 0)` was made by a graph for itself; `(0, n)` by
/// `graph_pool_handle()` (what SGLang shares between its graphs) or by a `torch.cuda.MemPool`: the id does not tell which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub i64, pub i64);

impl PoolId {
    /// Whether it is the ordinary pool.
    pub const fn is_ordinary(self) -> bool {
        self.0 == 0 && self.1 == 0
    }
}

/// Where in a Python program memory was allocated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Site {
    /// The function.
    pub function: String,
    /// The file, from its package on.
    pub file: String,
    /// The line; `None` where it was not recorded.
    pub line: Option<u64>,
}

/// Reads a snapshot from a file's bytes: unpacks it, tells its form, and checks every claim that it makes.
///
/// Bytes of a pickle cost at most some 200 bytes of memory each, and never more than about 4 GiB in all; time is linear.
///
/// # Errors
/// Where the bytes are no snapshot, or more than plain data.
pub fn read(bytes: Vec<u8>) -> Result<Snapshot, SnapshotError> {
    let bytes = unpack::unpack(bytes)?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(SnapshotError::Empty),
        Some(_) if bytes.first() == Some(&pickle::PROTOCOL) => {
            let (tree, protocol) = pickle::read(bytes)?;
            extract::snapshot(&tree, Form::Pickle(protocol))
        }
        Some(b'{' | b'[') => extract::snapshot(&json::read(&bytes)?, Form::Json),
        Some(_) => Err(SnapshotError::NeitherForm),
    }
}

/// Whether a file that begins with these bytes is a pickle of a protocol that is read here, packed or not.
pub fn is_pickle(head: &[u8]) -> bool {
    matches!(unpack::first_bytes(head), [pickle::PROTOCOL, 2..=5])
}
