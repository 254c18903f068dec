//! The ledger of a rank: postings, gaps, and the proof that they balance.
//!
//! The driver's free memory is the bank statement; stages are postings on it. What moved between two stages without a
//! line of its own is a gap: a posting like any other, under its own name. Nothing here judges.

mod balance;
mod build;
mod fields;

pub use balance::Balance;
pub use build::build;

use crate::launch::Rank;
use crate::place::Place;
use crate::quantity::Quantity;
use crate::stage::{Stage, Worker};
use crate::time::Stamp;

/// What kind of entry a posting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PostingKind {
    /// A stage that the log names.
    Stage,
    /// Memory that moved between two stages.
    Gap,
}

/// How much of a stage the log shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PostingState {
    /// Both ends were printed, or one line told all of it.
    Complete,
    /// No end was printed.
    Begun,
    /// Its opening was taken from the line before: the log prints only its end.
    Inferred,
}

impl PostingState {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            PostingState::Complete => "complete",
            PostingState::Begun => "begun",
            PostingState::Inferred => "inferred",
        }
    }
}

/// A pool inside a stage, as its own line prints it.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The log's name for it: `K`, `V`, `KV`, `SWA K`, `conv_state`.
    pub label: String,
    /// Its size.
    pub size: Quantity,
    /// How many tokens it holds.
    pub tokens: Option<u64>,
    /// Where it stands.
    pub place: Place,
}

/// Free memory during a capture, as a bar prints it: before the named size is captured, allocator cache not emptied.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressPoint {
    /// `bs=32`, `num_tokens=4096`.
    pub label: String,
    /// Free memory of the device.
    pub available: Quantity,
}

/// One entry of a ledger. Amounts are memory that left the free figure: positive is used, negative was given back.
#[derive(Debug, Clone, PartialEq)]
pub struct Posting {
    /// Stage or gap.
    pub kind: PostingKind,
    /// The stage; for a gap, the stage that it comes before.
    pub stage: Stage,
    /// The model inside the rank.
    pub worker: Worker,
    /// The log's own words, or for a gap what it lies between.
    pub label: String,
    /// Free memory before.
    pub before: Option<Quantity>,
    /// Free memory after.
    pub after: Option<Quantity>,
    /// What it used: before − after, narrowed by the claim where both are printed and can both be true.
    pub used: Option<Quantity>,
    /// The log's own `mem usage`.
    pub claimed: Option<Quantity>,
    /// How much of it the log shows.
    pub state: PostingState,
    /// Pools inside it.
    pub parts: Vec<Part>,
    /// Capture bars inside it.
    pub progress: Vec<ProgressPoint>,
    /// Seconds that it took, as the log claims.
    pub elapsed_seconds: Option<f64>,
    /// When it began.
    pub began_at: Option<Stamp>,
    /// When it ended.
    pub ended_at: Option<Stamp>,
    /// The lines it rests on; the first memory figure of each.
    pub places: Vec<Place>,
    /// Whether it lies in the chain from opening to closing. A claim printed before the first level does not: what
    /// moved between the two is unknown.
    pub in_chain: bool,
}

impl Posting {
    /// Before − after, by the printed levels alone.
    pub fn difference(&self) -> Option<Quantity> {
        Some(self.before? - self.after?)
    }

    /// What is left of the stage beyond its named parts: padding, request tables, rounding of the allocator. `None`
    /// where it has no parts or no amount.
    pub fn beyond_parts(&self) -> Option<Quantity> {
        if self.parts.is_empty() {
            return None;
        }
        Some(self.used? - self.parts.iter().map(|part| part.size).sum())
    }
}

/// The books of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    /// The first free figure printed. What went before it is not in the ledger.
    pub opening: Option<Quantity>,
    /// Where the opening stands.
    pub opening_place: Option<Place>,
    /// Stages and gaps in order.
    pub postings: Vec<Posting>,
    /// The last free figure that a stage line printed, allocator cache emptied.
    pub closing: Option<Quantity>,
    /// Where the closing stands.
    pub closing_place: Option<Place>,
    /// Free memory at the summary line, allocator cache NOT emptied.
    pub headroom: Option<Quantity>,
    /// Where the headroom stands.
    pub headroom_place: Option<Place>,
    /// Whether opening − Σ used = closing.
    pub balance: Balance,
}

impl Ledger {
    /// The stages of this name, target and draft.
    pub fn stages(&self, stage: Stage) -> impl Iterator<Item = &Posting> {
        self.postings
            .iter()
            .filter(move |posting| posting.kind == PostingKind::Stage && posting.stage == stage)
    }

    /// The stage of this name of one worker.
    pub fn stage(&self, stage: Stage, worker: Worker) -> Option<&Posting> {
        self.stages(stage).find(|posting| posting.worker == worker)
    }

    /// The last known free memory of start-up: at the summary line, else at the last stage.
    pub fn final_free(&self) -> Option<Quantity> {
        self.headroom.or(self.closing)
    }

    /// Everything between opening and closing.
    pub fn total_used(&self) -> Option<Quantity> {
        Some(self.opening? - self.closing?)
    }

    /// What left the free figure between the last stage line and the summary line: cache that the allocator kept, and
    /// whatever was allocated in between. Nothing tells the two apart.
    pub fn kept_at_ready(&self) -> Option<Quantity> {
        Some(self.closing? - self.headroom?)
    }

    /// Whether a capture came behind the last printed level, so that what it took is in no line: releases up to 0.4.1 print
    /// no figure after graph capture.
    pub fn captured_unlogged(&self) -> bool {
        let last = self.postings.iter().rev().find(|posting| posting.kind == PostingKind::Stage);
        self.headroom.is_none()
            && last.is_some_and(|posting| {
                posting.stage.is_capture() && posting.before.is_none() && posting.after.is_none()
            })
    }

    /// A ledger in which nothing was printed.
    pub fn of(rank: &Rank) -> Ledger {
        build(rank)
    }
}
