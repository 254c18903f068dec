//! What a probe was told: a table of devices, and the same as CSV.

use super::page::{Page, Tone};
use super::sheet::{Align, Note, Sheet, SheetRow};
use crate::observe::{Instrument, MigInstance, Observation};
use crate::probe::Probe;
use crate::quantity::{Quantity, mib_text, mib_whole, signed_mib_text};

/// So many processes of a device are listed.
const MOST_PROCESSES: usize = 16;
/// The column of the used figures, in which processes have theirs.
const USED_COLUMN: usize = 2;
/// The heading of the CSV.
const CSV_COLUMNS: [&str; 16] = [
    "taken_at",
    "instrument",
    "device",
    "cuda_device",
    "mig",
    "uuid",
    "pci",
    "name",
    "driver",
    "total_mib",
    "used_mib",
    "free_mib",
    "reserved_mib",
    "own_context_mib",
    "processes",
    "remarks",
];

/// How a probe's table looks.
#[derive(Debug, Clone, Copy)]
pub struct ProbeTable<'a> {
    /// The first sample of a watch: the change since then is shown.
    pub first: Option<&'a Probe>,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to colour with escape codes.
    pub colour: bool,
}

/// A probe as a table. Everything that a driver or a process told is cleaned.
pub fn probe_table(probe: &Probe, options: &ProbeTable<'_>) -> String {
    let mut page = Page::new(options.width, false);
    let facts: Vec<String> = [Some(probe.taken_at.to_string()), versions(probe)]
        .into_iter()
        .flatten()
        .chain(probe.visible.notes())
        .collect();
    page.pieces_behind((Tone::Plain, ""), Tone::Dim, &facts);
    page.gap();
    let mut titles = vec!["MiB", "total", "used", "free", "reserved"];
    if options.first.is_some() {
        titles.push("since start");
    }
    let align = |title: &str| if title == "MiB" { Align::Left } else { Align::Right };
    let rows = probe.observations.iter().map(|sample| row(probe, sample, options.first)).collect();
    let columns = titles.into_iter().map(|title| (title.to_string(), align(title))).collect();
    Sheet { columns, rows }.write(&mut page);
    for sample in &probe.observations {
        for remark in sample.probe.iter().flat_map(|facts| &facts.remarks) {
            let words = format!("{} by {}: {remark}", name(sample), sample.instrument.name());
            page.prose_behind((Tone::Warning, "  ▲ "), Tone::Plain, &words);
        }
    }
    for note in &probe.notes {
        page.prose_behind((Tone::Dim, "  note  "), Tone::Dim, note);
    }
    page.finish(options.colour)
}

/// Driver and CUDA version; one line holds them, since a machine has one driver.
fn versions(probe: &Probe) -> Option<String> {
    let driver = probe.observations.iter().find_map(|sample| sample.driver.as_deref());
    let cuda = probe.observations.iter().find_map(|sample| sample.probe.as_ref()?.cuda_version.as_deref());
    match (driver, cuda) {
        (Some(driver), Some(cuda)) => Some(format!("driver {driver} · CUDA {cuda}")),
        (Some(driver), None) => Some(format!("driver {driver}")),
        (None, Some(cuda)) => Some(format!("CUDA {cuda}")),
        (None, None) => None,
    }
}

fn name(sample: &Observation) -> String {
    let number = sample.device.map_or_else(|| "?".to_string(), |device| device.to_string());
    let instance = sample.mig.map(|mig| format!(" MIG {}", instance(mig))).unwrap_or_default();
    format!("GPU {number}{instance}")
}

fn instance(mig: MigInstance) -> String {
    let part = |number: Option<u32>| number.map_or_else(|| "?".to_string(), |number| number.to_string());
    format!("{}/{}/{}", part(mig.gpu_instance), part(mig.compute_instance), part(mig.device))
}

fn figure(amount: Option<Quantity>) -> String {
    amount.map_or_else(|| "–".to_string(), mib_whole)
}

fn row(probe: &Probe, sample: &Observation, first: Option<&Probe>) -> SheetRow {
    // Both instruments tell of the same device: the second row only adds its figures.
    let repeats = sample.instrument == Instrument::Cuda
        && probe.observations.iter().any(|other| {
            other.instrument == Instrument::Nvml && other.device == sample.device && other.mig == sample.mig
        });
    let label = match (sample.instrument, sample.name.as_deref().filter(|_| !repeats)) {
        (Instrument::Cuda, None) => format!("{} by cudaMemGetInfo", name(sample)),
        (instrument, Some(product)) => format!("{} by {} · {product}", name(sample), instrument.name()),
        (instrument, None) => format!("{} by {}", name(sample), instrument.name()),
    };
    let mut cells =
        vec![label, figure(sample.total), figure(sample.used), figure(sample.free), figure(sample.reserved)];
    if let Some(first) = first {
        let change = first.twin(sample).and_then(|before| Some(sample.used? - before.used?));
        cells.push(change.map_or_else(|| "–".to_string(), signed_mib_text));
    }
    let mut notes = Vec::new();
    if !repeats {
        notes.extend(identity(sample));
        notes.extend(sample.processes.iter().take(MOST_PROCESSES).map(process));
        if sample.processes.len() > MOST_PROCESSES {
            notes.push(words(format!("and {} more processes", sample.processes.len() - MOST_PROCESSES)));
        }
    }
    if let Some(own) = sample.own_context() {
        notes.push(Note {
            label: "the probe's own context".into(),
            figure: Some((USED_COLUMN, mib_text(own))),
            remark: "left out".into(),
            tone: Tone::Dim,
        });
    }
    SheetRow { cells, tone: Tone::Plain, notes }
}

fn words(label: String) -> Note {
    Note { label, figure: None, remark: String::new(), tone: Tone::Dim }
}

/// UUID, PCI address and CUDA's number of a device.
fn identity(sample: &Observation) -> Option<Note> {
    let facts = sample.probe.as_deref();
    let pieces: Vec<String> = [
        sample.uuid.clone(),
        facts.and_then(|facts| facts.pci.clone()),
        facts.and_then(|facts| facts.cuda_device).map(|ordinal| format!("CUDA's device {ordinal}")),
        facts.filter(|facts| facts.hidden).map(|_| "hidden from CUDA".to_string()),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!pieces.is_empty()).then(|| words(pieces.join(" · ")))
}

fn process(process: &crate::observe::ProcessUse) -> Note {
    let pid = process.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let kind = process.kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    Note {
        label: format!("{}{pid}{kind}", process.name),
        figure: Some((USED_COLUMN, figure(process.used))),
        remark: String::new(),
        tone: Tone::Dim,
    }
}

/// A probe as CSV, one row a device and instrument. Figures are MiB with as many decimals as the bytes need; unknown cells
/// are empty.
///
/// # Errors
/// Where the rows cannot be built: never for observations.
pub fn probe_csv(probe: &Probe, heading: bool) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if heading {
        writer.write_record(CSV_COLUMNS)?;
    }
    for sample in &probe.observations {
        let facts = sample.probe.as_deref();
        let mib =
            |amount: Option<Quantity>| amount.map(|amount| amount.mib().to_string()).unwrap_or_default();
        let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        let processes: Vec<String> = sample
            .processes
            .iter()
            .map(|process| {
                let pid = process.pid.map(|pid| pid.to_string()).unwrap_or_default();
                format!("{pid}:{}:{}", process.name, mib(process.used))
            })
            .collect();
        let cells = [
            sample.taken_at.map(|stamp| stamp.to_string()).unwrap_or_default(),
            sample.instrument.name().to_string(),
            number(sample.device),
            number(facts.and_then(|facts| facts.cuda_device)),
            sample.mig.map(instance).unwrap_or_default(),
            sample.uuid.clone().unwrap_or_default(),
            facts.and_then(|facts| facts.pci.clone()).unwrap_or_default(),
            sample.name.clone().unwrap_or_default(),
            sample.driver.clone().unwrap_or_default(),
            mib(sample.total),
            mib(sample.used),
            mib(sample.free),
            mib(sample.reserved),
            mib(sample.own_context()),
            processes.join(";"),
            facts.map(|facts| facts.remarks.join("; ")).unwrap_or_default(),
        ];
        // A name may hold anything; control characters would reach a terminal that shows the file.
        writer.write_record(cells.iter().map(|cell| crate::text::clean(cell, false)))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
