//! A sliding window over a source: bytes with their absolute offsets, and line numbers that follow along.
//!
//! Separate from the scan so that the scan thinks in offsets and never in buffers, and so that memory is bounded in
//! one place: the window holds what the scan asked to keep, plus one block.

use memchr::{memchr_iter, memrchr};
use std::fs::File;
use std::io::{self, Read};

/// How many bytes of a physical line's beginning are remembered once the window has moved on.
const HEAD: usize = 512;

/// Where the bytes come from.
pub(super) enum Feed<'a> {
    /// Anything that can only be read forward.
    Stream(Box<dyn Read + 'a>),
    /// A regular file: the next offset to read, and the offset where to stop.
    File(&'a File, u64, u64),
}

/// A position with its line: what has to be known to go on counting from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cursor {
    /// The absolute offset.
    pub offset: u64,
    /// The number of line feeds before it.
    pub newlines: u64,
    /// Where the physical line that holds the offset begins.
    pub line_start: u64,
}

impl Cursor {
    /// The cursor moved over `bytes`, which begin at its offset.
    pub fn over(self, bytes: &[u8]) -> Cursor {
        Cursor {
            offset: self.offset + bytes.len() as u64,
            newlines: self.newlines + memchr_iter(b'\n', bytes).count() as u64,
            line_start: memrchr(b'\n', bytes).map_or(self.line_start, |at| self.offset + at as u64 + 1),
        }
    }
}

/// The window.
pub(super) struct Window<'a> {
    feed: Feed<'a>,
    block: usize,
    buffer: Vec<u8>,
    filled: usize,
    base: u64,
    ended: bool,
    cursor: Cursor,
    head: Vec<u8>,
}

impl<'a> Window<'a> {
    /// An empty window at the beginning of `feed`, read `block` bytes at a time.
    pub fn new(feed: Feed<'a>, block: usize) -> Self {
        let (base, ended, filled) = (0, false, 0);
        let cursor = Cursor::default();
        Window {
            feed,
            block: block.max(1),
            buffer: Vec::new(),
            filled,
            base,
            ended,
            cursor,
            head: Vec::new(),
        }
    }

    /// The bytes held.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// The absolute offset of the first byte held.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The absolute offset behind the last byte held.
    pub fn end(&self) -> u64 {
        self.base + self.filled as u64
    }

    /// The size of the buffer.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Whether the source has nothing more.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The index of an absolute offset; offsets outside the window become its nearer end.
    pub fn index(&self, offset: u64) -> usize {
        usize::try_from(offset.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.filled)
    }

    /// The bytes between two absolute offsets, as far as the window holds them.
    pub fn slice(&self, from: u64, to: u64) -> &[u8] {
        self.bytes().get(self.index(from)..self.index(to)).unwrap_or_default()
    }

    /// Reads more. Where the buffer is full, first lets go of what lies before `keep`.
    pub fn fill(&mut self, keep: impl FnOnce(&Self) -> u64) -> io::Result<()> {
        if self.buffer.len() - self.filled < self.block.div_ceil(4) {
            let keep = keep(self);
            self.let_go(keep);
            if self.buffer.len() - self.filled < self.block {
                self.buffer.reserve_exact(self.filled + self.block - self.buffer.len());
                self.buffer.resize(self.filled + self.block, 0);
            }
        }
        let space = self.buffer.get_mut(self.filled..).unwrap_or_default();
        let read = match &mut self.feed {
            Feed::Stream(reader) => read_some(|| reader.read(space))?,
            Feed::File(file, at, stop) => {
                let wanted = usize::try_from(stop.saturating_sub(*at)).unwrap_or(usize::MAX).min(space.len());
                let space = space.get_mut(..wanted).unwrap_or_default();
                let read = read_at(file, space, *at)?;
                *at += read as u64;
                read
            }
        };
        self.filled += read;
        self.ended = read == 0;
        Ok(())
    }

    fn let_go(&mut self, keep: u64) {
        let dropped = self.index(keep);
        if self.cursor.offset < self.base + dropped as u64 {
            self.advance(self.base + dropped as u64);
        }
        self.extend_head(self.base + dropped as u64);
        self.buffer.copy_within(dropped..self.filled, 0);
        self.filled -= dropped;
        self.base += dropped as u64;
    }

    /// Remembers how the cursor's physical line begins, as far as `to`: that part of the window is about to go.
    fn extend_head(&mut self, to: u64) {
        let start = self.cursor.line_start;
        if start >= self.base {
            self.head.clear();
        }
        let (from, to) = (start + self.head.len() as u64, to.min(start + HEAD as u64));
        let range = self.index(from)..self.index(to);
        self.head.extend_from_slice(self.buffer.get(range).unwrap_or_default());
    }

    fn advance(&mut self, to: u64) {
        self.cursor = self.cursor.over(self.slice(self.cursor.offset, to));
    }

    /// The line numbers at an offset within the window. Offsets must be asked for in rising order.
    pub fn locate(&mut self, offset: u64) -> Cursor {
        if offset > self.cursor.offset {
            self.advance(offset);
        }
        self.cursor
    }

    /// How the physical line that holds `offset` begins, up to there; at most `HEAD` bytes. The offset is the one
    /// that was located last.
    pub fn line_head(&mut self, offset: u64) -> &[u8] {
        self.extend_head(offset);
        let length = usize::try_from(offset - self.cursor.line_start).unwrap_or(HEAD).min(self.head.len());
        self.head.get(..length).unwrap_or_default()
    }

    /// Starts anew at a position further on; only files can.
    pub fn jump(&mut self, to: Cursor) -> io::Result<()> {
        let Feed::File(file, at, _) = &mut self.feed else { return Ok(()) };
        *at = to.offset;
        self.head.clear();
        if to.line_start < to.offset {
            let length = usize::try_from(to.offset - to.line_start).unwrap_or(HEAD).min(HEAD);
            self.head.resize(length, 0);
            let read = read_at(file, &mut self.head, to.line_start)?;
            self.head.truncate(read);
        }
        (self.filled, self.base, self.ended, self.cursor) = (0, to.offset, false, to);
        Ok(())
    }
}

/// Retries a read that a signal interrupted.
fn read_some(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Reads at an offset without moving the file's own position, so that threads can share the file.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return read_some(|| std::os::unix::fs::FileExt::read_at(file, buffer, offset));
    #[cfg(windows)]
    return read_some(|| std::os::windows::fs::FileExt::seek_read(file, buffer, offset));
}
