//! The fleet record, `vramledger.record/1`: one launch in a few hundred bytes, or a source that gave none.
//!
//! These types *are* the format, as those of the report are: within version 1, fields may be added, never renamed, retyped
//! or dropped. Records are what `audit` streams and what a reduce reads, so they hold everything that cohorts need.

use crate::report::{Amount, CoordinatesReport, Model, Position};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of this format's version.
pub const RECORD_SCHEMA_NAME: &str = "vramledger.record/1";

/// One launch of a fleet, or a source that holds none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Always `vramledger.record/1`.
    pub schema: String,
    /// Where it was read.
    pub source: RecordSource,
    /// The machine or pod that the log is of; `null` where neither path nor lines tell.
    pub host: Option<String>,
    /// How the host is known: `option`, `envelope`, `dump` or `path`.
    pub host_basis: Option<String>,
    /// What kept the source from being read whole. A launch before that point is still recorded.
    pub trouble: Option<Trouble>,
    /// The launch; `null` where the source gave none, and then `trouble` says why.
    pub launch: Option<LaunchRecord>,
}

/// Where a record comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordSource {
    /// The path as found; of a rotated series, its newest file; of an archive's member, `archive!member`.
    pub name: String,
    /// The files of a rotated series, oldest first; empty where it is one file.
    pub parts: Vec<String>,
    /// Dumps that were paired with it.
    pub dumps: Vec<String>,
    /// `gzip`, `zstd`, `xz` or `bzip2`; `null` where it is plain.
    pub compression: Option<String>,
    /// Bytes of text as read, unpacked.
    pub bytes: u64,
    /// Physical lines as read.
    pub lines: u64,
}

/// Why a source was not read, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// A stable word: `truncated`, `corrupt`, `permission`, `not_found`, `binary`, `empty`, `special_file`, `no_launch`,
    /// `too_large`, `changed` or `io`.
    pub kind: String,
    /// What happened, for people.
    pub message: String,
}

/// One launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchRecord {
    /// Its number among the launches of its source, from 0.
    pub index: usize,
    /// Which stream of the source, by envelope (pod, container); empty without one.
    pub stream: String,
    /// First physical line.
    pub first_line: u64,
    /// Last physical line.
    pub last_line: u64,
    /// First clock time, ISO 8601 without a zone.
    pub started_at: Option<String>,
    /// Last clock time.
    pub last_event_at: Option<String>,
    /// Seconds from the first line to the ready line.
    pub ready_after_s: Option<f64>,
    /// `ready`, `running`, `incomplete` or `failed`.
    pub outcome: String,
    /// The stage at which it failed.
    pub failed_stage: Option<String>,
    /// The release, where wording and arguments leave only one of those known.
    pub sglang_version: Option<String>,
    /// The releases left possible, first and last.
    pub sglang_version_range: [String; 2],
    /// The model.
    pub model: Option<Model>,
    /// The card, where a dump or the log names it.
    pub device: Option<DeviceRecord>,
    /// How the model is spread.
    pub parallelism: Parallelism,
    /// The launcher's arguments that decide about memory, those that were printed.
    pub args: BTreeMap<String, serde_json::Value>,
    /// Tokens in the KV pool, the smallest rank's.
    pub tokens: Option<u64>,
    /// Its ranks, by coordinates.
    pub ranks: Vec<RankRecord>,
    /// Free memory above the guide for this card, summed over the ranks that have more. 0 where none has; `null` where the log does
    /// not tell the headroom.
    pub spare: Option<Amount>,
    /// Tokens that the spare memory would hold, where every rank has some.
    pub spare_tokens: Option<u64>,
    /// Findings, worst first, without those that are in order (`ok`).
    pub findings: Vec<FindingRecord>,
}

/// The card of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceRecord {
    /// Its product name.
    pub name: Option<String>,
    /// Its memory as the instrument prints it.
    pub total: Option<Amount>,
}

/// Sizes of the parallel groups; 1 where the arguments say or default so, `null` where no arguments were printed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parallelism {
    /// Tensor parallel.
    pub tp: Option<u32>,
    /// Pipeline parallel.
    pub pp: Option<u32>,
    /// Data parallel.
    pub dp: Option<u32>,
    /// Expert parallel.
    pub ep: Option<u32>,
}

/// One rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankRecord {
    /// As printed; empty where lines carry none.
    pub tag: String,
    /// Its parallel coordinates.
    pub coordinates: CoordinatesReport,
    /// The device as the instrument numbers it.
    pub device: Option<u32>,
    /// The first free figure.
    pub opening: Option<Amount>,
    /// The last free figure of a stage line.
    pub closing: Option<Amount>,
    /// `available_gpu_mem` of the summary line.
    pub headroom: Option<Amount>,
    /// Whether the books balance; `null` where too few figures were printed.
    pub balances: Option<bool>,
    /// Stages and gaps in order, those with an amount.
    pub stages: Vec<StageRecord>,
}

/// What one stage or gap used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageRecord {
    /// `stage`, or `gap` for memory that moved before the stage.
    pub kind: String,
    /// The stage's name.
    pub stage: String,
    /// `target` or `draft`.
    pub worker: String,
    /// What it used; negative where memory was given back.
    pub used: Amount,
    /// Seconds it took, by the log.
    pub elapsed_s: Option<f64>,
    /// The figure it rests on.
    pub place: Option<Position>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindingRecord {
    /// Stable code.
    pub code: String,
    /// Stable name.
    pub name: String,
    /// `error`, `warning` or `info`.
    pub severity: String,
    /// The rank's tag, where it is about one.
    pub rank: Option<String>,
    /// The stage, where it is about one.
    pub stage: Option<String>,
    /// What is the case.
    pub title: String,
    /// The first piece of advice.
    pub advice: Option<String>,
    /// The memory in question.
    pub amount: Option<Amount>,
    /// The first figure it rests on.
    pub place: Option<Position>,
}

/// The JSON Schema of [`Record`].
pub fn record_schema() -> serde_json::Value {
    schemars::schema_for!(Record).to_value()
}
