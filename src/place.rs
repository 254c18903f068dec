//! Where a fact stands: source, line and column, carried from the bytes to the last finding.
//!
//! Separate and tiny because every layer carries it and none may lose it.

use std::fmt;
use std::sync::Arc;

/// A position in a source. Lines and columns count from 1; a column is a byte offset within its physical line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The path as the user gave it, or `-` for standard input.
    pub source: Arc<str>,
    /// The physical line.
    pub line: u64,
    /// The byte within the line.
    pub column: u64,
}

impl Place {
    /// A place in `source`.
    pub fn new(source: &Arc<str>, line: u64, column: u64) -> Self {
        Place { source: Arc::clone(source), line, column }
    }

    /// The same line, `bytes` further to the right.
    pub fn further(&self, bytes: usize) -> Self {
        Place { column: self.column.saturating_add(bytes as u64), ..self.clone() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.source, self.line, self.column)
    }
}
