//! Collects a source's events and sorts them into launches once all are known.
//!
//! Streams (pods, services, ray actors) are separate servers unless their rank tags complement each other; that can
//! only be told at the end, so events are kept until then, at most [`MOST_EVENTS`] of them.

use super::Launch;
use super::duplicates::Repeats;
use super::sorter::Sorter;
use crate::event::{Event, Role};
use crate::server_args::ServerArgs;
use crate::stage::Coordinates;
use std::collections::HashMap;
use std::sync::Arc;

/// Events kept of one source. A start-up has some dozens a rank, so this holds hundreds of starts of a large server,
/// and bounds memory for a log that was made to exhaust it.
pub const MOST_EVENTS: usize = 20_000;

/// Launches kept of one source: a report of more starts helps nobody, and each costs its findings.
const MOST_LAUNCHES: usize = 1000;

/// Collects events of one source.
#[derive(Debug)]
pub struct LaunchBuilder {
    source: Arc<str>,
    items: Vec<Item>,
    repeats: Repeats,
    left_out: u64,
}

/// Something that happened, in the order of the source.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) stream: Arc<str>,
    pub(super) line: u64,
    pub(super) kind: ItemKind,
}

/// What happened.
#[derive(Debug, Clone)]
pub(super) enum ItemKind {
    /// A line.
    Event(Arc<Event>),
    /// A `server_args=` line with its typed arguments.
    Arguments(Arc<Event>, Arc<ServerArgs>),
    /// The same line as an earlier one.
    Repeat { event: Arc<Event>, original: Arc<Event> },
    /// Requests were served from here on.
    Served,
    /// So many lines of traffic in a row (retractions): counted, not kept.
    Traffic(u64),
}

impl LaunchBuilder {
    /// A builder for the events of `source`.
    pub fn new(source: Arc<str>) -> Self {
        LaunchBuilder { source, items: Vec::new(), repeats: Repeats::default(), left_out: 0 }
    }

    /// Takes the next event, with the typed arguments where it is a `server_args=` line.
    pub fn push(&mut self, event: Event, arguments: Option<Arc<ServerArgs>>) {
        if event.role == Role::Traffic {
            return self.traffic(&event.stream, event.place.line);
        }
        if self.items.len() >= MOST_EVENTS {
            self.left_out += 1;
            return;
        }
        if self.is_known_progress(&event) {
            return;
        }
        let event = Arc::new(event);
        let (stream, line) = (Arc::clone(&event.stream), event.place.line);
        // Repeats are looked for across streams: one of the copies may carry no envelope.
        let kind = match (self.repeats.original_of(&event), arguments) {
            (Some(original), _) => ItemKind::Repeat { event, original },
            (None, Some(arguments)) => ItemKind::Arguments(event, arguments),
            (None, None) => ItemKind::Event(event),
        };
        self.items.push(Item { stream, line, kind });
    }

    /// Takes note that a request was served at this line.
    pub fn served(&mut self, stream: &Arc<str>, line: u64) {
        let already = self.items.last().is_some_and(|item| matches!(item.kind, ItemKind::Served));
        if !already && self.items.len() < MOST_EVENTS {
            self.items.push(Item { stream: Arc::clone(stream), line, kind: ItemKind::Served });
        }
    }

    /// Takes note of a line of traffic: a busy server prints millions.
    pub fn traffic(&mut self, stream: &Arc<str>, line: u64) {
        if let Some(Item { stream: last, kind: ItemKind::Traffic(count), .. }) = self.items.last_mut()
            && last == stream
        {
            *count += 1;
        } else if self.items.len() < MOST_EVENTS {
            self.items.push(Item { stream: Arc::clone(stream), line, kind: ItemKind::Traffic(1) });
        } else {
            self.left_out += 1;
        }
    }

    /// How many events were left out for memory's sake.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Bars print each size several times: only the first print of a run counts.
    fn is_known_progress(&self, event: &Event) -> bool {
        let same_values = |known: &Event| {
            known.fields.len() == event.fields.len()
                && known
                    .fields
                    .iter()
                    .zip(&event.fields)
                    .all(|(one, other)| one.name == other.name && one.value == other.value)
        };
        matches!(event.role, Role::Progress(_))
            && self.items.iter().rev().take(4).any(|item| match &item.kind {
                ItemKind::Event(known) => {
                    known.role == event.role && known.stream == event.stream && same_values(known)
                }
                _ => false,
            })
    }

    /// Sorts everything into launches, in the order they began.
    pub fn finish(self) -> Vec<Launch> {
        let mut groups: Vec<Sorter> = Vec::new();
        let group_of = group_streams(&self.items);
        for item in &self.items {
            let group = group_of.get(&item.stream).copied().unwrap_or(0);
            while groups.len() <= group {
                groups.push(Sorter::new(Arc::clone(&self.source)));
            }
            if let Some(sorter) = groups.get_mut(group) {
                sorter.take(item);
            }
        }
        let mut launches: Vec<Launch> = groups.into_iter().flat_map(Sorter::finish).collect();
        launches.sort_by_key(|launch| launch.first_line);
        let over = launches.split_off(launches.len().min(MOST_LAUNCHES));
        let left_out = self.left_out + over.len() as u64;
        if let Some(last) = launches.last_mut() {
            last.left_out = left_out;
        }
        launches
    }
}

/// Gives each stream the number of its group. Streams form one server when at most one of them holds arguments and no
/// rank tag occurs in two of them; otherwise each is a server of its own, and streams without any rank line join the
/// first.
fn group_streams(items: &[Item]) -> HashMap<Arc<str>, usize> {
    let mut order: Vec<Arc<str>> = Vec::new();
    let mut arguments: HashMap<Arc<str>, usize> = HashMap::new();
    let mut owners: HashMap<Coordinates, Arc<str>> = HashMap::new();
    let mut one_server = true;
    for item in items {
        let stream = &item.stream;
        if !order.contains(stream) {
            order.push(Arc::clone(stream));
        }
        match &item.kind {
            ItemKind::Arguments(..) => *arguments.entry(Arc::clone(stream)).or_default() += 1,
            ItemKind::Event(event) if is_rank_line(event) => {
                let owner = owners.entry(event.rank.coordinates).or_insert_with(|| Arc::clone(stream));
                one_server &= owner == stream;
            }
            _ => {}
        }
    }
    one_server &= arguments.len() <= 1;
    order
        .into_iter()
        .enumerate()
        .map(|(index, stream)| (stream, if one_server { 0 } else { index }))
        .collect()
}

/// Whether a rank printed the line: stages, pools and summaries are theirs, arguments and ready the launcher's.
fn is_rank_line(event: &Event) -> bool {
    matches!(event.role, Role::Stage(..) | Role::Pool(_) | Role::Summary)
}
