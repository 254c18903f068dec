//! The columns of `--query-gpu` and `--query-compute-apps`: what a header names, what a row without one leaves no
//! choice about, and whether a row fits.
//!
//! Separate from the reader of the rows because the fields are nvidia-smi's vocabulary, kept as data.

use super::cells::{amount_cell, bus_id_cell, is_unknown, mib_cell, number, number_cell, uuid_cell};
use crate::time::Stamp;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Column {
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

/// How product names begin: tells a device's row from a process's where no header does.
const PRODUCTS: [&str; 9] =
    ["NVIDIA", "Tesla", "GeForce", "Quadro", "TITAN", "GRID", "A100-", "A10G", "Graphics Device"];

/// The cells of one line, trimmed.
pub(super) fn cells(text: &str) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .buffer_capacity(text.len() + 1)
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
pub(super) fn header(text: &str) -> Option<Vec<Column>> {
    // Rows begin with a digit, a UUID or a product's name: this spares them the second look.
    if !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        return None;
    }
    let mut columns = cells(text)?.iter().map(|cell| column(cell)).collect::<Option<Vec<Column>>>()?;
    let of_processes = columns.iter().any(|column| matches!(column, Column::Pid | Column::ProcessUsed));
    let of_memory = columns.iter().copied().any(is_memory);
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
pub(super) fn fit(columns: &[Column], mut cells: Vec<String>) -> Option<Vec<(Column, String)>> {
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

/// What a row without a header is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Guess {
    /// Its values leave no choice.
    Columns(Vec<Column>),
    /// It is of such a query, but its columns cannot be told apart.
    Ambiguous,
}

/// Guesses the columns of a row without a header. One device, one number, one name that is no product's and one
/// amount with its unit are a process. A device's row is never without choice, since used and free differ in nothing
/// but their place.
pub(super) fn guess(cells: &[String]) -> Option<Guess> {
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
        Some(Guess::Columns(columns))
    } else if names <= 1 && amounts + numbers >= 2 {
        Some(Guess::Ambiguous)
    } else {
        None
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
            Some(Guess::Columns(_))
        ));
        for ambiguous in [
            "0, GPU-00000000-0000-4000-8000-000000000000, NVIDIA H200, 143771 MiB, 616 MiB, 122316 MiB, 20841 MiB",
            "0, NVIDIA H200, 143771, 122316",
            "GPU-00000000-0000-4000-8000-000000000000, 2135, sglang::scheduler_TP0, 122306",
            "NVIDIA H200, 122316 MiB, 143771 MiB",
        ] {
            assert_eq!(guess(&cells(ambiguous)), Some(Guess::Ambiguous), "{ambiguous}");
        }
        assert_eq!(guess(&cells("Decode batch, #running-req: 3, #token: 12, token usage: 0.95")), None);
    }
}
