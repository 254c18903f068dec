//! Input: from files, standard input or bytes at hand to the logical lines that the grammar reads.
//!
//! Separate from the grammar because nothing here knows what a line means. On the way: a [`Source`] is opened, large
//! buffers are searched for [`Needles`], the lines around hits are cut out ([`scan()`]), their envelopes opened, and the
//! payloads cut apart into what the program printed ([`read_lines`]). Lines that a terminal wrapped or two
//! processes tore are left to the grammar: it knows what belongs together.

mod cover;
mod encoding;
mod envelope;
mod line;
mod lines;
mod needles;
mod scan;
#[cfg(test)]
mod scan_tests;
mod segment;
mod source;
mod survey;
mod tail;
mod text;
mod window;

pub use encoding::Encoding;
pub use line::LogicalLine;
pub use lines::read_lines;
pub use needles::{Context, NeedleClass, Needles};
pub use scan::{LONGEST_SEGMENT, RawLine};
pub use source::{InputError, ScanSummary, Source, scan};
pub use tail::{Grown, tail};
