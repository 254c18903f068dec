//! Events to launches and ranks: which lines belong to one start of one server.
//!
//! One file may hold several starts (a restart, a crash loop, two servers side by side) and a start may be spread
//! over several streams. This module only sorts events; what they add up to is the ledger's business.

mod assign;
mod builder;
mod duplicates;
mod expect;
mod identity;
mod outcome;
mod sorter;
#[cfg(test)]
mod tests;

pub use builder::{LaunchBuilder, MOST_EVENTS};
pub use expect::{Expectation, expectation};
pub use identity::Identity;

use crate::event::{Event, Role};
use crate::place::Place;
use crate::server_args::ServerArgs;
use crate::stage::{Coordinates, RankTag, Stage, Worker};
use crate::time::Stamp;
use crate::version::VersionRange;
use std::sync::Arc;

/// How a launch ended, as far as the log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The server said that it takes requests; nothing was served within the log.
    Ready,
    /// Ready, and then requests were served.
    Running,
    /// The log ends, or the next launch begins, before ready, without a failure.
    Incomplete,
    /// A failure ended it, before or after ready.
    Failed,
}

impl Outcome {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Ready => "ready",
            Outcome::Running => "running",
            Outcome::Incomplete => "incomplete",
            Outcome::Failed => "failed",
        }
    }
}

/// One event of a rank, with the worker that order gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct RankEvent {
    /// The line.
    pub event: Arc<Event>,
    /// The model it belongs to.
    pub worker: Worker,
    /// Other places where a second handler printed the same line.
    pub repeated_at: Vec<Place>,
}

/// One rank of a launch: its lines in printed order.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank {
    /// Its tag.
    pub tag: RankTag,
    /// Its lines.
    pub events: Vec<RankEvent>,
    /// Its process and its card, where the log names them.
    pub identity: Option<Identity>,
}

impl Rank {
    /// The last line of this rank: what it said before the log, or it, ended.
    pub fn last_event(&self) -> Option<&RankEvent> {
        self.events.last()
    }
}

/// One start of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The source it was read from.
    pub source: Arc<str>,
    /// The stream of that source, by envelope; empty without one.
    pub stream: Arc<str>,
    /// First physical line that belongs to it.
    pub first_line: u64,
    /// Last physical line that belongs to it.
    pub last_line: u64,
    /// The first clock time printed.
    pub started_at: Option<Stamp>,
    /// The last clock time printed.
    pub last_event_at: Option<Stamp>,
    /// When the ready line was printed.
    pub ready: Option<Arc<Event>>,
    /// The launcher's arguments and where they stand.
    pub arguments: Option<(Arc<ServerArgs>, Place)>,
    /// The releases that its wording and its arguments leave possible.
    pub versions: VersionRange,
    /// Its ranks, ordered by coordinates.
    pub ranks: Vec<Rank>,
    /// Explanatory lines of the launcher and of ranks.
    pub notes: Vec<Arc<Event>>,
    /// Failure lines in printed order.
    pub failures: Vec<Arc<Event>>,
    /// How many traffic lines (retractions) were printed after ready.
    pub retractions: u64,
    /// How many more lines were left out to bound memory (see [`MOST_EVENTS`]).
    pub left_out: u64,
    /// Whether requests were served within the log.
    pub served: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// The stage at which it failed.
    pub failed_stage: Option<Stage>,
    /// The failure that ended it.
    pub cause: Option<Arc<Event>>,
}

impl Launch {
    /// The rank with these coordinates.
    pub fn rank(&self, coordinates: &Coordinates) -> Option<&Rank> {
        self.ranks.iter().find(|rank| rank.tag.coordinates == *coordinates)
    }

    /// The argument line's values, where one was printed.
    pub fn args(&self) -> Option<&ServerArgs> {
        self.arguments.as_ref().map(|(arguments, _)| arguments.as_ref())
    }

    /// Class names of the models, target first, as `Load weight end` prints them.
    pub fn model_classes(&self) -> Vec<String> {
        let mut classes: Vec<String> = Vec::new();
        for event in self.ranks.iter().flat_map(|rank| &rank.events) {
            if let (Role::Stage(Stage::Weights, ..), Some(field)) =
                (event.event.role, event.event.field("type"))
                && let crate::event::Value::Word(class) = &field.value
                && !classes.contains(class)
            {
                classes.push(class.clone());
            }
        }
        classes
    }
}
