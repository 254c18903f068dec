//! Gives each event of one server's streams to the launch and rank it belongs to.
//!
//! Which launch a line fits is [`super::assign`]'s table; here it is applied.

use super::assign::{Progress, draft_possible, node_owns};
use super::builder::{Item, ItemKind};
use super::identity::{identify, is_communicator};
use super::{Launch, Outcome, Rank, RankEvent};
use crate::event::{Event, FailureKind, Role, Value};
use crate::server_args::{self, ServerArgs};
use crate::stage::{Coordinates, RankTag, Stage};
use crate::version::VersionRange;
use std::collections::HashMap;
use std::sync::Arc;

/// How many launches that have not ended are considered for a line.
const OPEN_LAUNCHES: usize = 8;

/// How far back in a rank a repeated line is looked for.
const LOOKED_BACK: usize = 64;

/// Sorts the events of one group of streams.
pub(super) struct Sorter {
    source: Arc<str>,
    launches: Vec<OpenLaunch>,
    /// Frames and driver messages that stand before the first launch: they explain its failure.
    early: Vec<Arc<Event>>,
}

/// A launch while lines may still come.
struct OpenLaunch {
    launch: Launch,
    progress: HashMap<Coordinates, Progress>,
}

impl Sorter {
    /// A sorter for the events of one server's streams.
    pub(super) fn new(source: Arc<str>) -> Self {
        Sorter { source, launches: Vec::new(), early: Vec::new() }
    }

    /// Takes what happened next.
    pub(super) fn take(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Repeat { event, original } => self.repeat(original, event),
            ItemKind::Arguments(event, arguments) => self.arguments(event, arguments),
            ItemKind::Served => {
                if let Some(open) = self.launches.last_mut() {
                    open.launch.served |= open.launch.ready.is_some();
                    open.launch.last_line = open.launch.last_line.max(item.line);
                }
            }
            ItemKind::Traffic(count) => {
                if let Some(open) = self.launches.last_mut() {
                    open.launch.retractions += count;
                }
            }
            ItemKind::Event(event) => match event.role {
                Role::Progress(_) => self.bar(event),
                Role::Stage(..) | Role::Pool(_) | Role::Summary => self.rank_line(event),
                _ => self.other_line(event),
            },
        }
    }

    /// The launches, in the order they began.
    pub(super) fn finish(self) -> impl Iterator<Item = Launch> {
        self.launches.into_iter().map(OpenLaunch::close)
    }

    /// A `server_args=` line begins a launch; an offline engine prints it twice in a row.
    fn arguments(&mut self, event: &Arc<Event>, arguments: &Arc<ServerArgs>) {
        if let Some(open) = self.launches.last_mut() {
            let same = open.launch.args() == Some(arguments.as_ref());
            if open.launch.ranks.is_empty() && (same || open.launch.arguments.is_none()) {
                open.note(event);
                open.launch.arguments.get_or_insert_with(|| (Arc::clone(arguments), event.place.clone()));
                return;
            }
        }
        self.begin(event);
        if let Some(open) = self.launches.last_mut() {
            open.launch.arguments = Some((Arc::clone(arguments), event.place.clone()));
        }
    }

    fn begin(&mut self, event: &Event) {
        let source = Arc::clone(&self.source);
        let mut open = OpenLaunch::new(source, event);
        for note in std::mem::take(&mut self.early) {
            open.note(&note);
            open.launch.notes.push(note);
        }
        self.launches.push(open);
    }

    /// Among the launches that the line fits: the one whose free memory it continues best, else the newest.
    fn rank_line(&mut self, event: &Arc<Event>) {
        let first_open = self.launches.len().saturating_sub(OPEN_LAUNCHES);
        let mut best: Option<(usize, i128)> = None;
        for (index, open) in self.launches.iter().enumerate().skip(first_open).rev() {
            if !open.admits(event) {
                continue;
            }
            let jump = open.progress.get(&event.rank.coordinates).and_then(|progress| progress.jump(event));
            match (best, jump) {
                (None, jump) => best = Some((index, jump.unwrap_or(i128::MAX))),
                (Some((_, smallest)), Some(jump)) if jump < smallest && smallest != i128::MAX => {
                    best = Some((index, jump))
                }
                _ => {}
            }
        }
        let index = match best {
            Some((index, _)) => index,
            None if !can_begin(event) => return,
            None => {
                self.begin(event);
                self.launches.len().saturating_sub(1)
            }
        };
        let Some(open) = self.launches.get_mut(index) else { return };
        open.post(event);
    }

    /// A bar carries no prefix: it is the lowest rank's whose capture is under way.
    fn bar(&mut self, event: &Arc<Event>) {
        for open in self.launches.iter_mut().rev().take(OPEN_LAUNCHES) {
            let capturing = |rank: &Rank, progress: &HashMap<Coordinates, Progress>| {
                progress.get(&rank.tag.coordinates).is_some_and(Progress::is_capturing)
            };
            let progress = &open.progress;
            let rank = open
                .launch
                .ranks
                .iter_mut()
                .filter(|rank| capturing(rank, progress))
                .min_by_key(|rank| rank.tag.coordinates);
            if let Some(rank) = rank {
                let worker = rank.events.last().map(|last| last.worker).unwrap_or_default();
                rank.events.push(RankEvent { event: Arc::clone(event), worker, repeated_at: Vec::new() });
                open.launch.last_line = open.launch.last_line.max(event.place.line);
                return;
            }
        }
    }

    /// Notes, failures, ready and traffic go to the newest launch, or found one where they are the first words.
    fn other_line(&mut self, event: &Arc<Event>) {
        if event.role == Role::Unrecognised {
            return;
        }
        if self.launches.is_empty() && matches!(event.role, Role::Note | Role::Traffic) {
            let explains = |id: &str| id.starts_with("trace.") || id == "machine.xid";
            if is_communicator(event) || event.template.is_some_and(|row| explains(row.id)) {
                self.early.push(Arc::clone(event));
            }
            return;
        }
        if self.launches.is_empty() {
            self.begin(event);
        }
        let said_by = |open: &OpenLaunch| {
            !event.rank.text.is_empty() && open.launch.rank(&event.rank.coordinates).is_some()
        };
        let newest = self.launches.len().saturating_sub(1);
        let index = match event.role {
            Role::Ready => self.about_to_be_ready().unwrap_or(newest),
            _ => self.launches.iter().rposition(said_by).unwrap_or(newest),
        };
        let Some(open) = self.launches.get_mut(index) else { return };
        open.note(event);
        open.other(event);
    }

    /// The newest launch that printed its summary and is not ready yet; without such, the newest that is not ready.
    fn about_to_be_ready(&self) -> Option<usize> {
        let unready = |open: &OpenLaunch| open.launch.ready.is_none();
        let summarised = |open: &OpenLaunch| open.progress.values().any(Progress::is_summarised);
        self.launches
            .iter()
            .rposition(|open| unready(open) && summarised(open))
            .or_else(|| self.launches.iter().rposition(unready))
    }

    /// The same words again: a second handler's copy, noted at the first; or, of two servers that start side by side in one
    /// stream, the other's.
    fn repeat(&mut self, original: &Arc<Event>, event: &Arc<Event>) {
        let holder = self.launches.iter().rposition(|open| open.holds(original));
        let first_open = self.launches.len().saturating_sub(OPEN_LAUNCHES);
        let waiting =
            (first_open..self.launches.len()).rev().filter(|index| Some(*index) != holder).find(|index| {
                self.launches
                    .get(*index)
                    .is_some_and(|open| open.launch.ready.is_none() && open.awaits(event))
            });
        if let Some(open) = waiting.and_then(|index| self.launches.get_mut(index)) {
            return open.post(event);
        }
        let Some(open) = holder.and_then(|index| self.launches.get_mut(index)) else { return };
        let events =
            open.launch.ranks.iter_mut().flat_map(|rank| rank.events.iter_mut().rev().take(LOOKED_BACK));
        if let Some(known) = events.into_iter().find(|known| Arc::ptr_eq(&known.event, original)) {
            known.repeated_at.push(event.place.clone());
        }
    }
}

impl OpenLaunch {
    fn new(source: Arc<str>, event: &Event) -> Self {
        let launch = Launch {
            source,
            stream: Arc::clone(&event.stream),
            first_line: event.place.line,
            last_line: event.place.line,
            started_at: event.stamp,
            last_event_at: event.stamp,
            ready: None,
            arguments: None,
            versions: VersionRange::ALL,
            ranks: Vec::new(),
            notes: Vec::new(),
            failures: Vec::new(),
            retractions: 0,
            left_out: 0,
            served: false,
            outcome: Outcome::Incomplete,
            failed_stage: None,
            cause: None,
        };
        OpenLaunch { launch, progress: HashMap::new() }
    }

    fn admits(&self, event: &Event) -> bool {
        let arguments = self.launch.args();
        if !node_owns(arguments, &event.rank.coordinates) {
            return false;
        }
        let begins = matches!(event.role, Role::Stage(stage, ..) if !matches!(stage, Stage::Lora | Stage::Other | Stage::PostCaptureResize));
        if self.launch.ready.is_some() && begins {
            return false;
        }
        let progress = self.progress.get(&event.rank.coordinates);
        progress.is_none_or(|progress| progress.admits(event.role, draft_possible(arguments)))
    }

    /// Whether the launch has this very event among the last of a rank.
    fn holds(&self, event: &Arc<Event>) -> bool {
        let recent = |rank: &Rank| {
            rank.events.iter().rev().take(LOOKED_BACK).any(|known| Arc::ptr_eq(&known.event, event))
        };
        self.launch.ranks.iter().any(recent)
    }

    /// Whether the line is the next that this rank must print: its other end stands open, or its pool is not yet printed.
    fn awaits(&self, event: &Event) -> bool {
        let strict = matches!(
            event.role,
            Role::Stage(Stage::DistributedInit | Stage::Weights | Stage::KvCache | Stage::MemoryPool, ..)
        );
        strict && self.progress.contains_key(&event.rank.coordinates) && self.admits(event)
    }

    /// Widens the launch's extent to this line.
    fn note(&mut self, event: &Event) {
        self.launch.last_line = self.launch.last_line.max(event.place.line);
        self.launch.first_line = self.launch.first_line.min(event.place.line);
        self.launch.started_at = self.launch.started_at.or(event.stamp);
        self.launch.last_event_at = event.stamp.or(self.launch.last_event_at);
    }

    /// Adds a rank's line. A tag that a viewer merged (`TP0..3`) stands for each of its ranks.
    fn post(&mut self, event: &Arc<Event>) {
        self.note(event);
        for tag in each_rank(&event.rank) {
            let progress = self.progress.entry(tag.coordinates).or_default();
            progress.forgive();
            let worker = progress.advance(event);
            let position = self.launch.ranks.iter().position(|rank| rank.tag.coordinates == tag.coordinates);
            let rank_event = RankEvent { event: Arc::clone(event), worker, repeated_at: Vec::new() };
            match position.and_then(|index| self.launch.ranks.get_mut(index)) {
                Some(rank) => rank.events.push(rank_event),
                None => self.launch.ranks.push(Rank { tag, events: vec![rank_event], identity: None }),
            }
        }
    }

    fn other(&mut self, event: &Arc<Event>) {
        match event.role {
            Role::Ready => self.launch.ready = Some(Arc::clone(event)),
            Role::Failure(kind) => {
                self.launch.failures.push(Arc::clone(event));
                // The imbalance can also be a warning, after which the rank goes on.
                let ends_rank = kind != FailureKind::Unbalanced;
                if ends_rank && (!event.rank.text.is_empty() || self.launch.ranks.len() <= 1) {
                    self.progress.entry(event.rank.coordinates).or_default().advance(event);
                }
            }
            _ => self.launch.notes.push(Arc::clone(event)),
        }
    }

    fn close(mut self) -> Launch {
        self.launch.ranks.sort_by_key(|rank| rank.tag.coordinates);
        identify(&mut self.launch);
        self.launch.versions = versions_of(&self.launch);
        super::outcome::settle(&mut self.launch);
        self.launch
    }
}

/// Whether a line that fits no launch begins one. Prose may quote the words of a stage (`Load weight end took long`): what
/// is neither worded like a release's line nor holds a figure founds nothing.
fn can_begin(event: &Event) -> bool {
    event.template.is_some()
        || event.fields.iter().any(|field| matches!(field.value, Value::Memory(_) | Value::Cut))
}

/// The ranks that a tag names: one, or each of a merged range.
fn each_rank(tag: &RankTag) -> Vec<RankTag> {
    let (Some(first), Some(last)) = (tag.coordinates.tp, tag.through) else {
        return vec![tag.clone()];
    };
    (first..=last.min(first.saturating_add(1023)))
        .map(|tp| RankTag {
            coordinates: Coordinates { tp: Some(tp), ..tag.coordinates },
            text: tag.text.replace(&format!("TP{first}..{last}"), &format!("TP{tp}")),
            through: None,
        })
        .collect()
}

/// The releases left possible by the wording of every line and the names of the arguments. Evidence that excludes what
/// is left (a fork that carries a later release's line) is passed over.
fn versions_of(launch: &Launch) -> VersionRange {
    let wordings = launch
        .ranks
        .iter()
        .flat_map(|rank| &rank.events)
        .map(|event| &event.event)
        .chain(&launch.notes)
        .chain(&launch.ready);
    let mut range = launch.args().map(server_args::version_range).unwrap_or(VersionRange::ALL);
    for event in wordings {
        range = range.intersect(event.wording_range).unwrap_or(range);
    }
    range
}
