//! The catalogue of SGLang's memory-relevant lines: wording as data, one row a template.

use crate::event::Role;
use crate::version::Version;

/// Which ranks print a line, in the releases that print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Printers {
    /// Every rank.
    EveryRank,
    /// TP rank 0 of each pipeline stage or replica.
    TpRankZero,
    /// The launcher.
    Launcher,
}

/// One row: a line of SGLang by its words.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// The catalogue's name for it, such as `load.begin`.
    pub id: &'static str,
    /// The words, with holes.
    pub pattern: &'static str,
    /// What the line is for.
    pub role: Role,
    /// The first release seen to print it.
    pub first: Version,
    /// The last release seen to print it.
    pub last: Version,
    /// Who prints it.
    pub printers: Printers,
}
impl Template {
    /// stand-in
    pub fn wording_range(&self) -> crate::version::VersionRange {
        crate::version::VersionRange { first: self.first, last: self.last }
    }
}
