//! The grammar of nvidia-smi's output in all its forms, and of its relatives.
//!
//! Separate from SGLang's grammar because the text is another program's and changes with the driver. Each form has
//! its reader; a line goes to the first that takes it, so a dump is found by content wherever it stands, with
//! log lines before, between and after. Readers make blocks, and `join` and `devices` make observations of them:
//!
//! ```text
//! lines ─▶ table · query_text · xml · csv · monitor · relatives ─▶ blocks ─▶ join, devices ─▶ observations, notes
//! ```

mod block;
pub(crate) mod cells;
mod columns;
mod csv;
mod devices;
mod join;
mod list;
mod mig;
mod monitor;
mod notes;
mod processes;
mod query_text;
mod relatives;
mod table;
#[cfg(test)]
mod tests;
mod xml;

use crate::input::LogicalLine;
use crate::observe::Observation;
use crate::place::Place;
use crate::time::Stamp;
use block::{FormReader, Found};
pub use notes::{DumpNote, DumpProblem};
use std::sync::Arc;

/// Each form's literals.
const HINTS: [&[&str]; 10] = [
    &list::HINTS,
    &table::HINTS,
    &query_text::HINTS,
    &xml::HINTS,
    &csv::HINTS,
    &monitor::HINTS,
    &relatives::GPUSTAT_HINTS,
    &relatives::ROCM_HINTS,
    &relatives::AMD_HINTS,
    &relatives::NPU_HINTS,
];

/// Literals by which a scanner finds the lines that may belong to a dump: each form's own, all rare in the lines of
/// a serving log. The lines around a hit belong to the dump as well: names, rules and `-q` keys have no literal.
pub fn hints() -> impl Iterator<Item = &'static str> {
    HINTS.into_iter().flatten().copied().chain(FAILURES)
}

/// Sentences with which an instrument says that it could not look.
const FAILURES: [&str; 5] = [
    "NVIDIA-SMI has failed",
    "Failed to initialize NVML",
    "No devices were found",
    "Unable to determine the device handle",
    "couldn't communicate with the NVIDIA driver",
];

/// A time stands at most this many lines above its dump.
const CLOCK_REACH: usize = 3;

/// Lines of a file's head that tell its kind.
const HEAD_LINES: usize = 60;

/// What a stretch of text holds of dumps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dump {
    /// Devices, sample by sample in the order of the source; within a sample by number.
    pub observations: Vec<Observation>,
    /// What could not be read, and why.
    pub notes: Vec<DumpNote>,
}

/// Reads every sample of every form in a stretch of lines. Lines that belong to no dump are passed over. The lines
/// should be of one stream: two programs' boxes torn into each other cannot be told apart by content.
pub fn parse(lines: &[LogicalLine]) -> Dump {
    let mut reader = DumpReader::default();
    for line in lines {
        reader.take(line);
    }
    reader.finish()
}

/// Whether a text that begins like this is a dump and no log: at least half of its lines are a form's.
pub fn looks_like_dump(head: &str) -> bool {
    let mut readers = DumpReader::default();
    let source: Arc<str> = Arc::from("");
    let (mut taken, mut left) = (0_usize, 0_usize);
    for (number, text) in (1..).zip(head.lines().filter(|line| !line.trim().is_empty()).take(HEAD_LINES)) {
        let line = LogicalLine {
            place: Place::new(&source, number, 1),
            text: text.to_owned(),
            stream: Arc::clone(&source),
            envelope_time: None,
            hit: true,
            cut: false,
        };
        if readers.take(&line) { taken += 1 } else { left += 1 }
    }
    let found = readers.close();
    taken >= left.max(1) && !(found.blocks.is_empty() && found.notes.is_empty())
}

/// The reader of each form.
#[derive(Default)]
struct Forms {
    xml: xml::Xml,
    gpustat: relatives::Gpustat,
    rocm: relatives::Rocm,
    npu: relatives::Npu,
    amd: relatives::Amd,
    table: table::Table,
    list: list::List,
    monitor: monitor::Monitor,
    csv: csv::Csv,
    query_text: query_text::QueryText,
}

impl Forms {
    /// In the order in which they are offered a line: those whose lines are narrower come first.
    fn in_order(&mut self) -> [&mut dyn FormReader; 10] {
        let Forms { xml, gpustat, rocm, npu, amd, table, list, monitor, csv, query_text } = self;
        [xml, gpustat, rocm, npu, amd, table, list, monitor, csv, query_text]
    }
}

/// What has been read so far of a source, line by line.
#[derive(Default)]
pub struct DumpReader {
    found: Found,
    /// Lines since a time stood on a line of its own.
    clock_age: usize,
    forms: Forms,
}

impl DumpReader {
    /// Offers a line to each form. The one that takes it ends what the others had open. Says whether one did: other
    /// lines are somebody else's.
    pub fn take(&mut self, line: &LogicalLine) -> bool {
        let DumpReader { found, clock_age, forms } = self;
        if let Some(stamp) = clock(&line.text) {
            // In `-q` text and XML the time has a key, and it is the block's own.
            if !forms.query_text.take(line, found) && !forms.xml.take(line, found) {
                found.clock = Some(stamp);
                *clock_age = 0;
            }
            return true;
        }
        if let Some(at) = FAILURES.iter().find_map(|words| line.text.find(words)) {
            let words = line.text.get(at..).unwrap_or_default().trim().to_owned();
            found.note(&line.place, DumpProblem::InstrumentFailed { words });
            return true;
        }
        *clock_age += 1;
        if *clock_age > CLOCK_REACH {
            found.clock = None;
        }
        let mut forms = forms.in_order();
        let Some(taker) = forms.iter_mut().position(|form| form.take(line, found)) else { return false };
        for (_, form) in forms.iter_mut().enumerate().filter(|(at, _)| *at != taker) {
            form.close(found);
        }
        true
    }

    /// Everything that the lines held.
    pub fn finish(self) -> Dump {
        let Found { blocks, mut notes, .. } = self.close();
        let observations = join::observations(blocks, &mut notes);
        notes.sort_by(|one, other| one.place.cmp(&other.place));
        Dump { observations, notes }
    }

    fn close(mut self) -> Found {
        for form in self.forms.in_order() {
            form.close(&mut self.found);
        }
        self.found
    }
}

/// The time in a line that is little else: `Sun Nov 29 13:52:06 2026`, also behind `watch`'s or gpustat's words.
fn clock(text: &str) -> Option<Stamp> {
    const WEEKDAYS: [&str; 7] = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
    let at = WEEKDAYS.iter().find_map(|day| text.find(day))?;
    let words: Vec<&str> = text.get(at..)?.split_whitespace().take(5).collect();
    Stamp::parse(&words.join(" "))
}
