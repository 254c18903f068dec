//! What instruments said, in the JSON report, and how ledgers compare with it.
//!
//! Separate from the launch's own types only for size: both are one format.

use super::{Amount, Position, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an instrument said of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservationReport {
    /// Where it was read.
    pub source: String,
    /// The line that holds its figures.
    pub place: Position,
    /// When it was taken.
    pub taken_at: Option<String>,
    /// `nvidia-smi`, `nvitop`, …
    pub instrument: String,
    /// The device as the instrument numbers it.
    pub device: Option<u32>,
    /// The MIG instance.
    pub mig: Option<MigReport>,
    /// GPU UUID.
    pub uuid: Option<String>,
    /// Product name.
    pub name: Option<String>,
    /// Memory of the card.
    pub total: Option<Amount>,
    /// In use.
    pub used: Option<Amount>,
    /// Free.
    pub free: Option<Amount>,
    /// Kept by the driver.
    pub reserved: Option<Amount>,
    /// Processes on it.
    pub processes: Vec<ProcessReport>,
    /// Whether a process list was part of the sample: tells "none" from "not asked".
    pub processes_listed: Option<bool>,
    /// The driver's version.
    pub driver: Option<String>,
    /// The CUDA version that the driver supports.
    pub cuda_version: Option<String>,
    /// PCI address.
    pub pci: Option<String>,
    /// The number that CUDA gives the device, where a probe told it.
    pub cuda_device: Option<u32>,
    /// What the probe's own CUDA context took while it asked: already taken out of `used`.
    pub own_context: Option<Amount>,
    /// What a probe could not ask, and what takes memory unseen.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// What `vramledger probe --format json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeReport {
    /// Always `vramledger.probe/1`.
    pub schema: String,
    /// Who made it.
    pub tool: Tool,
    /// When it was asked, in this machine's local time.
    pub taken_at: String,
    /// `CUDA_VISIBLE_DEVICES` as set.
    pub cuda_visible_devices: Option<String>,
    /// `NVIDIA_VISIBLE_DEVICES` as set.
    pub nvidia_visible_devices: Option<String>,
    /// One a device and instrument, as in a report.
    pub observations: Vec<ObservationReport>,
    /// What could not be asked, and why.
    pub notes: Vec<String>,
}

/// A MIG instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MigReport {
    /// GPU instance.
    pub gi: Option<u32>,
    /// Compute instance.
    pub ci: Option<u32>,
    /// MIG device.
    pub dev: Option<u32>,
}

/// A process on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessReport {
    /// Its id, where shown.
    pub pid: Option<u64>,
    /// Its name as printed.
    pub name: String,
    /// `C`, `G`, …
    pub kind: Option<String>,
    /// Its memory.
    pub used: Option<Amount>,
}

/// A ledger held against an observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReconciliationReport {
    /// The launch.
    pub launch: usize,
    /// The rank's tag.
    pub rank: String,
    /// The observation.
    pub observation: usize,
    /// The rows from the card's total to the instrument's used figure.
    pub bridge: Vec<BridgeReport>,
    /// Used by the instrument − used by the log.
    pub unexplained: Amount,
    /// Whether the bridge closes (within 64 MiB).
    pub holds: bool,
    /// Why no verdict was possible, where none was; `holds` is then false.
    pub cannot_tell: Option<String>,
    /// Seconds from the ready line to the sample.
    pub seconds_apart: Option<f64>,
}

/// One row of a bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BridgeReport {
    /// The row in words.
    pub label: String,
    /// How much.
    pub amount: Amount,
    /// `measured`, `logged` or `derived`.
    pub basis: String,
}

/// A line that no grammar knew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnrecognisedReport {
    /// Where it stands.
    pub place: Position,
    /// What it says.
    pub text: String,
}

/// What a dump could not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteReport {
    /// Where.
    pub place: Position,
    /// What and why.
    pub text: String,
}
