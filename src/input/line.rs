//! The logical line: what the grammar reads.

use crate::place::Place;
use crate::time::Stamp;
use std::sync::Arc;

/// One line as the program that printed it meant it: envelope taken off, carriage-return segments apart, glued
/// log lines cut apart, control characters and escape sequences gone.
#[derive(Debug, Clone, PartialEq)]
pub struct LogicalLine {
    /// Where its text begins in the source.
    pub place: Place,
    /// The text: valid UTF-8, no control characters but tab.
    pub text: String,
    /// Which stream of the file it belongs to, by its envelope; empty without one.
    pub stream: Arc<str>,
    /// The envelope's own clock, where it has one.
    pub envelope_time: Option<Stamp>,
    /// Whether the scanner's search hit this physical line; others came along as context.
    pub hit: bool,
    /// Whether the physical line was longer than the limit and its end is missing.
    pub cut: bool,
}
