//! The grammar of nvidia-smi's output in all its forms, and of its relatives.
//!
//! Separate from SGLang's grammar because the text is another program's and changes with the driver. Each form has
//! its reader; a line goes to the first that takes it, so a dump is found by content wherever it stands, with
//! log lines before, between and after. Readers make blocks, and [`join`] makes observations of them:
//!
//! ```text
//! lines ─▶ table · query_text · xml · csv · monitor · relatives ─▶ blocks ─▶ join ─▶ observations, notes
//! ```

mod block;
mod cells;
mod csv;
mod join;
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

/// Literals by which a scanner finds the lines that may belong to a dump: each form's own, all rare in the lines of
/// a serving log. The lines around a hit belong to the dump as well: names, rules and `-q` keys have no literal.
pub const HINTS: &[&[&str]] = &[
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

/// Reads every sample of every form in a stretch of lines. Lines that belong to no dump are passed over.
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

/// The readers of all forms, fed line by line.
#[derive(Default)]
pub struct DumpReader {
    found: Found,
    /// Lines since a time stood on a line of its own.
    clock_age: usize,
    xml: xml::Xml,
    query_text: query_text::QueryText,
    gpustat: relatives::Gpustat,
    rocm: relatives::Rocm,
    amd: relatives::Amd,
    npu: relatives::Npu,
    table: table::Table,
    monitor: monitor::Monitor,
    csv: csv::Csv,
}

impl DumpReader {
    /// Offers a line to each form, the narrow ones first; the one that takes it ends what the others had open. Says
    /// whether one did: other lines are somebody else's.
    pub fn take(&mut self, line: &LogicalLine) -> bool {
        let DumpReader { found, clock_age, xml, query_text, gpustat, rocm, amd, npu, table, monitor, csv } =
            self;
        if let Some(stamp) = clock(&line.text) {
            // In `-q` text and XML the time has a key, and it is the block's own.
            if !query_text.take(line, found) && !xml.take(line, found) {
                found.clock = Some(stamp);
                *clock_age = 0;
            }
            return true;
        }
        if let Some(words) = FAILURES.iter().find(|words| line.text.contains(*words)) {
            let at = line.text.find(words).unwrap_or_default();
            let words = line.text.get(at..).unwrap_or_default().trim().to_owned();
            found.note(&line.place, DumpProblem::InstrumentFailed { words });
            return true;
        }
        *clock_age += 1;
        if *clock_age > CLOCK_REACH {
            found.clock = None;
        }
        let mut forms: [&mut dyn FormReader; 9] =
            [xml, gpustat, rocm, npu, amd, table, monitor, csv, query_text];
        let Some(taker) = forms.iter_mut().position(|form| form.take(line, found)) else { return false };
        for (at, form) in forms.iter_mut().enumerate() {
            if at != taker {
                form.close(found);
            }
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
        let DumpReader { found, xml, query_text, gpustat, rocm, amd, npu, table, monitor, csv, .. } =
            &mut self;
        let forms: [&mut dyn FormReader; 9] = [xml, gpustat, rocm, npu, amd, table, monitor, csv, query_text];
        for form in forms {
            form.close(found);
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
