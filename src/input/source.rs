//! Sources: what may be read, how it is opened, and what is refused with which words.
//!
//! Separate because this is the only place of the input that knows files and the only one that users see errors of.

use super::encoding::{Encoding, Utf16Reader};
use super::needles::Needles;
use super::scan::{Limits, RawLine, Scanner};
use super::survey::{Plan, scan_file};
use super::window::{Cursor, Feed, Window};
use std::fs::File;
use std::io::{self, Cursor as Bytes, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Something to read lines from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file by its path; pipes and devices are read as streams.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// Bytes at hand, under a name for messages.
    Memory {
        /// The name that places carry.
        name: Arc<str>,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
}

impl Source {
    /// A source in memory.
    pub fn memory(name: &str, bytes: impl Into<Arc<[u8]>>) -> Source {
        Source::Memory { name: name.into(), bytes: bytes.into() }
    }

    /// The name that places carry: the path as given, or `-`.
    pub fn name(&self) -> Arc<str> {
        match self {
            Source::Path(path) => path.to_string_lossy().into(),
            Source::Stdin => "-".into(),
            Source::Memory { name, .. } => Arc::clone(name),
        }
    }
}

/// Why a source gave no lines.
#[derive(Debug, Error)]
pub enum InputError {
    /// Nothing there.
    #[error("{0}: no such file")]
    NotFound(Arc<str>),
    /// A directory where a file was expected.
    #[error("{0} is a directory: name the files in it")]
    Directory(Arc<str>),
    /// Reading is not permitted.
    #[error("{0}: permission denied")]
    PermissionDenied(Arc<str>),
    /// A compressed file.
    #[error(
        "{name} is compressed ({format}): unpack it on the way in, as in `{command} {name} | vramledger`"
    )]
    Compressed {
        /// The source.
        name: Arc<str>,
        /// The compression.
        format: &'static str,
        /// What unpacks it to standard output.
        command: &'static str,
    },
    /// A file that is not text.
    #[error("{0} is a binary file, not a log")]
    Binary(Arc<str>),
    /// No bytes at all.
    #[error("{0} is empty")]
    Empty(Arc<str>),
    /// Any other trouble of the operating system.
    #[error("{name}: {error}")]
    Io {
        /// The source.
        name: Arc<str>,
        /// The trouble.
        error: io::Error,
    },
}

impl InputError {
    fn from_io(name: &Arc<str>, error: io::Error) -> InputError {
        let name = Arc::clone(name);
        match error.kind() {
            io::ErrorKind::NotFound => InputError::NotFound(name),
            io::ErrorKind::IsADirectory => InputError::Directory(name),
            io::ErrorKind::PermissionDenied => InputError::PermissionDenied(name),
            _ => InputError::Io { name, error },
        }
    }
}

/// What a scan went through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanSummary {
    /// Bytes read; of UTF-16, the bytes of its UTF-8 form.
    pub bytes: u64,
    /// Physical lines, the last one with or without its line feed. Where the sink stopped the scan, those before.
    pub lines: u64,
    /// How the source begins, as UTF-8, of at most 64 KiB: tells what it is where no needle was found.
    pub head: Vec<u8>,
}

/// How the scan reads. The defaults are measured; tests take others.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadPlan {
    pub stream_block: usize,
    /// Files from this size on are surveyed by threads.
    pub large: u64,
    pub survey: Plan,
}

impl Default for ReadPlan {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let survey = Plan {
            threads,
            block: 64 << 10,
            blocks_per_read: 4,
            reads_per_span: 8,
            limits: Limits::default(),
        };
        ReadPlan { stream_block: 256 << 10, large: 4 << 20, survey }
    }
}

/// More threads than this only wait for memory.
const MOST_THREADS: usize = 8;

/// How much of a source's beginning is looked at and kept.
const HEAD: u64 = 64 << 10;

/// Scans a source for needles and hands the lines around them to `sink`, in order, until it breaks.
///
/// A file that grows meanwhile is read up to the size it had at first.
///
/// # Errors
/// Where the source cannot be opened or read, is empty, compressed or binary.
pub fn scan(
    source: &Source,
    needles: &Needles,
    sink: &mut dyn FnMut(RawLine<'_>) -> ControlFlow<()>,
) -> Result<ScanSummary, InputError> {
    scan_as_planned(source, needles, ReadPlan::default(), sink)
}

pub(super) fn scan_as_planned(
    source: &Source,
    needles: &Needles,
    plan: ReadPlan,
    sink: &mut dyn FnMut(RawLine<'_>) -> ControlFlow<()>,
) -> Result<ScanSummary, InputError> {
    let name = source.name();
    let result = match source {
        Source::Path(path) => {
            let (file, size) = open(path, &name)?;
            scan_opened(file, size, &name, needles, plan, sink)?
        }
        Source::Stdin => match redirected_file() {
            Some((file, size)) => scan_opened(file, Some(size), &name, needles, plan, sink)?,
            None => {
                let mut stdin = io::stdin().lock();
                let head = examined_head(&mut stdin, &name)?;
                scan_stream(head, stdin, needles, plan, sink)
            }
        },
        Source::Memory { bytes, .. } => {
            let mut bytes: &[u8] = bytes;
            let head = examined_head(&mut bytes, &name)?;
            scan_stream(head, bytes, needles, plan, sink)
        }
    };
    let (end, head) = result.map_err(|error| InputError::from_io(&name, error))?;
    let unfinished = u64::from(end.line_start < end.offset);
    Ok(ScanSummary { bytes: end.offset, lines: end.newlines + unfinished, head })
}

/// Scans an open file: a large regular one surveyed by threads, anything else as a stream.
fn scan_opened(
    mut file: File,
    size: Option<u64>,
    name: &Arc<str>,
    needles: &Needles,
    plan: ReadPlan,
    sink: &mut dyn FnMut(RawLine<'_>) -> ControlFlow<()>,
) -> Result<io::Result<(Cursor, Vec<u8>)>, InputError> {
    let head = examined_head(&mut file, name)?;
    Ok(match size {
        Some(size) if size >= plan.large && Encoding::detect(&head) == Encoding::Utf8 => {
            scan_file(&file, size, needles, plan.survey, sink).map(|end| (end, head))
        }
        _ => scan_stream(head, file, needles, plan, sink),
    })
}

/// Standard input where it is a regular file read from its beginning, as in `vramledger < log`, and its size.
#[cfg(unix)]
fn redirected_file() -> Option<(File, u64)> {
    use std::io::Seek;
    use std::os::fd::AsFd;
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let metadata = file.metadata().ok()?;
    let whole = metadata.is_file() && file.stream_position().ok()? == 0;
    whole.then_some((file, metadata.len()))
}

/// Elsewhere standard input is always read as a stream.
#[cfg(not(unix))]
fn redirected_file() -> Option<(File, u64)> {
    None
}

/// Opens a path; its size where it is a regular file that has one.
fn open(path: &Path, name: &Arc<str>) -> Result<(File, Option<u64>), InputError> {
    let to_error = |error| InputError::from_io(name, error);
    let file = File::open(path).map_err(to_error)?;
    let metadata = file.metadata().map_err(to_error)?;
    if metadata.is_dir() {
        return Err(InputError::Directory(Arc::clone(name)));
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

/// The source's beginning, unless it says that the rest is not worth reading.
fn examined_head(reader: &mut impl Read, name: &Arc<str>) -> Result<Vec<u8>, InputError> {
    let mut head = Vec::new();
    reader.take(HEAD).read_to_end(&mut head).map_err(|error| InputError::from_io(name, error))?;
    if head.is_empty() {
        return Err(InputError::Empty(Arc::clone(name)));
    }
    if let Some((_, format, command)) = COMPRESSED.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Err(InputError::Compressed { name: Arc::clone(name), format, command });
    }
    if is_binary(&head) { Err(InputError::Binary(Arc::clone(name))) } else { Ok(head) }
}

fn scan_stream(
    head: Vec<u8>,
    rest: impl Read,
    needles: &Needles,
    plan: ReadPlan,
    sink: &mut dyn FnMut(RawLine<'_>) -> ControlFlow<()>,
) -> io::Result<(Cursor, Vec<u8>)> {
    let stream = Bytes::new(head.clone()).chain(rest);
    let (reader, head): (Box<dyn Read + '_>, _) = match Encoding::detect(&head) {
        Encoding::Utf8 => (Box::new(stream), head),
        encoding => {
            let big_endian = encoding == Encoding::Utf16Be;
            let mut text = Vec::new();
            Utf16Reader::new(head.as_slice(), big_endian).read_to_end(&mut text)?;
            (Box::new(Utf16Reader::new(stream, big_endian)), text)
        }
    };
    let window = Window::new(Feed::Stream(reader), plan.stream_block);
    let mut scanner = Scanner::new(needles, plan.survey.limits, window, sink);
    Ok((scanner.run_to_end()?, head))
}

/// How compressed files begin, what the compression is called, and what unpacks it.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    (b"\x1f\x8b", "gzip", "gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
];

/// How well-known binary files begin.
const BINARY: [&[u8]; 6] =
    [b"\x7fELF", b"PK\x03\x04", b"%PDF-", b"\x89PNG", b"SQLite format 3\0", b"\xca\xfe\xba\xbe"];

/// Whether this is no text: a well-known beginning, or more than a fifth of bytes that no text has.
///
/// NUL bytes do not count: a log that was truncated while its writer went on begins with a hole full of them.
fn is_binary(head: &[u8]) -> bool {
    if BINARY.iter().any(|magic| head.starts_with(magic)) {
        return true;
    }
    if Encoding::detect(head) != Encoding::Utf8 {
        return false;
    }
    let text = head.iter().filter(|byte| **byte != 0).count();
    let invalid: usize = head.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    let control = |byte: &&u8| matches!(byte, 1..=6 | 0x0E..=0x1A | 0x1C..=0x1F | 0x7F);
    let control = head.iter().filter(control).count();
    (invalid + control) * 5 > text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(bytes: &[u8]) -> Result<ScanSummary, InputError> {
        let needles = Needles::new(&[]).unwrap();
        scan(&Source::memory("pasted", bytes), &needles, &mut |_| ControlFlow::Continue(()))
    }

    #[test]
    fn what_is_no_log_is_refused_with_words_that_help() {
        for (bytes, words) in [
            (
                b"\x1f\x8b\x08\0rest".as_slice(),
                "pasted is compressed (gzip): unpack it on the way in, as in `gzip -dc pasted | vramledger`",
            ),
            (
                b"\x28\xb5\x2f\xfdrest",
                "pasted is compressed (zstd): unpack it on the way in, as in `zstd -dc pasted | vramledger`",
            ),
            (b"\x7fELF\x02", "pasted is a binary file, not a log"),
            (b"\x01\x02\x03\xff\xfe\x05text", "pasted is a binary file, not a log"),
            (b"", "pasted is empty"),
        ] {
            assert_eq!(outcome(bytes).unwrap_err().to_string(), words);
        }
    }

    #[test]
    fn files_that_cannot_be_opened_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let needles = Needles::new(&[]).unwrap();
        let open = |path: PathBuf| scan(&Source::Path(path), &needles, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(open(folder.path().join("none")), Err(InputError::NotFound(_))));
        assert!(matches!(open(folder.path().to_owned()), Err(InputError::Directory(_))));
    }

    #[test]
    fn holes_and_invalid_bytes_are_no_reason_to_refuse() {
        let mut bytes = vec![0; 10_000];
        bytes.extend_from_slice(b"[2026-11-29 13:51:42] caf\xe9\nline\n");
        let summary = outcome(&bytes).unwrap();
        assert_eq!((summary.bytes, summary.lines), (bytes.len() as u64, 2));
    }

    #[test]
    fn the_head_of_utf16_is_text() {
        let bytes: Vec<u8> = "a log of another kind".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(outcome(&bytes).unwrap().head, b"a log of another kind");
    }

    #[test]
    fn lines_are_counted_with_and_without_a_last_line_feed() {
        assert_eq!(outcome(b"a\nb").unwrap().lines, 2);
        assert_eq!(outcome(b"a\nb\n").unwrap().lines, 2);
        assert_eq!(outcome(b"\n").unwrap().lines, 1);
    }
}
