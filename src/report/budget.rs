//! The budget in JSON: SGLang's arithmetic redone, term by term.

use super::{Amount, Position};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The budget of a launch. `mem_fraction_static` is a share of *pre*, the free memory before the weights, not of the card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetReport {
    /// `mem_fraction_static` as SGLang computes with it.
    pub fraction: Option<f64>,
    /// Where it stands.
    pub fraction_place: Option<Position>,
    /// The default that these arguments give; `null` where the card's size is unknown.
    pub default: Option<DefaultReport>,
    /// One entry a data-parallel replica; ranks of one world share one budget.
    pub worlds: Vec<WorldReport>,
}

/// SGLang's default fraction, derived again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultReport {
    /// The release whose rule was applied.
    pub version: String,
    /// The rule in words.
    pub rule: String,
    /// The card's size that it was applied to, in MiB.
    pub card_mib: u32,
    /// The fraction that it gives.
    pub fraction: f64,
    /// Whether the printed fraction is the same.
    pub equals_printed: Option<bool>,
    /// What the rule keeps free of weights and KV, by purpose.
    pub reserved: Vec<TermReport>,
}

/// An amount and what it is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TermReport {
    /// What for.
    pub label: String,
    /// How much.
    pub amount: Amount,
}

/// Fewest and most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountRange {
    /// No fewer than this.
    pub low: i64,
    /// No more than this.
    pub high: i64,
}

/// The budget of the ranks that share one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorldReport {
    /// Tags of its ranks.
    pub ranks: Vec<String>,
    /// Ranks that the arguments call for; another than those listed may be the poorest.
    pub expected_ranks: usize,
    /// Free memory before the weights, the least over the ranks. SGLang never prints it: an estimate.
    pub pre: Option<PreReport>,
    /// pre × fraction: for weights and KV.
    pub static_budget: Option<Amount>,
    /// pre × (1 − fraction): for graphs, activations and everything late.
    pub slack: Option<Amount>,
    /// Weights, on the rank with the least left.
    pub weights: Option<Amount>,
    /// Weights of the draft model, where the budget has to bear them (0.5.15 and later).
    pub draft_weights: Option<Amount>,
    /// Free memory when the KV pool was sized, the least over the ranks.
    pub available: Option<Amount>,
    /// Where it stands.
    pub available_place: Option<Position>,
    /// What is taken off before KV: state caches, multimodal buffers.
    pub reservations: Vec<TermReport>,
    /// available − slack − reservations: for KV. Negative where nothing is left.
    pub rest: Option<Amount>,
    /// Keys and values as printed.
    pub kv: Option<Amount>,
    /// Bytes of KV per token.
    pub cell: Option<CellReport>,
    /// The token count.
    pub tokens: Option<TokensReport>,
    /// Limits on running requests.
    pub requests: Option<RequestsReport>,
    /// The least fraction that leaves anything for KV, rounded up to thousandths.
    pub minimal_fraction: Option<FractionRange>,
    /// What the slack was used for, on the rank with the least left.
    pub slack_use: Option<SlackReport>,
    /// The rank that shrinks the others' pools.
    pub limited_by: Option<LimitReport>,
    /// What the model's config lets expect.
    pub expected: Option<ExpectedReport>,
    /// The pool's size after capture, where it was sized then; `tokens` is then what addresses were reserved for.
    pub post_capture: Option<PostCaptureReport>,
}

/// A pool sized after graph capture (0.5.18 and later).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostCaptureReport {
    /// Tokens that addresses were reserved for: no memory.
    pub reserved_tokens: Option<i64>,
    /// Tokens that memory was mapped for.
    pub tokens: i64,
    /// What the arithmetic gives.
    pub predicted: Option<CountRange>,
    /// Memory of the pool.
    pub kv: Option<Amount>,
    /// Free memory when it was sized.
    pub free: Option<Amount>,
    /// Whether activations were given room beyond the slack.
    pub eager_reserve: bool,
}

/// Pre, and how it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreReport {
    /// The narrowest interval known.
    pub amount: Amount,
    /// What the log's memory figures alone say.
    pub estimate: Amount,
    /// `printed` (by the check for unbalanced ranks) or `first-figure` (of `Load weight begin`, and an allowance).
    pub basis: String,
    /// The line.
    pub place: Option<Position>,
    /// The rank with the least.
    pub rank: String,
    /// What the printed token count implies, where nothing capped it.
    pub implied_by_tokens: Option<Amount>,
}

/// A range of fractions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FractionRange {
    /// No less than this.
    pub low: f64,
    /// No more than this.
    pub high: f64,
}

/// Bytes of KV per token, measured from the pool's printed size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellReport {
    /// No fewer bytes than this.
    pub low: i64,
    /// No more than this.
    pub high: i64,
    /// The one round number in between; a deduction.
    pub likely: Option<i64>,
}

/// The token count, predicted and printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokensReport {
    /// rest ÷ cell.
    pub divided: Option<CountRange>,
    /// After caps.
    pub predicted: Option<CountRange>,
    /// What changed the count after the division, in order.
    pub caps: Vec<CapReport>,
    /// What SGLang printed.
    pub printed: Option<i64>,
    /// Where.
    pub place: Option<Position>,
    /// `page_size`.
    pub page_size: i64,
    /// `--max-total-tokens`.
    pub user_cap: Option<i64>,
    /// `agrees`, `fewer` or `more`: the printed count against the predicted.
    pub verdict: Option<String>,
}

/// A step from the divided to the final count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapReport {
    /// What changed the count.
    pub label: String,
    /// The count after it, at the middle of the interval.
    pub tokens: i64,
}

/// Limits on running requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestsReport {
    /// The model's context length.
    pub context_length: u32,
    /// `max_running_requests` as printed.
    pub printed: Option<i64>,
    /// What the arithmetic gives; `null` for hybrid models.
    pub predicted: Option<CountRange>,
    /// Requests of full context length that the pool holds.
    pub at_full_context: i64,
}

/// What the slack was used for: available = kv + unspent + … on one rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlackReport {
    /// The rank's tag.
    pub rank: String,
    /// Of the static budget, what KV did not take; negative where the pool is larger than the budget.
    pub unspent: Option<Amount>,
    /// What the pool stage took beyond KV and reservations: request table, free lists, unused blocks.
    pub overhead: Option<Amount>,
    /// Stages and gaps after the pool.
    pub items: Vec<TermReport>,
    /// What left between the last stage and the summary line.
    pub kept_at_ready: Option<Amount>,
    /// What remains.
    pub remaining: Option<Amount>,
}

/// The rank that shrinks the others' pools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitReport {
    /// Its tag.
    pub rank: String,
    /// How much more KV each rank would have without it.
    pub cost: Amount,
    /// The same in tokens.
    pub tokens: Option<CountRange>,
    /// Whether it is a pipeline stage with more layers or weights, rather than a poorer card.
    pub between_stages: bool,
}

/// Expectation by the model's config, and measurement, on one rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedReport {
    /// The rank's tag.
    pub rank: String,
    /// Weights expected.
    pub weights: Option<Amount>,
    /// `checkpoint` (by the safetensors index) or `config`.
    pub weights_basis: String,
    /// Parts of the model that the config does not size.
    pub not_sized: Vec<String>,
    /// Weights measured.
    pub measured_weights: Option<Amount>,
    /// Bytes of KV per token expected in the target's pool.
    pub cell: Option<CountRange>,
    /// Bytes of KV per token measured there.
    pub measured_cell: Option<CellReport>,
}
