//! What SGLang chooses when the user does not: `mem_fraction_static`, `chunked_prefill_size`, `cuda_graph_max_bs`.
//!
//! The rules changed a dozen times. Each is data (`rules`), applied by a few functions (`reserve`), so that the report can
//! name the rule and say what it reserved for what.

mod arguments;
mod reserve;
mod rules;
mod settings;
mod sizes;
mod vision;

pub(super) use reserve::activation_tokens;
pub use reserve::default_fraction;
pub use settings::{Disaggregation, Settings, Speculation, Vision};
pub use sizes::{default_chunked_prefill_size, default_graph_max_batch, prefill_graph_sizes};
pub use vision::vision_factor;

use crate::quantity::{Decimal, Quantity};

/// A default `mem_fraction_static`, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultFraction {
    /// The fraction that the KV budget is computed with, as the Python float that SGLang holds.
    pub fraction: f64,
    /// The fraction that the `server_args=` line shows: up to 0.5.3 the model runner multiplies it afterwards
    /// (multimodal models, AITER with long contexts), and the line keeps the value before.
    pub printed: f64,
    /// What the rule keeps out of the static budget, of the whole card. `None` where the card's capacity is unknown.
    pub reserved: Option<Quantity>,
    /// What the reservation is made of; the amounts add up to it, up to the rounding of the fraction to three decimals.
    pub terms: Vec<Term>,
    /// Factors applied after rounding.
    pub factors: Vec<Factor>,
    /// The rule, in words.
    pub rule: &'static str,
}

impl DefaultFraction {
    /// The fraction as Python would print it (shortest form that reads back the same).
    pub fn decimal(&self) -> Option<Decimal> {
        Decimal::parse(&self.fraction.to_string())
    }
}

/// One part of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// What it is for.
    pub label: &'static str,
    /// How much memory.
    pub amount: Quantity,
}

/// A factor that lowers a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// What it is for.
    pub label: &'static str,
    /// The factor itself.
    pub factor: f64,
}

#[cfg(test)]
mod golden;
