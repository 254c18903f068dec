//! Input: sources to logical lines.

mod line;

pub use line::LogicalLine;
