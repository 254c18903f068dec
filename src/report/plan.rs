//! The answer to a what-if in JSON, `vramledger.plan/1`.

use super::budget::{CellReport, CountRange};
use super::build::amount;
use super::build_budget::{cell, count, range};
use super::{Amount, Tool};
use crate::analysis::LaunchAnalysis;
use crate::budget::plan::{Answer, Projection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of this format's version.
pub const PLAN_SCHEMA_NAME: &str = "vramledger.plan/1";

/// A launch under other flags, projected from what it measured. All memory in MiB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanReport {
    /// Always `vramledger.plan/1`.
    pub schema: String,
    /// Who made it.
    pub tool: Tool,
    /// Where the launch was read.
    pub source: String,
    /// Its number among those read, from 0.
    pub launch: usize,
    /// The flags to paste.
    pub flags: Vec<String>,
    /// As it was.
    pub before: TermsReport,
    /// As it would be.
    pub after: TermsReport,
    /// Requests at common context lengths.
    pub concurrency: Vec<ConcurrencyReport>,
    /// What to mind.
    pub risks: Vec<String>,
    /// What had to be assumed.
    pub assumptions: Vec<String>,
}

/// The terms of a launch on the rank with the least left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TermsReport {
    /// `mem_fraction_static`.
    pub fraction: f64,
    /// Whether SGLang chooses it by itself.
    pub fraction_is_default: bool,
    /// Free before the weights.
    pub pre: Amount,
    /// Weights.
    pub weights: Option<Amount>,
    /// Free when the pool is sized.
    pub available: Amount,
    /// pre × (1 − fraction).
    pub slack: Amount,
    /// For KV.
    pub rest: Amount,
    /// Bytes per token.
    pub cell: CellReport,
    /// Tokens, after caps.
    pub tokens: CountRange,
    /// KV memory.
    pub kv: Amount,
    /// The pool stage beyond KV.
    pub overhead: Option<Amount>,
    /// Decode graphs.
    pub decode_graphs: Option<Amount>,
    /// Prefill graphs.
    pub prefill_graphs: Option<Amount>,
    /// Everything else after the pool.
    pub other: Amount,
    /// What remains after start-up.
    pub remaining: Option<Amount>,
}

/// How many requests of one length run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcurrencyReport {
    /// Tokens of a request, prompt and output.
    pub context: i64,
    /// As it was.
    pub before: i64,
    /// As it would be, at least.
    pub after: i64,
}

/// The JSON of an answer.
pub fn plan(index: usize, launch: &LaunchAnalysis, answer: &Answer) -> PlanReport {
    PlanReport {
        schema: PLAN_SCHEMA_NAME.to_string(),
        tool: Tool {
            name: env!("CARGO_PKG_NAME").to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        },
        source: launch.launch.source.to_string(),
        launch: index,
        flags: answer.flags.clone(),
        before: terms(&answer.before),
        after: terms(&answer.after),
        concurrency: answer
            .concurrency
            .iter()
            .map(|one| ConcurrencyReport {
                context: count(one.length),
                before: count(one.before),
                after: count(one.after),
            })
            .collect(),
        risks: answer.risks.clone(),
        assumptions: answer.after.assumptions.clone(),
    }
}

fn terms(projection: &Projection) -> TermsReport {
    TermsReport {
        fraction: projection.fraction.to_f64(),
        fraction_is_default: projection.fraction_is_default,
        pre: amount(projection.baseline),
        weights: projection.weights.map(amount),
        available: amount(projection.available),
        slack: amount(projection.slack),
        rest: amount(projection.rest),
        cell: cell(projection.cell),
        tokens: range(projection.tokens),
        kv: amount(projection.kv),
        overhead: projection.overhead.map(amount),
        decode_graphs: projection.decode_graphs.map(amount),
        prefill_graphs: projection.prefill_graphs.map(amount),
        other: amount(projection.other),
        remaining: projection.remaining.map(amount),
    }
}
