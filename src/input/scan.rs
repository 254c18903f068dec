//! From bytes to the lines around the needles, in order, with their physical line numbers and columns.
//!
//! Whole buffers are searched first and lines are looked for only around hits: splitting everything into lines
//! would cost several times as much as the search. The unit here is the *segment*: what lies between line feeds or
//! between carriage returns, so that a progress bar that lives in one physical line for an hour is never held whole.
//! Every rule below depends on the text alone and never on where a buffer happens to end; the tests hold tiny
//! buffers, whole files and several threads against each other.

use super::needles::Needles;
use super::window::{Cursor, Window};
use memchr::{memchr2, memrchr2};
use std::io;
use std::ops::ControlFlow;

/// The longest segment kept, in bytes: what goes beyond is cut off. An SGLang `server_args` line may have 50 KB.
pub const LONGEST_SEGMENT: u64 = 1 << 20;

/// How much the scan keeps of the text around a hit, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The longest segment.
    pub segment: u64,
    /// How far before a hit's segment its context may begin.
    pub look_back: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { segment: LONGEST_SEGMENT, look_back: 16 << 10 }
    }
}

/// One segment as it stands in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawLine<'a> {
    /// Its bytes, without the line break.
    pub bytes: &'a [u8],
    /// The physical line, from 1.
    pub line: u64,
    /// The byte column in the physical line, from 1; above 1 for what follows a carriage return.
    pub column: u64,
    /// How the physical line begins, where the segment is not its first: the envelope stands there.
    pub line_head: &'a [u8],
    /// Whether a needle is in it; the others are context.
    pub hit: bool,
    /// Whether its end was cut off.
    pub cut: bool,
}

/// The scan's state over one source.
pub(super) struct Scanner<'s, 'w> {
    needles: &'s Needles,
    limits: Limits,
    sink: &'s mut dyn FnMut(RawLine<'_>) -> ControlFlow<()>,
    window: Window<'w>,
    /// No needle begins before this offset but in segments dealt with.
    searched: u64,
    /// Segments before this offset have been handed on, or let go for good. Always where a segment begins.
    emitted: u64,
    /// How many more lines of context are due.
    due: usize,
    stopped: bool,
}

impl<'s, 'w> Scanner<'s, 'w> {
    pub fn new(
        needles: &'s Needles,
        limits: Limits,
        window: Window<'w>,
        sink: &'s mut dyn FnMut(RawLine<'_>) -> ControlFlow<()>,
    ) -> Self {
        Scanner { needles, limits, sink, window, searched: 0, emitted: 0, due: 0, stopped: false }
    }

    /// Whether the sink has asked for the end.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// How many bytes the scan has room for: the most it ever held.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.window.capacity()
    }

    /// Scans to the end of the source; says how many bytes and line feeds there were, and whether a line was left
    /// without a line feed.
    pub fn run_to_end(&mut self) -> io::Result<Cursor> {
        self.run_until(u64::MAX)?;
        let end = self.window.end();
        Ok(self.window.locate(end))
    }

    /// Hands on every segment with a needle that begins before `limit`, and the context around it.
    pub fn run_until(&mut self, limit: u64) -> io::Result<()> {
        while !self.stopped {
            if self.due > 0 {
                self.hand_on_context()?;
            } else if self.searched >= limit {
                break;
            } else if let Some((start, end)) = self.next_needle() {
                if start >= limit {
                    self.searched = limit;
                } else {
                    self.hand_on_hit(start, end)?;
                }
            } else {
                let unsearched = self.window.end().saturating_sub(self.needles.longest() as u64 - 1);
                self.searched = self.searched.max(unsearched);
                if self.window.ended() {
                    self.searched = self.searched.max(self.window.end());
                    break;
                }
                self.fill()?;
            }
        }
        Ok(())
    }

    fn next_needle(&self) -> Option<(u64, u64)> {
        let found = self.needles.find_at(self.window.bytes(), self.window.index(self.searched))?;
        let base = self.window.base();
        Some((base + found.start as u64, base + found.end as u64))
    }

    /// Reads on; what may still be needed stays: the unfinished segment, and the look-back before it.
    fn fill(&mut self) -> io::Result<()> {
        let (searched, emitted, limits) = (self.searched, self.emitted, self.limits);
        self.window.fill(|window| {
            let farthest = searched.saturating_sub(limits.segment + limits.look_back).max(window.base());
            let segment = match last_separator(window.bytes(), window.index(farthest), window.index(searched))
            {
                Some(at) => window.base() + at as u64 + 1,
                None => farthest,
            };
            segment.saturating_sub(limits.look_back).max(emitted)
        })
    }

    /// The segment with the needle, after its context before.
    fn hand_on_hit(&mut self, start: u64, end: u64) -> io::Result<()> {
        let longest = self.limits.segment;
        let Some(segment) = self.segment_start(start, start.saturating_sub(longest)) else {
            return self.leave_segment(start);
        };
        if end > segment + longest {
            return self.leave_segment(start);
        }
        let Some((bytes_end, next, cut)) = self.segment_end(segment)? else { return Ok(()) };
        let context = self.needles.classify(self.window.slice(segment, bytes_end)).unwrap_or_default();
        for (from, to) in self.lines_before(segment, context.before) {
            self.hand_on(from, to, false, false);
        }
        self.hand_on(segment, bytes_end, true, cut);
        self.due = context.after;
        self.finish(bytes_end, next, cut)
    }

    /// The next segment, wanted as context after a hit; it may be a hit itself.
    fn hand_on_context(&mut self) -> io::Result<()> {
        let segment = self.emitted;
        let Some((bytes_end, next, cut)) = self.segment_end(segment)? else {
            self.due = 0;
            return Ok(());
        };
        let own = self.needles.classify(self.window.slice(segment, bytes_end));
        self.hand_on(segment, bytes_end, own.is_some(), cut);
        self.due = (self.due - 1).max(own.unwrap_or_default().after);
        self.finish(bytes_end, next, cut)
    }

    fn finish(&mut self, bytes_end: u64, next: u64, cut: bool) -> io::Result<()> {
        self.emitted = next;
        self.searched = self.searched.max(next);
        if cut { self.leave_segment(bytes_end) } else { Ok(()) }
    }

    fn hand_on(&mut self, from: u64, to: u64, hit: bool, cut: bool) {
        // Bars begin or end with a carriage return: what is empty between two of them is no line.
        let bare_return = from == to
            && self.window.slice(to, to + 1) == b"\r"
            && self.window.slice(to + 1, to + 2) != b"\n";
        if self.stopped || bare_return {
            return;
        }
        let cursor = self.window.locate(from);
        let (line, column) = (cursor.newlines + 1, from - cursor.line_start + 1);
        let line_head = if column > 1 { self.window.line_head(from).to_vec() } else { Vec::new() };
        let bytes = self.window.slice(from, to);
        let line = RawLine { bytes, line, column, line_head: &line_head, hit, cut };
        self.stopped = (self.sink)(line).is_break();
    }

    /// Where the segment that holds `offset` begins, if not before `lowest`.
    fn segment_start(&self, offset: u64, lowest: u64) -> Option<u64> {
        let low = lowest.max(self.window.base()).max(self.emitted);
        match last_separator(self.window.bytes(), self.window.index(low), self.window.index(offset)) {
            Some(at) => Some(self.window.base() + at as u64 + 1),
            None if low == self.emitted || low == 0 => Some(low),
            None => None,
        }
    }

    /// Where the segment that begins at `from` ends, where the next begins, and whether it is cut; `None` at the end
    /// of the source. Reads on as needed.
    fn segment_end(&mut self, from: u64) -> io::Result<Option<(u64, u64, bool)>> {
        let limit = from + self.limits.segment;
        let mut looked = from;
        loop {
            let low = self.window.index(looked);
            if let Some((at, next)) = next_separator(self.window.bytes(), low, self.window.ended()) {
                let (at, next) = (self.window.base() + at as u64, self.window.base() + next as u64);
                return Ok(Some(if at > limit { (limit, limit, true) } else { (at, next, false) }));
            }
            // The last byte may be a carriage return whose line feed is still to come.
            looked = self.window.end().saturating_sub(1).max(from);
            if looked > limit {
                return Ok(Some((limit, limit, true)));
            }
            if self.window.ended() {
                let end = self.window.end();
                let cut = end > limit;
                return Ok((end > from).then_some((end.min(limit), end.min(limit), cut)));
            }
            let keep = from.saturating_sub(self.limits.look_back).max(self.emitted);
            self.window.fill(|_| keep)?;
        }
    }

    /// Lets the rest of an overlong segment go, from `offset` to the next separator.
    fn leave_segment(&mut self, offset: u64) -> io::Result<()> {
        let mut at = offset;
        loop {
            let found = next_separator(self.window.bytes(), self.window.index(at), self.window.ended());
            let end = self.window.end();
            let next = match found {
                Some((_, next)) => Some(self.window.base() + next as u64),
                None if self.window.ended() => Some(end),
                None => None,
            };
            if let Some(next) = next {
                (self.emitted, self.searched) = (next, self.searched.max(next));
                return Ok(());
            }
            at = end.saturating_sub(1).max(at);
            self.window.fill(|_| at)?;
        }
    }

    /// The segments before `segment`, first to last: at most `count`, not handed on yet, within the look-back.
    fn lines_before(&self, segment: u64, count: usize) -> Vec<(u64, u64)> {
        let lowest = segment.saturating_sub(self.limits.look_back);
        let mut found = Vec::new();
        let mut next = segment;
        while found.len() < count && next > self.emitted {
            let Some(start) = self.segment_start(next - 1, lowest) else { break };
            let line = self.window.slice(start, next);
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            found.push((start, start + line.len() as u64));
            next = start;
        }
        found.reverse();
        found
    }

    /// Goes on at `offset`, where a survey has found a needle in the block that begins there. `near` and `far` are
    /// positions before it that the window may start from: `near` where that suffices for the look-back.
    pub fn enter(&mut self, offset: u64, near: Cursor, far: Cursor) -> io::Result<()> {
        if offset > self.window.end() {
            self.window.jump(near)?;
            while self.window.end() < offset && !self.window.ended() {
                self.window.fill(|window| window.base())?;
            }
            let low = self.window.index(near.offset + self.limits.look_back);
            let found = last_separator(self.window.bytes(), low, self.window.index(offset));
            if found.is_none() && far.offset < near.offset {
                self.window.jump(far)?;
                while self.window.end() < offset && !self.window.ended() {
                    self.window.fill(|window| window.base())?;
                }
            }
        }
        self.searched = self.searched.max(offset);
        Ok(())
    }
}

/// The last separator in `bytes[low..high]`: a line feed, or a carriage return without one behind it.
fn last_separator(bytes: &[u8], low: usize, high: usize) -> Option<usize> {
    let mut high = high;
    loop {
        let at = low + memrchr2(b'\n', b'\r', bytes.get(low..high)?)?;
        if bytes.get(at) == Some(&b'\n') || bytes.get(at + 1) != Some(&b'\n') {
            return Some(at);
        }
        high = at;
    }
}

/// The first separator at `low` or later: where the text before it ends, and where the text behind it begins.
/// A carriage return at the very end separates only if nothing more comes.
fn next_separator(bytes: &[u8], low: usize, ended: bool) -> Option<(usize, usize)> {
    let at = low + memchr2(b'\n', b'\r', bytes.get(low..)?)?;
    match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'\n'), _) => Some((at, at + 1)),
        (_, Some(b'\n')) => Some((at, at + 2)),
        (_, None) if !ended => None,
        _ => Some((at, at + 1)),
    }
}
