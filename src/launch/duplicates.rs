//! One line printed twice: a second log handler, or stdout and stderr both captured.
//!
//! The same event must not be posted twice, yet target and draft do print the same words in turn. A line is a
//! repeat when a nearby line says exactly the same with the same clock time, or stands directly behind it with
//! only the prefix changed.

use crate::event::{Event, Role};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many earlier events are compared: handlers repeat a line at once, buffers a few lines later.
const LOOKED_BACK: usize = 8;

/// Remembers the last few events of one source.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    recent: VecDeque<Arc<Event>>,
}

impl Repeats {
    /// The earlier event that this one repeats. Otherwise remembers it and gives `None`.
    pub(super) fn original_of(&mut self, event: &Arc<Event>) -> Option<Arc<Event>> {
        if matches!(event.role, Role::Progress(_)) {
            // Bars repeat by nature, and the ledger keeps each size once.
            return None;
        }
        let last = self.recent.len().saturating_sub(1);
        let found = self.recent.iter().enumerate().find_map(|(index, earlier)| {
            (says_the_same(earlier, event)
                && (same_print(earlier, event) || index == last && other_prefix(earlier, event)))
            .then(|| Arc::clone(earlier))
        });
        if found.is_none() {
            self.recent.push_back(Arc::clone(event));
            if self.recent.len() > LOOKED_BACK {
                self.recent.pop_front();
            }
        }
        found
    }
}

fn says_the_same(one: &Event, other: &Event) -> bool {
    one.text == other.text
        && one.role == other.role
        && one.place.line != other.place.line
        && one_writer(&one.stream, &other.stream)
}

/// Whether two envelopes can be of one writer: the same, or one of the copies came without any. Two pods of one
/// deployment print the same words at the same second, and both count.
fn one_writer(one: &str, other: &str) -> bool {
    one == other || one.is_empty() || other.is_empty()
}

/// The same clock time and rank: no rank says the same thing twice within a second, but for lines without any
/// figure (`Init torch distributed begin.`), which target and draft of a small model can.
fn same_print(one: &Event, other: &Event) -> bool {
    one.stamp.is_some()
        && one.stamp == other.stamp
        && one.rank == other.rank
        && has_figures(one)
        && !zero_claim(one)
}

/// Whether any field is memory: two equal prints of a changing figure are no coincidence.
fn has_figures(event: &Event) -> bool {
    event.fields.iter().any(|field| field.memory().is_some())
}

/// `mem usage=0.00 GB` without a level: target and draft print it alike.
fn zero_claim(event: &Event) -> bool {
    event.memory("avail mem").is_none()
        && event.fields.iter().filter_map(|field| field.memory()).all(|quantity| quantity.contains(0))
}

/// The next line with another form of prefix: one has a tag or a clock that the other lacks.
fn other_prefix(one: &Event, other: &Event) -> bool {
    let tags_agree = one.rank == other.rank || one.rank.text.is_empty() || other.rank.text.is_empty();
    let forms_differ = one.stamp.is_some() != other.stamp.is_some()
        || one.rank != other.rank
        || one.stream != other.stream
        || one.place.column != other.place.column;
    // Target and draft print lines without figures alike, but never in two forms.
    let sure = has_figures(one) || one.stamp.is_some() != other.stamp.is_some();
    tags_agree && forms_differ && sure
}
