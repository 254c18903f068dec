//! From free memory to KV tokens: what is left under the fraction, divided by the cell, then capped and rounded.
//!
//! Two readings of one formula. [`rest_gib`] and [`tokens`] compute as SGLang does, float for float, and agree to the token
//! where the inputs are known exactly. [`Budget`] carries intervals, because a log prints two decimals.

use super::python::{floor_divide, truncate};
use crate::quantity::{Decimal, GIB, LARGEST, Quantity};
use crate::version::Version;

/// GiB left for KV: `free - baseline × (1 - fraction) - extras`, all in GiB.
///
/// `free` is the free memory when the pool is sized, after weights; `baseline` that at the end of distributed
/// initialisation, before weights: the fraction is one of what was free then, not of the card. Negative where nothing is left.
pub fn rest_gib(free: f64, baseline: f64, fraction: f64, extras: f64) -> f64 {
    free - baseline * (1.0 - fraction) - extras
}

/// The least of several ranks' readings, in GiB. With more than one rank it passes through a 32-bit tensor.
pub fn least_over_ranks(gib: &[f64]) -> Option<f64> {
    let least = gib.iter().copied().reduce(f64::min)?;
    Some(if gib.len() > 1 { f64::from(least as f32) } else { least })
}

/// The tokens that `rest` GiB hold at `cell` bytes each, before caps. Negative where nothing is left; `None` for a cell
/// below one byte.
///
/// Up to 0.5.6 the floor of a float division; from 0.5.8 truncated to bytes first (`profile_max_num_token`).
pub fn tokens(version: Version, rest_gib: f64, cell: i128) -> Option<i128> {
    if cell < 1 {
        return None;
    }
    let bytes = rest_gib * GIB as f64;
    if version >= Version::new(5, 8) {
        Some(truncate(bytes)?.div_euclid(cell))
    } else {
        truncate(floor_divide(bytes, cell as f64))
    }
}

/// The inputs of the KV budget as far as a log tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Free memory when the pool is sized, the least over the ranks.
    pub free: Quantity,
    /// Free memory at the end of distributed initialisation, the least over the ranks.
    pub baseline: Quantity,
    /// `mem_fraction_static`, as printed: exact.
    pub fraction: Decimal,
    /// Reservations taken off first: multimodal buffers, state caches.
    pub extras: Quantity,
    /// Whether there is more than one rank: the least then passes through a 32-bit float.
    pub several_ranks: bool,
}

impl Budget {
    /// The slack: `baseline × (1 - fraction)`, which graphs, activations and everything late must share.
    pub fn slack(&self) -> Option<Quantity> {
        let (numerator, denominator) = self.fraction.to_fraction()?;
        self.baseline_as_sent().scale(denominator.checked_sub(numerator)?, denominator)
    }

    /// The static budget: `baseline × fraction`, for weights and KV.
    pub fn static_budget(&self) -> Option<Quantity> {
        let (numerator, denominator) = self.fraction.to_fraction()?;
        self.baseline_as_sent().scale(numerator, denominator)
    }

    /// What is left for KV. Bounds are rounded outward by a byte for the floats in between. Negative where nothing is.
    pub fn rest(&self) -> Option<Quantity> {
        let rest = as_sent(self.free, self.several_ranks) - self.slack()? - self.extras;
        Some(Quantity::between(rest.low() - 1, rest.high() + 1))
    }

    /// The fewest and most tokens that this can come out as, before caps. `None` for a cell below one byte.
    pub fn tokens(&self, cell: i128) -> Option<(i128, i128)> {
        let rest = self.rest()?;
        (cell >= 1).then(|| (rest.low().div_euclid(cell), rest.high().div_euclid(cell)))
    }

    /// The baseline that a printed count of uncapped tokens proves, whatever `self.baseline` says: SGLang never prints the
    /// baseline, and what a log prints later is smaller. `None` for a fraction of 1 or more.
    pub fn baseline_from_tokens(&self, tokens: i128, cell: i128) -> Option<Quantity> {
        let (numerator, denominator) = self.fraction.to_fraction()?;
        let bytes = |tokens: i128| tokens.checked_mul(cell).filter(|bytes| bytes.abs() <= LARGEST);
        let pool = Quantity::between(bytes(tokens)?, bytes(tokens.checked_add(1)?)? - 1);
        (as_sent(self.free, self.several_ranks) - self.extras - pool)
            .scale(denominator, denominator.checked_sub(numerator)?)
    }

    fn baseline_as_sent(&self) -> Quantity {
        as_sent(self.baseline, self.several_ranks)
    }
}

/// A reading after its way through a 32-bit float, which keeps 24 binary digits.
fn as_sent(reading: Quantity, several_ranks: bool) -> Quantity {
    if !several_ranks {
        return reading;
    }
    let error = |bytes: i128| (bytes.abs() >> 24) + 1;
    Quantity::between(reading.low() - error(reading.low()), reading.high() + error(reading.high()))
}

/// What bounds the token count after the division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// `--max-total-tokens`.
    pub max_total_tokens: Option<i128>,
    /// `page_size`; 1 for none.
    pub page_size: i128,
    /// The least count over the pipeline stages, where there are several.
    pub pipeline_minimum: Option<i128>,
    /// Tokens that speculative decoding adds (0.4.1 to 0.5.6): see [`speculative_headroom`].
    pub speculative_headroom: i128,
}

impl Caps {
    /// No caps.
    pub const NONE: Caps =
        Caps { max_total_tokens: None, page_size: 1, pipeline_minimum: None, speculative_headroom: 0 };
}

/// One step from the divided to the final token count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapStep {
    /// What changed the count.
    pub label: &'static str,
    /// The count after it.
    pub tokens: i128,
}

const HEADROOM: &str = "headroom of speculative decoding";
const USER_CAP: &str = "--max-total-tokens";
/// The label of the step down to whole pages.
pub const PAGES: &str = "whole pages";
const STAGES: &str = "least over the pipeline stages";

/// The steps that change a token count, in the release's order; the last is final, and none means that the divided
/// count stands. Windowed models are split after these ([`super::sliding_window`]).
pub fn capped(version: Version, tokens: i128, caps: &Caps) -> Vec<CapStep> {
    let page = caps.page_size.max(1);
    let pages = |tokens: i128| tokens.div_euclid(page) * page;
    let user = |tokens: i128| caps.max_total_tokens.map_or(tokens, |cap| tokens.min(cap));
    let stages = |tokens: i128| caps.pipeline_minimum.map_or(tokens, |least| tokens.min(least));
    let mut count = Count { tokens, steps: Vec::new() };
    if version >= Version::new(5, 12) {
        count.becomes(PAGES, pages);
        let before = count.tokens;
        count.becomes(USER_CAP, user);
        count.becomes(STAGES, stages);
        if count.tokens != before {
            count.becomes(PAGES, pages);
        }
        return count.steps;
    }
    if version >= Version::new(4, 1) && version < Version::new(5, 8) {
        count.becomes(HEADROOM, |tokens| tokens.saturating_add(caps.speculative_headroom));
    }
    if version >= Version::new(2, 15) {
        count.becomes(USER_CAP, user);
    }
    if version >= Version::new(4, 6) {
        count.becomes(PAGES, pages);
    }
    if version >= Version::new(5, 3) {
        count.becomes(STAGES, stages);
    }
    count.steps
}

struct Count {
    tokens: i128,
    steps: Vec<CapStep>,
}

impl Count {
    fn becomes(&mut self, label: &'static str, rule: impl Fn(i128) -> i128) {
        let tokens = rule(self.tokens);
        if tokens != self.tokens {
            self.tokens = tokens;
            self.steps.push(CapStep { label, tokens });
        }
    }
}

/// Tokens that EAGLE (to 0.4.10 any algorithm, later STANDALONE too) adds to both pools from 0.4.1 to 0.5.6, beyond the
/// budget: for each request slot the tree it drafts, and 100. 0 in other releases.
pub fn speculative_headroom(
    version: Version,
    requests: i128,
    steps: i128,
    top_k: i128,
    draft_tokens: i128,
) -> i128 {
    if version < Version::new(4, 1) || version >= Version::new(5, 8) {
        return 0;
    }
    let drafted = requests.saturating_mul(steps).saturating_mul(top_k);
    drafted.saturating_add(requests.saturating_mul(draft_tokens)).saturating_add(100)
}

#[cfg(test)]
mod tests;
