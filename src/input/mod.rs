//! Input: sources to logical lines.

mod cover;
mod encoding;
mod line;
mod needles;
mod scan;
#[cfg(test)]
mod scan_tests;
mod source;
mod survey;
mod window;

pub use encoding::Encoding;
pub use line::LogicalLine;
pub use needles::{Context, NeedleClass, Needles};
pub use scan::{LONGEST_SEGMENT, RawLine};
pub use source::{InputError, ScanSummary, Source, scan};
