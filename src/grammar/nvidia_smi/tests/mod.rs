//! Dumps of every form, and what the grammar makes of them. Each surprise that real dumps hold has a test of its
//! name.

mod boxes;
mod hostile;
mod queries;
mod relatives;
mod samples;

use super::{Dump, DumpProblem, parse};
use crate::input::LogicalLine;
use crate::observe::Observation;
use crate::place::Place;
use crate::quantity::Quantity;
use std::sync::Arc;

/// The lines of a text, as the input stage hands them on.
fn lines(text: &str) -> Vec<LogicalLine> {
    let source: Arc<str> = Arc::from("smi.txt");
    (1..)
        .zip(text.lines())
        .map(|(number, text)| LogicalLine {
            place: Place::new(&source, number, 1),
            text: text.to_owned(),
            stream: Arc::from(""),
            envelope_time: None,
            hit: false,
            cut: false,
        })
        .collect()
}

fn read(text: &str) -> Dump {
    parse(&lines(text))
}

fn mib(mib: i128) -> Option<Quantity> {
    Some(Quantity::whole_mib(mib))
}

/// Device, used and total of every observation.
type Figures = (Option<u32>, Option<Quantity>, Option<Quantity>);

fn figures(dump: &Dump) -> Vec<Figures> {
    dump.observations.iter().map(|seen| (seen.device, seen.used, seen.total)).collect()
}

/// Pid, name and memory of every process of a device.
fn processes(seen: &Observation) -> Vec<(Option<u64>, &str, Option<Quantity>)> {
    seen.processes.iter().map(|process| (process.pid, process.name.as_str(), process.used)).collect()
}

fn problems(dump: &Dump) -> Vec<&DumpProblem> {
    dump.notes.iter().map(|note| &note.problem).collect()
}
