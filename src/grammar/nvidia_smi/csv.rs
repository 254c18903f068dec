//! `--query-gpu` and `--query-compute-apps`: CSV in any column order, with units in the header, in the cells or
//! nowhere.
//!
//! The header says what a column is. Without one, [`guess`] reads only rows whose values leave no choice.

use super::block::{Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts};
use super::cells::{amount_cell, bus_id_cell, is_unknown, mib_cell, number, number_cell, uuid_cell};
use super::notes::DumpProblem;
use crate::input::LogicalLine;
use crate::observe::{Instrument, ProcessUse};
use crate::quantity::Quantity;
use crate::time::Stamp;
use std::collections::HashSet;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Column {
    Index,
    Uuid,
    Bus,
    DeviceName,
    Timestamp,
    Driver,
    Total,
    Used,
    Free,
    Reserved,
    Pid,
    ProcessName,
    ProcessUsed,
    /// A field that says nothing of memory.
    Other,
}

/// nvidia-smi's query fields, by the names that headers print.
const FIELDS: [(&str, Column); 17] = [
    ("index", Column::Index),
    ("uuid", Column::Uuid),
    ("gpu_uuid", Column::Uuid),
    ("pci.bus_id", Column::Bus),
    ("gpu_bus_id", Column::Bus),
    ("name", Column::DeviceName),
    ("gpu_name", Column::DeviceName),
    ("timestamp", Column::Timestamp),
    ("driver_version", Column::Driver),
    ("memory.total", Column::Total),
    ("memory.used", Column::Used),
    ("memory.free", Column::Free),
    ("memory.reserved", Column::Reserved),
    ("pid", Column::Pid),
    ("process_name", Column::ProcessName),
    ("used_gpu_memory", Column::ProcessUsed),
    ("used_memory", Column::ProcessUsed),
];

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

/// How product names begin: tells a device's row from a process's where no header does.
const PRODUCTS: [&str; 9] =
    ["NVIDIA", "Tesla", "GeForce", "Quadro", "TITAN", "GRID", "A100-", "A10G", "Graphics Device"];

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

/// The cells of one line, trimmed.
fn cells(text: &str) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let record = reader.records().next()?.ok()?;
    Some(record.iter().map(str::to_owned).collect())
}

/// The column that a header's cell names, its unit aside. `None` where the cell cannot be a field's name.
fn column(cell: &str) -> Option<Column> {
    let name = match cell.split_once(" [") {
        Some((name, unit)) if unit.ends_with(']') => name,
        Some(_) => return None,
        None => cell,
    };
    let named = |letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter);
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.chars().all(named) {
        return None;
    }
    Some(FIELDS.iter().find(|(field, _)| *field == name).map_or(Column::Other, |(_, column)| *column))
}

/// The columns of a header line: every cell names a field, and one of them is about memory or processes.
fn header(text: &str) -> Option<Vec<Column>> {
    if !HINTS.iter().any(|hint| text.contains(hint)) && !text.contains("pid") {
        return None;
    }
    let mut columns = cells(text)?.iter().map(|cell| column(cell)).collect::<Option<Vec<Column>>>()?;
    let of_processes = columns.iter().any(|column| matches!(column, Column::Pid | Column::ProcessUsed));
    let of_memory = columns.iter().any(|column| is_memory(*column));
    if of_processes {
        // In a query of processes, the alias `name` is the process's.
        for column in columns.iter_mut().filter(|column| **column == Column::DeviceName) {
            if text.contains("process_name") || text.contains("gpu_name") {
                continue;
            }
            *column = Column::ProcessName;
        }
    }
    (of_memory || (of_processes && columns.len() > 1)).then_some(columns)
}

fn is_memory(column: Column) -> bool {
    matches!(column, Column::Total | Column::Used | Column::Free | Column::Reserved | Column::ProcessUsed)
}

/// A row's cells by column. A name that holds commas has spread over several cells: it takes the surplus.
fn fit(columns: &[Column], mut cells: Vec<String>) -> Option<Vec<(Column, String)>> {
    let surplus = cells.len().checked_sub(columns.len())?;
    if surplus > 0 {
        let name = columns
            .iter()
            .position(|column| *column == Column::ProcessName)
            .or_else(|| columns.iter().position(|column| *column == Column::DeviceName))?;
        let spread: Vec<String> = cells.splice(name..=name + surplus, [String::new()]).collect();
        *cells.get_mut(name)? = spread.join(", ");
    }
    let row: Vec<(Column, String)> = columns.iter().copied().zip(cells).collect();
    row.iter().all(|(column, cell)| valid(*column, cell)).then_some(row)
}

/// Whether a cell can stand in a column: what fits no column is a line of something else.
fn valid(column: Column, cell: &str) -> bool {
    match column {
        Column::Index => number_cell::<u32>(cell).is_some(),
        Column::Pid => number_cell::<u64>(cell).is_some(),
        Column::Uuid => uuid_cell(cell).is_some() || is_unknown(cell),
        Column::Bus => bus_id_cell(cell).is_some() || is_unknown(cell),
        Column::Timestamp => Stamp::parse(cell).is_some() || is_unknown(cell),
        column if is_memory(column) => mib_cell(cell).is_some(),
        _ => !cell.is_empty(),
    }
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

/// Reads a row without a header where its values leave no choice: one device, one number, one name that is no
/// product's, one amount with its unit: a process. A device's row is never without choice, since used and free
/// differ in nothing but their place. `Err` for such a row.
fn guess(cells: &[String]) -> Option<Result<Vec<Column>, ()>> {
    let mut columns = Vec::new();
    let (mut devices, mut amounts, mut numbers, mut products) = (0, 0, 0, 0);
    for cell in cells {
        columns.push(if uuid_cell(cell).is_some() {
            devices += 1;
            Column::Uuid
        } else if bus_id_cell(cell).is_some() {
            devices += 1;
            Column::Bus
        } else if amount_cell(cell).is_some() {
            amounts += 1;
            Column::ProcessUsed
        } else if number::<u64>(cell).is_some() {
            numbers += 1;
            Column::Pid
        } else if PRODUCTS.iter().any(|product| cell.starts_with(product)) {
            products += 1;
            Column::DeviceName
        } else {
            Column::ProcessName
        });
    }
    let names = columns.iter().filter(|column| **column == Column::ProcessName).count();
    if devices + products == 0 || amounts + numbers == 0 || cells.len() < 2 {
        None
    } else if (devices, products, amounts, numbers, names) == (1, 0, 1, 1, 1) {
        Some(Ok(columns))
    } else if names <= 1 && amounts + numbers >= 2 {
        Some(Err(()))
    } else {
        None
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
            Some(Ok(columns)) => {
                let Some(row) = fit(&columns, cells) else { return false };
                if self.block.is_none() {
                    let block = found.open(&line.place, Form::ProcessCsv, Instrument::NvidiaSmi);
                    self.block = Some(Block { lists_all_processes: true, ..block });
                }
                self.row(line, Row::of(line, row), found);
                true
            }
            Some(Err(())) => {
                if !std::mem::replace(&mut self.noted, true) {
                    found.note(&line.place, DumpProblem::HeaderMissing);
                }
                true
            }
            None => false,
        }
    }
}

impl FormReader for Csv {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let text = line.text.trim();
        if text.len() > LONGEST_LINE || text.contains('|') {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_known_by_its_fields() {
        assert!(header("index, uuid, name, memory.total [MiB], memory.used [MiB]").is_some());
        assert!(header("memory.used [MiB]").is_some());
        assert!(header("gpu_uuid, pid, process_name, used_gpu_memory [MiB]").is_some());
        assert!(header("index, temperature.gpu").is_none());
        assert!(header("memory.used is high, see below").is_none());
        assert!(header("t,gpu,total,reserved,used_v2,free,used_v1,procs").is_none());
    }

    #[test]
    fn headerless_rows_are_guessed_only_without_choice() {
        let cells = |text: &str| super::cells(text).unwrap();
        assert!(matches!(
            guess(&cells(
                "GPU-00000000-0000-4000-8000-000000000000, 2135, sglang::scheduler_TP0, 122306 MiB"
            )),
            Some(Ok(_))
        ));
        for ambiguous in [
            "0, GPU-00000000-0000-4000-8000-000000000000, NVIDIA H200, 143771 MiB, 616 MiB, 122316 MiB, 20841 MiB",
            "0, NVIDIA H200, 143771, 122316",
            "GPU-00000000-0000-4000-8000-000000000000, 2135, sglang::scheduler_TP0, 122306",
            "NVIDIA H200, 122316 MiB, 143771 MiB",
        ] {
            assert_eq!(guess(&cells(ambiguous)), Some(Err(())), "{ambiguous}");
        }
        assert_eq!(guess(&cells("Decode batch, #running-req: 3, #token: 12, token usage: 0.95")), None);
    }
}
