//! What is read as one: a file, a rotated series or an archive's member, together with the dumps that lie beside it.
//!
//! Separate because finding them, reading them and mapping them to records are done by different modules.

use super::record::Trouble;
use crate::analysis::SourceReading;
use regex::bytes::Regex;
use std::path::PathBuf;

/// Which files a fleet is made of.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Files and folders, as named; folders are walked.
    pub paths: Vec<PathBuf>,
    /// Only files of walked folders whose path matches one of these, where there are any.
    pub include: Vec<Regex>,
    /// No files or folders whose path matches one of these.
    pub exclude: Vec<Regex>,
    /// Which dump belongs to which log; the conventions where there is none.
    pub pair: Option<String>,
}

/// What is read as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The file; of a rotated series, its newest.
    pub path: PathBuf,
    /// The files of a rotated series, oldest first; empty where it is one file.
    pub parts: Vec<PathBuf>,
    /// Dumps that belong to it.
    pub dumps: Vec<PathBuf>,
    /// Bytes on the disk, for progress.
    pub bytes: u64,
    /// What kept it from being read already when it was found: a special file, a name that leads nowhere.
    pub trouble: Option<Trouble>,
}

/// What came of reading a unit; of an archive, of one member.
#[derive(Debug)]
pub struct UnitReading {
    /// Its name: the path, or `archive!member`.
    pub name: String,
    /// The files of a rotated series, oldest first; empty where it is one file.
    pub parts: Vec<String>,
    /// The dumps that were read with it.
    pub dumps: Vec<String>,
    /// `gzip`, `zstd`, `xz` or `bzip2`; `None` where it is plain.
    pub compression: Option<&'static str>,
    /// What was read, the dumps first; empty where nothing could be.
    pub readings: Vec<SourceReading>,
    /// What kept it from being read, or from being read whole.
    pub trouble: Option<Trouble>,
}
