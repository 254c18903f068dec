//! What-if: the same launch with other flags, projected from what it measured.
//!
//! One engine for `vramledger plan` and for the advice of the rules, so that no advice says what a plan would refute.
//! What SGLang computes is computed as it does; what only a run could tell (graphs of other sizes, weights on other ranks)
//! is an interval, and said to be an estimate.

mod answer;
mod change;
mod divide;
mod facts;
mod graphs;
mod pool;
mod project;
mod solve;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Concurrency, answer, requests};
pub use change::{Change, FractionChoice, GraphChoice, KvChoice};
pub use facts::{Facts, GraphFacts};
pub use project::{Projection, project};
pub use solve::{Goal, guide_limit, solve};

use thiserror::Error;

/// Why a launch cannot be planned with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No fraction in the arguments.
    #[error("the log holds no server_args line with mem_fraction_static: there is nothing to start from")]
    NoFraction,
    /// No free memory before the weights or when the pool was sized.
    #[error("the log holds no `Load weight begin` and `end` figures: the budget's base is unknown")]
    NoFigures,
    /// No pool, so no bytes per token.
    #[error("the log sizes no KV pool, so the bytes per token are unknown: give --model-config config.json")]
    NoCell,
    /// The default fraction depends on the card.
    #[error(
        "the default mem_fraction_static depends on the card's size: give a nvidia-smi dump (--smi) or --gpu-mem, such as --gpu-mem 143771MiB"
    )]
    NoCard,
    /// A KV type that cannot be scaled.
    #[error("the bytes per token with kv_cache_dtype `{0}` are unknown here")]
    KvType(String),
    /// The pool was sized after capture.
    #[error(
        "the KV pool was sized after graph capture, from what was then free: mem_fraction_static decides only what stays free beside it, and a projection from this log would be a guess"
    )]
    PostCapture,
    /// The goal cannot be met.
    #[error("{0}")]
    OutOfReach(String),
}
