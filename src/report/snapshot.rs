//! The JSON form of `vramledger snapshot`: `vramledger.snapshot/1`.
//!
//! PyTorch's figures are exact, so they are bytes here, not intervals of MiB.

use super::Tool;
use crate::quantity::Quantity;
use crate::snapshot::{DeviceSummary, Form, Pool, PoolSummary, SiteSummary, SizeClass, Totals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of this format's version.
pub const SNAPSHOT_SCHEMA_NAME: &str = "vramledger.snapshot/1";

/// Snapshots summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotReport {
    /// Always `vramledger.snapshot/1`.
    pub schema: String,
    /// Who made it.
    pub tool: Tool,
    /// The files in the order given.
    pub files: Vec<SnapshotFileReport>,
}

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFileReport {
    /// The path as given, or `-`.
    pub source: String,
    /// `pickle` or `json`.
    pub form: String,
    /// The pickle's protocol.
    pub protocol: Option<u8>,
    /// Its devices.
    pub devices: Vec<SnapshotDeviceReport>,
}

/// One device of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotDeviceReport {
    /// The device as PyTorch counts it in the process.
    pub device: u32,
    /// Sums over all pools.
    pub totals: TotalsReport,
    /// Sums by pool; they add up to the totals.
    pub pools: Vec<PoolReport>,
    /// What each place in the program holds, the largest first. Empty where no frames were recorded.
    pub sites: Vec<SiteReport>,
    /// Segments whose sums are not those of their blocks: 0 in an honest snapshot.
    pub inconsistent_segments: usize,
}

/// Sums over segments, in bytes. All are parts of `reserved_bytes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TotalsReport {
    /// Segments.
    pub segments: usize,
    /// Got from the driver.
    pub reserved_bytes: u64,
    /// In tensors.
    pub allocated_bytes: u64,
    /// In tensors, or freed and still awaited by a stream.
    pub active_bytes: u64,
    /// Free, and kept.
    pub inactive_bytes: u64,
    /// The part of it in segments that are partly in use; as PyTorch counts, without expandable ones.
    pub inactive_split_bytes: u64,
    /// The part of it that `empty_cache()` returns: segments that are free as a whole.
    pub releasable_bytes: u64,
    /// The largest free block.
    pub largest_free_bytes: Option<u64>,
    /// The share of free memory outside the largest free block, 0 to 1.
    pub fragmentation: Option<f64>,
    /// What tensors asked for, before rounding.
    pub requested_bytes: Option<u64>,
}

/// One pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolReport {
    /// `ordinary`, `private` (of CUDA graphs or a `torch.cuda.MemPool`) or `unrecorded`.
    pub kind: String,
    /// A private pool's id.
    pub id: Option<[i64; 2]>,
    /// The size class of an ordinary pool: `small`, `large` or `other`.
    pub size_class: Option<String>,
    /// Whether an ordinary pool's segments are expandable.
    pub expandable: Option<bool>,
    /// Its sums.
    pub totals: TotalsReport,
}

/// What a place in the program holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteReport {
    /// The function; `null` for blocks without frames, which are one entry.
    pub function: Option<String>,
    /// The file, from its package on.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u64>,
    /// Blocks.
    pub blocks: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

/// The report of snapshots: each with its name, form and sums.
pub fn snapshot_report<'s>(
    files: impl IntoIterator<Item = (&'s str, Form, &'s [DeviceSummary])>,
) -> SnapshotReport {
    let file = |(source, form, devices): (&str, Form, &[DeviceSummary])| SnapshotFileReport {
        source: source.to_string(),
        form: form.name().to_string(),
        protocol: match form {
            Form::Pickle(protocol) => Some(protocol),
            Form::Json => None,
        },
        devices: devices.iter().map(device).collect(),
    };
    SnapshotReport {
        schema: SNAPSHOT_SCHEMA_NAME.to_string(),
        tool: Tool {
            name: env!("CARGO_PKG_NAME").to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        },
        files: files.into_iter().map(file).collect(),
    }
}

/// Exact figures; the reader allows none that is negative or beyond 2^56 a segment.
fn bytes(quantity: Quantity) -> u64 {
    u64::try_from(quantity.low()).unwrap_or_default()
}

fn device(device: &DeviceSummary) -> SnapshotDeviceReport {
    SnapshotDeviceReport {
        device: device.device,
        totals: totals(&device.totals),
        pools: device.pools.iter().map(pool).collect(),
        sites: device.sites.iter().map(site).collect(),
        inconsistent_segments: device.inconsistent,
    }
}

fn totals(totals: &Totals) -> TotalsReport {
    TotalsReport {
        segments: totals.segments,
        reserved_bytes: bytes(totals.reserved),
        allocated_bytes: bytes(totals.allocated),
        active_bytes: bytes(totals.active),
        inactive_bytes: bytes(totals.inactive),
        inactive_split_bytes: bytes(totals.inactive_split),
        releasable_bytes: bytes(totals.releasable),
        largest_free_bytes: totals.largest_free.map(bytes),
        fragmentation: totals.fragmentation(),
        requested_bytes: totals.requested.map(bytes),
    }
}

fn pool(pool: &PoolSummary) -> PoolReport {
    let (kind, id, class, expandable) = match pool.pool {
        Pool::Ordinary { class, expandable } => ("ordinary", None, Some(class), Some(expandable)),
        Pool::Private(id) => ("private", Some([id.0, id.1]), None, None),
        Pool::Unrecorded => ("unrecorded", None, None, None),
    };
    PoolReport {
        kind: kind.to_string(),
        id,
        size_class: class.map(|class| class_name(class).to_string()),
        expandable,
        totals: totals(&pool.totals),
    }
}

const fn class_name(class: SizeClass) -> &'static str {
    match class {
        SizeClass::Small => "small",
        SizeClass::Large => "large",
        SizeClass::Other => "other",
    }
}

fn site(one: &SiteSummary) -> SiteReport {
    SiteReport {
        function: one.site.as_ref().map(|site| site.function.clone()),
        file: one.site.as_ref().map(|site| site.file.clone()),
        line: one.site.as_ref().and_then(|site| site.line),
        blocks: one.blocks,
        bytes: bytes(one.held),
    }
}

/// The JSON Schema of [`SnapshotReport`], as `vramledger schema snapshot` prints it.
pub fn snapshot_schema() -> serde_json::Value {
    schemars::schema_for!(SnapshotReport).to_value()
}
