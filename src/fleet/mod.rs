//! The fleet: many logs mapped to records, and records reduced to cohorts, outliers and failures.
//!
//! *Map* turns each file into [`Record`]s, one a launch, as soon as the file is done; *reduce* knows records only, so that
//! mapping can be done on every host and reducing once. Separate from the analysis, which knows one report at a time.

mod record;
mod unit;

pub use record::*;
pub use unit::*;
