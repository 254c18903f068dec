//! From a rank's lines to its postings.

use super::fields::{claim_of, elapsed_of, figure_place, level_field, level_of, parts_of, shown};
use super::{Balance, Ledger, Part, Posting, PostingKind, PostingState, ProgressPoint};
use crate::event::{Edge, Event, PoolRole, Role};
use crate::launch::{Rank, RankEvent};
use crate::place::Place;
use crate::quantity::Quantity;
use crate::stage::{Stage, Worker};

/// Builds the ledger of one rank.
pub fn build(rank: &Rank) -> Ledger {
    let mut books = Books::default();
    for rank_event in &rank.events {
        books.post(rank_event);
    }
    books.close()
}

/// The books while lines come in.
#[derive(Default)]
struct Books {
    opening: Option<(Quantity, Place)>,
    level: Option<(Quantity, Place)>,
    /// Claims printed since the last level: they are inside the next difference.
    claimed_since: Option<Quantity>,
    headroom: Option<(Quantity, Option<Place>)>,
    postings: Vec<Posting>,
    /// Pool lines wait for the `Memory pool end` that closes their stage.
    parts: Vec<(Worker, Part)>,
    pool_places: Vec<Place>,
    last_label: String,
}

impl Books {
    fn post(&mut self, rank_event: &RankEvent) {
        let event = &rank_event.event;
        match event.role {
            Role::Stage(stage, Edge::Begin, _) => self.begin(stage, rank_event),
            Role::Stage(stage, Edge::End, _) => self.end(stage, rank_event),
            Role::Stage(stage, Edge::Whole, _) => self.whole(stage, rank_event),
            Role::Pool(PoolRole::Part) => self.pool(rank_event),
            Role::Progress(_) => self.progress(event),
            Role::Summary => self.summary(event),
            _ => {}
        }
    }

    fn begin(&mut self, stage: Stage, rank_event: &RankEvent) {
        let event = &rank_event.event;
        let level = level_of(event);
        if let Some((level, place)) = &level {
            self.reach(*level, place.clone(), stage, rank_event);
        }
        let mut posting = blank(stage, rank_event);
        posting.before = level.map(|(level, _)| level);
        posting.state = PostingState::Begun;
        posting.in_chain = posting.before.is_some();
        self.push(posting, event);
    }

    fn end(&mut self, stage: Stage, rank_event: &RankEvent) {
        let event = &rank_event.event;
        let open = self.postings.iter().rposition(|posting| {
            posting.kind == PostingKind::Stage
                && posting.state == PostingState::Begun
                && posting.stage == stage
                && posting.worker == rank_event.worker
        });
        let Some(open) = open else {
            return self.whole(stage, rank_event);
        };
        let level = level_of(event);
        let previous = self.level.clone();
        if let Some(posting) = self.postings.get_mut(open) {
            posting.state = PostingState::Complete;
            posting.claimed = claim_of(event);
            posting.after = level.as_ref().map(|(level, _)| *level);
            if posting.before.is_none() && posting.after.is_some() && previous.is_some() {
                posting.before = previous.map(|(level, _)| level);
                posting.state = PostingState::Inferred;
            }
            posting.elapsed_seconds = elapsed_of(event);
            posting.ended_at = event.stamp;
            posting.places.push(figure_place(event));
            posting.places.extend(rank_event.repeated_at.iter().cloned());
            settle(posting);
        }
        self.finish(open, level, event);
    }

    /// A line that tells all of a stage: its opening is the level before it.
    fn whole(&mut self, stage: Stage, rank_event: &RankEvent) {
        let event = &rank_event.event;
        let level = level_of(event);
        let mut posting = blank(stage, rank_event);
        posting.claimed = claim_of(event);
        posting.after = level.as_ref().map(|(level, _)| *level);
        posting.before = posting.after.and_then(|_| self.level.as_ref().map(|(level, _)| *level));
        posting.elapsed_seconds = elapsed_of(event);
        posting.state =
            if posting.before.is_some() { PostingState::Inferred } else { PostingState::Complete };
        if matches!(stage, Stage::KvCache | Stage::MemoryPool | Stage::PostCaptureResize) {
            self.take_parts(&mut posting);
        }
        if stage == Stage::PostCaptureResize {
            posting.parts.extend(parts_of(event));
        }
        if matches!(stage, Stage::KvCache | Stage::MemoryPool) {
            // Only `Memory pool end` is printed in every release: the stage began where the weights ended.
            posting.stage = if posting.parts.is_empty() { Stage::MemoryPool } else { Stage::KvCache };
        }
        settle(&mut posting);
        let index = self.postings.len();
        self.push(posting, event);
        self.finish(index, level, event);
    }

    /// Sets the level that a posting ends at, and whether the posting lies in the chain.
    fn finish(&mut self, index: usize, level: Option<(Quantity, Place)>, event: &Event) {
        let opened = self.opening.is_some();
        if let Some(posting) = self.postings.get_mut(index) {
            posting.in_chain = posting.before.is_some() && posting.after.is_some()
                || opened && posting.after.is_none() && posting.claimed.is_some();
            if posting.in_chain && posting.after.is_none() {
                self.claimed_since = posting
                    .claimed
                    .map(|claim| claim + self.claimed_since.unwrap_or(Quantity::ZERO))
                    .or(self.claimed_since);
            }
        }
        if let Some((level, place)) = level {
            self.opening.get_or_insert_with(|| (level, place.clone()));
            self.level = Some((level, place));
            self.claimed_since = None;
        }
        self.last_label = event.label.to_string();
    }

    /// Comes to a printed level: what moved since the last one, less what was claimed in between, is a gap.
    fn reach(&mut self, level: Quantity, place: Place, stage: Stage, rank_event: &RankEvent) {
        if let Some((previous, previous_place)) = self.level.clone() {
            let claimed = self.claimed_since.unwrap_or(Quantity::ZERO);
            let before = previous - claimed;
            let moved = before - level;
            // Equal prints say that nothing is known to have moved; a gap of nothing would only be noise.
            if previous != level && !(claimed != Quantity::ZERO && moved.contains(0)) {
                let mut gap = blank(stage, rank_event);
                gap.kind = PostingKind::Gap;
                gap.label = format!("between \"{}\" and \"{}\"", self.last_label, rank_event.event.label);
                gap.before = Some(before);
                gap.after = Some(level);
                gap.used = Some(moved);
                gap.state = PostingState::Inferred;
                gap.ended_at = rank_event.event.stamp;
                gap.places = vec![previous_place, place.clone()];
                gap.in_chain = true;
                self.postings.push(gap);
            }
        }
        self.opening.get_or_insert_with(|| (level, place.clone()));
        self.level = Some((level, place));
        self.claimed_since = None;
    }

    fn pool(&mut self, rank_event: &RankEvent) {
        let event = &rank_event.event;
        self.parts.extend(parts_of(event).into_iter().map(|part| (rank_event.worker, part)));
        self.pool_places.push(figure_place(event));
    }

    fn take_parts(&mut self, posting: &mut Posting) {
        let worker = posting.worker;
        let (mine, others) =
            std::mem::take(&mut self.parts).into_iter().partition(|(owner, _)| *owner == worker);
        self.parts = others;
        let mine: Vec<(Worker, Part)> = mine;
        posting.parts.extend(mine.into_iter().map(|(_, part)| part));
        let mut places = std::mem::take(&mut self.pool_places);
        places.append(&mut posting.places);
        posting.places = places;
    }

    fn progress(&mut self, event: &Event) {
        let open = self
            .postings
            .iter_mut()
            .rev()
            .find(|posting| posting.stage.is_capture() && posting.state == PostingState::Begun);
        let (Some(posting), Some((available, _))) = (open, level_of(event)) else {
            return;
        };
        let label = event
            .fields
            .iter()
            .find(|field| matches!(field.name.as_str(), "bs" | "num_tokens"))
            .map(|field| format!("{}={}", field.name, shown(field)))
            .unwrap_or_default();
        if posting
            .progress
            .last()
            .is_none_or(|point| point.label != label || label.is_empty() && point.available != available)
        {
            posting.progress.push(ProgressPoint { label, available });
        }
    }

    fn summary(&mut self, event: &Event) {
        let place = level_field(event).map(|field| field.place.clone());
        if let Some((level, _)) = level_of(event) {
            self.headroom = Some((level, place));
        }
    }

    fn push(&mut self, posting: Posting, event: &Event) {
        self.postings.push(posting);
        self.last_label = event.label.to_string();
    }

    fn close(mut self) -> Ledger {
        self.leftover_parts();
        // A claim behind the last level has nothing below it to balance against.
        let last_level =
            self.postings.iter().rposition(|posting| posting.after.is_some()).map_or(0, |index| index + 1);
        for posting in self.postings.iter_mut().skip(last_level) {
            posting.in_chain = false;
        }
        let (opening, opening_place) = self.opening.unzip();
        let (closing, closing_place) = self.level.unzip();
        let (headroom, headroom_place) = self.headroom.unzip();
        let balance = Balance::of(opening, &self.postings, closing);
        Ledger {
            opening,
            opening_place,
            postings: self.postings,
            closing,
            closing_place,
            headroom,
            headroom_place: headroom_place.flatten(),
            balance,
        }
    }

    /// Pools whose stage never ended, or whose rank prints no end: begun postings with parts, amount unknown.
    fn leftover_parts(&mut self) {
        for worker in [Worker::Target, Worker::Draft] {
            let (mine, others): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.parts).into_iter().partition(|(owner, _)| *owner == worker);
            self.parts = others;
            let parts: Vec<Part> = mine.into_iter().map(|(_, part)| part).collect();
            let Some(first) = parts.first() else { continue };
            let posting = Posting {
                kind: PostingKind::Stage,
                stage: Stage::KvCache,
                worker,
                label: "KV Cache is allocated".into(),
                before: None,
                after: None,
                used: None,
                claimed: None,
                state: PostingState::Begun,
                progress: Vec::new(),
                elapsed_seconds: None,
                began_at: None,
                ended_at: None,
                places: vec![first.place.clone()],
                in_chain: false,
                parts,
            };
            self.postings.push(posting);
        }
    }
}

/// A posting with nothing known but its line.
fn blank(stage: Stage, rank_event: &RankEvent) -> Posting {
    let event = &rank_event.event;
    let mut places = vec![figure_place(event)];
    places.extend(rank_event.repeated_at.iter().cloned());
    Posting {
        kind: PostingKind::Stage,
        stage,
        worker: rank_event.worker,
        label: event.label.to_string(),
        before: None,
        after: None,
        used: None,
        claimed: None,
        state: PostingState::Complete,
        parts: Vec::new(),
        progress: Vec::new(),
        elapsed_seconds: None,
        began_at: event.stamp,
        ended_at: event.stamp,
        places,
        in_chain: false,
    }
}

/// What a posting used: the difference of the levels, narrowed by the claim where both can be true.
fn settle(posting: &mut Posting) {
    posting.used = match (posting.difference(), posting.claimed) {
        (Some(difference), Some(claimed)) => Some(difference.intersect(claimed).unwrap_or(difference)),
        (difference, claimed) => difference.or(claimed),
    };
}
