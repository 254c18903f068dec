//! The JSON report, `vramledger.report/1`: the tool's face to other programs.
//!
//! These types *are* the format: the schema that `vramledger schema` prints is generated from them. Within version 1,
//! fields may be added, never renamed, retyped or dropped. They are separate from the analysis, so that the analysis can
//! change without breaking anybody. All memory is in MiB; absent knowledge is `null`, never 0.

mod budget;
mod build;
mod build_budget;
mod observed;
mod plan;
mod snapshot;

pub use budget::*;
pub use build::{observation as observation_report, probe_report, report};
pub use observed::*;
pub use plan::*;
pub use snapshot::{
    PoolReport, SNAPSHOT_SCHEMA_NAME, SiteReport, SnapshotDeviceReport, SnapshotFileReport, SnapshotReport,
    TotalsReport, snapshot_report, snapshot_schema,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of this format's version.
pub const SCHEMA_NAME: &str = "vramledger.report/1";

/// The name of the format that a probe prints.
pub const PROBE_SCHEMA_NAME: &str = "vramledger.probe/1";

/// An amount of memory in MiB: its midpoint and sound bounds. Signed where it is a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// The middle of the interval.
    pub mib: f64,
    /// No true value is below this.
    pub low_mib: f64,
    /// No true value is above this.
    pub high_mib: f64,
}

/// A position in a source; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The path as given, or `-` for standard input.
    pub source: String,
    /// The physical line.
    pub line: u64,
    /// The byte within the line.
    pub column: u64,
}

/// A whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Always `vramledger.report/1`.
    pub schema: String,
    /// Who made it.
    pub tool: Tool,
    /// The sources in the order given.
    pub sources: Vec<Source>,
    /// The launches in the order read.
    pub launches: Vec<LaunchReport>,
    /// What instruments said of devices.
    pub observations: Vec<ObservationReport>,
    /// Ledgers held against observations.
    pub reconciliations: Vec<ReconciliationReport>,
    /// Lines that look like memory and that no grammar knew.
    pub unrecognised: Vec<UnrecognisedReport>,
    /// What dumps could not say, and why.
    pub notes: Vec<NoteReport>,
    /// What was redacted; `null` where nothing was asked to be.
    pub redaction: Option<RedactionReport>,
}

/// What was redacted: values became pseudonyms such as `host-1`, the same value the same one in the whole report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedactionReport {
    /// How many different values of each kind were replaced, by the beginning of their pseudonyms: `secret`, `email`,
    /// `host`, `ip`, `mac`, `user`, `gpu`, `path` (model paths, of which the last part stays) and `redacted` (what
    /// `--redact-pattern` matched). Kinds without any are absent.
    pub kinds: BTreeMap<String, usize>,
}

/// The program that made a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// `vramledger`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The path as given, or `-`.
    pub name: String,
    /// `log`, `smi`, `mixed` or `unknown`.
    pub kind: String,
    /// Its size as read.
    pub bytes: u64,
    /// Its physical lines.
    pub lines: u64,
    /// How it was compressed.
    pub compression: Option<String>,
}

/// One start of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchReport {
    /// Its number in this report.
    pub index: usize,
    /// Where it was read.
    pub source: String,
    /// Which stream of that source, by envelope; empty without one.
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
    /// `ready`, `running` (ready and then served), `incomplete` or `failed`.
    pub outcome: String,
    /// The stage at which it failed.
    pub failed_stage: Option<String>,
    /// The release, where wording and arguments leave only one of those known.
    pub sglang_version: Option<String>,
    /// The releases left possible, first and last; the last known release stands for later ones too.
    pub sglang_version_range: [String; 2],
    /// The model.
    pub model: Option<Model>,
    /// The launcher's arguments as typed JSON.
    pub server_args: Option<serde_json::Map<String, serde_json::Value>>,
    /// Its ranks.
    pub ranks: Vec<RankReport>,
    /// SGLang's budget arithmetic redone.
    pub budget: Option<BudgetReport>,
    /// Findings, worst first.
    pub findings: Vec<FindingReport>,
}

/// The model of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Path or name, as the arguments have it.
    pub path: Option<String>,
    /// Class names, target first.
    pub classes: Vec<String>,
}

/// One rank and its books.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RankReport {
    /// As printed, single blanks; empty where lines carry none.
    pub tag: String,
    /// The parallel coordinates that the tag holds.
    pub coordinates: CoordinatesReport,
    /// The device as the instrument numbers it.
    pub device: Option<u32>,
    /// How the device is known: `smi-match`, `argument` or `option`.
    pub device_basis: Option<String>,
    /// The first free figure.
    pub opening: Option<Amount>,
    /// The last free figure of a stage line.
    pub closing: Option<Amount>,
    /// Stages and gaps in order.
    pub postings: Vec<PostingReport>,
    /// The proof: opening − Σ used = closing.
    pub balance: BalanceReport,
    /// `available_gpu_mem` of the summary line.
    pub headroom: Option<Amount>,
    /// Who holds the device's memory, for each moment that facts allow it for. May be empty.
    #[serde(default)]
    pub holders: Vec<HoldersReport>,
}

/// The memory of a rank's device by holder. The shares add up to the total within their bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldersReport {
    /// `failure` (the allocator's own sentence), `snapshot` or `dump`.
    pub moment: String,
    /// `device`: all that is in use on it; `since_first_figure`: what was used from the log's first free figure on.
    pub scope: String,
    /// What the shares add up to.
    pub total: Amount,
    /// The files that PyTorch's figures come from.
    pub sources: Vec<String>,
    /// The line that holds them, where one does.
    pub place: Option<Position>,
    /// One share a holder. Empty where the figures contradict each other.
    pub shares: Vec<ShareReport>,
    /// Parts of PyTorch's pools together, which explain and are not added.
    pub inside: Vec<InsideReport>,
    /// Why they do.
    pub conflict: Option<String>,
}

/// One holder's share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareReport {
    /// `torch_ordinary_pools`, `torch_private_pools`, `torch_pools` (both), `outside_torch`, `process` (PyTorch and outside
    /// it), `others` or `outside_torch_and_others`.
    pub holder: String,
    /// How much.
    pub amount: Amount,
    /// `measured`, `logged` or `derived`.
    pub basis: String,
}

/// A part of PyTorch's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsideReport {
    /// What it is.
    pub label: String,
    /// How much.
    pub amount: Amount,
}

/// Parallel coordinates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoordinatesReport {
    /// Data parallel.
    pub dp: Option<u32>,
    /// Tensor parallel.
    pub tp: Option<u32>,
    /// Pipeline parallel.
    pub pp: Option<u32>,
    /// Expert parallel.
    pub ep: Option<u32>,
    /// Attention context parallel.
    pub attn_cp: Option<u32>,
    /// MoE data parallel.
    pub moe_dp: Option<u32>,
    /// `gpu_id` of the oldest releases.
    pub gpu: Option<u32>,
}

/// One entry of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostingReport {
    /// `stage`, or `gap` for memory that moved between two stages.
    pub kind: String,
    /// The stage; for a gap, the stage that it comes before.
    pub stage: String,
    /// `target` or `draft`.
    pub worker: String,
    /// The log's own words.
    pub label: String,
    /// Free memory before.
    pub before: Option<Amount>,
    /// Free memory after.
    pub after: Option<Amount>,
    /// What it used; negative where memory was given back.
    pub used: Option<Amount>,
    /// The log's own usage figure.
    pub claimed: Option<Amount>,
    /// `complete`, `begun` (no end was printed) or `inferred` (its opening is the level before it).
    pub state: String,
    /// Whether it is part of the balance. A claim printed before the first free figure is not.
    pub in_balance: bool,
    /// Pools inside it.
    pub parts: Vec<PartReport>,
    /// Capture bars inside it.
    pub progress: Vec<ProgressReport>,
    /// Seconds it took, by the log.
    pub elapsed_s: Option<f64>,
    /// The figures it rests on.
    pub places: Vec<Position>,
}

/// One pool inside a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartReport {
    /// The log's name for it.
    pub label: String,
    /// Its size.
    pub size: Amount,
    /// Tokens it holds.
    pub tokens: Option<u64>,
}

/// One bar of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressReport {
    /// The size about to be captured.
    pub label: String,
    /// Free memory then, allocator cache not emptied.
    pub available: Amount,
}

/// Whether a ledger balances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BalanceReport {
    /// `null` where there are not two levels.
    pub holds: Option<bool>,
    /// Opening − Σ used − closing; contains 0 where it holds.
    pub residual: Option<Amount>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindingReport {
    /// Stable code.
    pub code: String,
    /// Stable name.
    pub name: String,
    /// `error`, `warning`, `info` or `ok`.
    pub severity: String,
    /// The rank's tag, where it is about one.
    pub rank: Option<String>,
    /// The stage, where it is about one.
    pub stage: Option<String>,
    /// What is the case.
    pub title: String,
    /// What it means.
    pub explanation: String,
    /// The sums.
    pub arithmetic: Vec<String>,
    /// What to do.
    pub advice: Vec<String>,
    /// The memory in question.
    pub amount: Option<Amount>,
    /// The figures it rests on.
    pub places: Vec<Position>,
}

/// The JSON Schema of [`Report`], as `vramledger schema` prints it.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}
