//! The survey of a large file: several threads find out which blocks hold a needle, and count line feeds.
//!
//! Separate from the scan because that is all they do: a few bytes of facts for each block, in order. The scan itself
//! stays in one thread and visits only the blocks that have something. So memory does not depend on how many lines
//! hit, results need no merging, and a block full of hits costs the survey nothing, for it stops at the first.

use super::needles::Needles;
use super::scan::{Limits, RawLine, Scanner};
use super::window::{Cursor, Feed, Window, read_at};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How the survey divides its work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Threads that survey.
    pub threads: usize,
    /// Bytes of a block: the unit that either holds a needle or is skipped.
    pub block: usize,
    /// Blocks of one read; the read should fit the processor's second-level cache.
    pub blocks_per_read: usize,
    /// Reads of one span: what a thread does at a stretch and reports at once.
    pub reads_per_span: usize,
    /// What the scan that follows keeps.
    pub limits: Limits,
}

impl Plan {
    fn bytes_per_read(&self) -> usize {
        self.block * self.blocks_per_read
    }

    fn bytes_per_span(&self) -> u64 {
        (self.bytes_per_read() * self.reads_per_span) as u64
    }
}

/// What the survey knows of a block.
struct Facts {
    hit: bool,
    end: Cursor,
}

/// The surveyed blocks of one span, their cursors counted from the span's beginning.
type Span = io::Result<Vec<Facts>>;

/// Scans the first `length` bytes of a file: surveyed by threads, read by the scan only where something is.
/// Returns the position at the end.
pub(super) fn scan_file(
    file: &File,
    length: u64,
    needles: &Needles,
    plan: Plan,
    sink: &mut dyn FnMut(RawLine<'_>) -> ControlFlow<()>,
) -> io::Result<Cursor> {
    std::thread::scope(|scope| {
        let spans: Vec<Receiver<Span>> = (0..plan.threads as u64)
            .map(|first| {
                // A thread may be one span ahead of the one that the scan waits for, no more.
                let (sender, receiver) = sync_channel(1);
                scope.spawn(move || survey(file, length, needles, plan, first, &sender));
                receiver
            })
            .collect();
        // The receivers go when this ends, early or not, and with them the threads.
        visit(&spans, file, length, needles, plan, sink)
    })
}

/// One thread: every `plan.threads`-th span from `first` on.
fn survey(file: &File, length: u64, needles: &Needles, plan: Plan, first: u64, sender: &SyncSender<Span>) {
    let mut buffer = vec![0; plan.bytes_per_read() + needles.longest()];
    let mut start = first * plan.bytes_per_span();
    while start < length {
        let span = survey_span(file, start, length, needles, plan, &mut buffer);
        if sender.send(span).is_err() {
            return;
        }
        start += plan.threads as u64 * plan.bytes_per_span();
    }
}

fn survey_span(
    file: &File,
    start: u64,
    length: u64,
    needles: &Needles,
    plan: Plan,
    buffer: &mut [u8],
) -> Span {
    let stop = (start + plan.bytes_per_span()).min(length);
    let mut facts = Vec::with_capacity(plan.blocks_per_read * plan.reads_per_span);
    let mut cursor = Cursor { offset: start, newlines: 0, line_start: start };
    while cursor.offset < stop {
        let own = usize::try_from(stop - cursor.offset).unwrap_or(usize::MAX).min(plan.bytes_per_read());
        let wanted =
            usize::try_from(length - cursor.offset).unwrap_or(usize::MAX).min(own + needles.longest() - 1);
        let read = read_full(file, buffer.get_mut(..wanted).unwrap_or_default(), cursor.offset)?;
        if read == 0 {
            break; // The file has become shorter meanwhile.
        }
        let bytes = buffer.get(..read).unwrap_or_default();
        for low in (0..own.min(read)).step_by(plan.block) {
            let high = (low + plan.block).min(own).min(read);
            let overlap = (high + needles.longest() - 1).min(read);
            let hit = bytes.get(low..overlap).is_some_and(|block| needles.find_at(block, 0).is_some());
            cursor = cursor.over(bytes.get(low..high).unwrap_or_default());
            facts.push(Facts { hit, end: cursor });
        }
    }
    Ok(facts)
}

fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read_at(file, rest, offset + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// The scan's side: takes the spans in order and visits the blocks that have something.
fn visit(
    spans: &[Receiver<Span>],
    file: &File,
    length: u64,
    needles: &Needles,
    plan: Plan,
    sink: &mut dyn FnMut(RawLine<'_>) -> ControlFlow<()>,
) -> io::Result<Cursor> {
    let window = Window::new(Feed::File(file, 0, length), plan.bytes_per_read());
    let mut scanner = Scanner::new(needles, plan.limits, window, sink);
    let Limits { segment, look_back } = plan.limits;
    let mut trail = Trail { here: Cursor::default(), past: VecDeque::new(), reach: segment + look_back };
    for receiver in spans.iter().cycle() {
        if trail.here.offset >= length {
            break;
        }
        let Ok(span) = receiver.recv() else { break };
        let before = trail.here;
        for facts in span? {
            if facts.hit {
                let (near, far) = (trail.back(look_back), trail.back(look_back + segment));
                scanner.enter(trail.here.offset, near, far)?;
                scanner.run_until(facts.end.offset)?;
                if scanner.stopped() {
                    return Ok(trail.here);
                }
            }
            let line_start = if facts.end.newlines > 0 { facts.end.line_start } else { before.line_start };
            trail.step(Cursor { newlines: before.newlines + facts.end.newlines, line_start, ..facts.end });
        }
        if trail.here == before {
            break; // Nothing where something was promised: the file has become shorter.
        }
    }
    Ok(trail.here)
}

/// The positions at the beginnings of the last blocks.
struct Trail {
    here: Cursor,
    past: VecDeque<Cursor>,
    /// How many bytes before here a position may be asked for.
    reach: u64,
}

impl Trail {
    fn step(&mut self, to: Cursor) {
        self.past.push_back(self.here);
        self.here = to;
        let oldest = to.offset.saturating_sub(self.reach);
        while self.past.get(1).is_some_and(|cursor| cursor.offset <= oldest) {
            self.past.pop_front();
        }
    }

    /// The latest known position at least `bytes` before here, or the earliest known.
    fn back(&self, bytes: u64) -> Cursor {
        let limit = self.here.offset.saturating_sub(bytes);
        let known = self.past.iter().rev().find(|cursor| cursor.offset <= limit).or(self.past.front());
        known.copied().unwrap_or(self.here)
    }
}
