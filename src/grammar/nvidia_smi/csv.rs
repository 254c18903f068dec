//! `--query-gpu` and `--query-compute-apps`: CSV in any column order, with units in the header, in the cells or
//! nowhere.
//!
//! The header says what a column is. Without one, only rows are read whose values leave no choice.

use super::block::{Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts};
use super::cells::{bus_id_cell, is_unknown, mib_cell, number};
use super::columns::{Column, Guess, cells, fit, guess, header};
use super::notes::DumpProblem;
use crate::input::LogicalLine;
use crate::observe::{Instrument, ProcessUse};
use crate::quantity::Quantity;
use crate::time::Stamp;
use std::collections::HashSet;

/// Literals by which a scanner finds lines of this form: the fields of memory, and what rows hold.
pub(super) const HINTS: [&str; 8] = [
    "memory.total",
    "memory.used",
    "memory.free",
    "memory.reserved",
    "used_gpu_memory",
    "used_memory",
    " MiB, ",
    "GPU-",
];

/// Longer lines are no rows of these queries.
const LONGEST_LINE: usize = 4096;

/// Reads the CSV.
#[derive(Debug, Default)]
pub(super) struct Csv {
    columns: Vec<Column>,
    block: Option<Block>,
    /// Processes told in the open block: one told again begins the next sample.
    told: HashSet<(Option<String>, Option<u64>)>,
    /// Whether the missing header has been noted for this run of rows.
    noted: bool,
}

/// A row whose cells are known.
#[derive(Debug, Default)]
struct Row {
    id: DeviceId,
    device_name: Option<String>,
    driver: Option<String>,
    taken_at: Option<Stamp>,
    total: Option<Quantity>,
    used: Option<Quantity>,
    free: Option<Quantity>,
    reserved: Option<Quantity>,
    process: Option<ProcessUse>,
    /// The byte of the line at which the figure stands.
    figure_at: usize,
}

impl Row {
    fn of(line: &LogicalLine, cells: Vec<(Column, String)>) -> Row {
        let mut row = Row::default();
        let known = |cell: &str| (!is_unknown(cell)).then(|| cell.to_owned());
        for (column, cell) in cells {
            let amount = || mib_cell(&cell).flatten();
            if matches!(column, Column::Used | Column::ProcessUsed) {
                row.figure_at = line.text.rfind(cell.as_str()).unwrap_or_default();
            }
            match column {
                Column::Index => row.id.index = number(&cell),
                Column::Uuid => row.id.uuid = known(&cell),
                Column::Bus => row.id.bus = bus_id_cell(&cell),
                Column::DeviceName => row.device_name = known(&cell),
                Column::Timestamp => row.taken_at = Stamp::parse(&cell),
                Column::Driver => row.driver = known(&cell),
                Column::Total => row.total = amount(),
                Column::Used => row.used = amount(),
                Column::Free => row.free = amount(),
                Column::Reserved => row.reserved = amount(),
                Column::Pid => row.process().pid = number(&cell),
                Column::ProcessName => row.process().name = known(&cell).unwrap_or_default(),
                Column::ProcessUsed => row.process().used = amount(),
                Column::Other => {}
            }
        }
        row
    }

    fn process(&mut self) -> &mut ProcessUse {
        self.process.get_or_insert_with(|| ProcessUse {
            pid: None,
            name: String::new(),
            kind: None,
            used: None,
        })
    }
}

impl Csv {
    fn begin(&mut self, line: &LogicalLine, columns: Vec<Column>, found: &mut Found) {
        self.close(found);
        let of_processes = columns.iter().any(|column| matches!(column, Column::Pid | Column::ProcessUsed));
        let form = if of_processes { Form::ProcessCsv } else { Form::DeviceCsv };
        let mut block = found.open(&line.place, form, Instrument::NvidiaSmi);
        block.lists_all_processes = of_processes;
        self.block = Some(block);
        self.columns = columns;
    }

    fn row(&mut self, line: &LogicalLine, mut row: Row, found: &mut Found) {
        let Some(open) = &self.block else { return };
        let process = row.process.take();
        let key = (row.id.uuid.clone(), process.as_ref().and_then(|process| process.pid));
        let again = match &process {
            Some(process) => process.pid.is_some() && self.told.contains(&key),
            None => open.is_done_for(&row.id),
        };
        if again {
            let next = Block {
                lists_all_processes: open.lists_all_processes,
                ..Block::new(line.place.clone(), open.form, open.instrument)
            };
            self.finish(found);
            self.block = Some(next);
        }
        let Some(block) = &mut self.block else { return };
        block.taken_at = block.taken_at.or(row.taken_at);
        block.driver = block.driver.take().or(row.driver);
        let place = line.place.further(row.figure_at);
        if let Some(listed) = process {
            self.told.insert(key);
            let device_name = row.device_name;
            block.processes.push(ProcessFacts { place, device: row.id, device_name, listed, cut: false });
        } else {
            block.devices.push(DeviceFacts {
                name: row.device_name,
                total: row.total,
                used: row.used,
                free: row.free,
                reserved: row.reserved,
                ..DeviceFacts::new(place, row.id)
            });
        }
    }

    fn finish(&mut self, found: &mut Found) {
        self.told.clear();
        if let Some(block) = self.block.take() {
            let nameless = block.devices.iter().filter(|device| !device.id.is_known()).count();
            if nameless > 1 {
                found.note(&block.place, DumpProblem::DeviceNotNamed);
            }
            found.keep(Some(block));
        }
    }

    fn headerless(&mut self, line: &LogicalLine, cells: Vec<String>, found: &mut Found) -> bool {
        match guess(&cells) {
            Some(Guess::Columns(columns)) => {
                let Some(row) = fit(&columns, cells) else { return false };
                if self.block.is_none() {
                    let block = found.open(&line.place, Form::ProcessCsv, Instrument::NvidiaSmi);
                    self.block = Some(Block { lists_all_processes: true, ..block });
                }
                self.row(line, Row::of(line, row), found);
                true
            }
            Some(Guess::Ambiguous) => {
                if !std::mem::replace(&mut self.noted, true) {
                    found.note(&line.place, DumpProblem::HeaderMissing);
                }
                true
            }
            None => false,
        }
    }
}

/// Whether a line shows at once that it is no row, by a log's bracket prefix. Most lines that come here are such, and taking
/// cells apart costs more than looking. (A `=` shows nothing: process names hold command lines.)
fn is_log_line(text: &str) -> bool {
    text.strip_prefix('[')
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit() || first == 't'))
}

impl FormReader for Csv {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let text = line.text.trim();
        if text.len() > LONGEST_LINE || text.contains('|') || is_log_line(text) {
            return false;
        }
        if let Some(columns) = header(text) {
            // A loop prints no second header, but a script that runs the query again does.
            self.begin(line, columns, found);
            return true;
        }
        let has_commas = text.contains(',');
        if self.columns.is_empty() {
            return has_commas
                && text.contains(|letter: char| letter.is_ascii_digit())
                && cells(text).is_some_and(|cells| self.headerless(line, cells, found));
        }
        if !has_commas && self.columns.len() > 1 {
            return false;
        }
        let Some(row) = cells(text).and_then(|cells| fit(&self.columns, cells)) else { return false };
        let row = Row::of(line, row);
        self.row(line, row, found);
        true
    }

    fn close(&mut self, found: &mut Found) {
        self.finish(found);
        self.columns.clear();
        self.noted = false;
    }
}
