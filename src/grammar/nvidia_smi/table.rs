//! The boxes that instruments draw with bars: nvidia-smi's default table of every driver generation, and nvitop's.
//!
//! A row is split at its bars and each cell is read by what it holds, never by its column: widths, headings and
//! rules changed with nearly every driver generation, and pasting changes the blanks.

use super::block::{Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts};
use super::cells::{amount_cell, bus_id_within, is_unknown, offset, pair_cell};
use super::mig::mig_row;
use super::notes::DumpProblem;
use super::processes::{nvitop_row, process_row, refused_row, says_none};
use crate::input::LogicalLine;
use crate::observe::Instrument;

/// What stands before the first device, in a banner that names the instrument.
const BANNERS: [(&str, Instrument); 2] =
    [("NVIDIA-SMI", Instrument::NvidiaSmi), ("NVITOP", Instrument::Nvitop)];

/// The word behind a device's name: persistence mode, or the driver model of Windows.
const MODES: [&str; 8] = ["On", "Off", "N/A", "WDDM", "TCC", "MCDM", "ERR!", "Disabled"];

/// The characters that boxes are drawn with, upright ones first.
const BARS: [char; 4] = ['|', '│', '┃', '║'];

/// Literals by which a scanner finds lines of these boxes.
pub(super) const HINTS: [&str; 9] = [
    "NVIDIA-SMI",
    "NVITOP",
    "MiB / ",
    "GiB / ",
    "MiB |",
    "No running processes found",
    "Persistence-M",
    "Process name",
    "MIG devices",
];

/// The cells of a line between its bars; `None` for a line without any. What stands before the first bar is no
/// part of the box; a line cut at the right has no last bar.
pub(super) fn cells(text: &str) -> Option<Vec<&str>> {
    let mut parts: Vec<&str> = text.split(BARS).skip(1).collect();
    if parts.len() > 1 && parts.last().is_some_and(|last| last.trim().is_empty()) {
        parts.pop();
    }
    (!parts.is_empty()).then_some(parts)
}

/// Whether a line is a rule: drawn characters only.
pub(super) fn is_rule(text: &str) -> bool {
    let text = text.trim();
    let corner = |letter: char| "+|".contains(letter) || ('\u{2502}'..='\u{257f}').contains(&letter);
    let drawn = |letter: char| "-=─═".contains(letter) || corner(letter);
    text.starts_with(corner) && text.chars().all(drawn) && text.contains(['-', '=', '─', '═'])
}

/// What stands between the first and the last bar.
pub(super) fn inside<'a>(text: &'a str, cells: &[&str]) -> &'a str {
    match (cells.first(), cells.last()) {
        (Some(first), Some(last)) => {
            text.get(offset(text, first)..offset(text, last) + last.len()).unwrap_or_default()
        }
        _ => "",
    }
}

/// The banner's instrument and driver version.
fn banner(inside: &str) -> Option<(Instrument, Option<String>)> {
    let (_, instrument) = BANNERS.iter().find(|(words, _)| inside.contains(words))?;
    let driver = inside.split_once("Driver Version:").and_then(|(_, rest)| rest.split_whitespace().next());
    Some((*instrument, driver.filter(|word| !is_unknown(word)).map(str::to_owned)))
}

/// The first line of a device: `|   0  NVIDIA H200      On  |   00000000:00:06.0 Off |   0 |`.
fn device_line(line: &LogicalLine, cells: &[&str]) -> Option<DeviceFacts> {
    let (first, second) = (cells.first()?, cells.get(1)?);
    let mut words = first.split_whitespace();
    let index = words.next()?.parse::<u32>().ok()?;
    let mut words: Vec<&str> = words.collect();
    let mode = words.last().copied().filter(|last| MODES.contains(last));
    if mode.is_some() {
        words.pop();
    }
    let bus = bus_id_within(second);
    let nameless_bus = mode.is_some() && second.split_whitespace().all(is_unknown);
    if words.is_empty() || (bus.is_none() && !nameless_bus) {
        return None;
    }
    let id = DeviceId { bus, ..DeviceId::numbered(index) };
    let place = line.place.further(offset(&line.text, first.trim_start()));
    Some(DeviceFacts { name: Some(words.join(" ")), ..DeviceFacts::new(place, id) })
}

/// Reads the boxes.
#[derive(Debug, Default)]
pub(super) struct Table {
    devices: Option<Block>,
    /// Whether the open block is a banner that no device has followed yet.
    header_only: bool,
    /// Whether the last device's second line is still to come.
    pending: bool,
    processes: Option<Block>,
    /// Whether the rule under the process heading has passed: a rule after it ends the list.
    list_begun: bool,
    /// The line that the last figures came from: the same again is a duplicate of it.
    last_line: String,
}

impl Table {
    fn instrument(&self) -> Instrument {
        [&self.devices, &self.processes]
            .into_iter()
            .flatten()
            .next()
            .map_or(Instrument::NvidiaSmi, |block| block.instrument)
    }

    fn close_devices(&mut self, found: &mut Found) {
        if let Some(block) = &self.devices
            && self.header_only
        {
            found.note(&block.place, DumpProblem::HeaderOnly { instrument: block.instrument });
        }
        self.header_only = false;
        self.pending = false;
        found.keep(self.devices.take());
    }

    fn close_processes(&mut self, found: &mut Found) {
        found.keep(self.processes.take());
        self.list_begun = false;
    }

    fn begin(
        &mut self,
        line: &LogicalLine,
        instrument: Instrument,
        driver: Option<String>,
        found: &mut Found,
    ) {
        // A banner that came twice is one.
        if self.header_only && self.devices.as_ref().is_some_and(|block| block.driver == driver) {
            return;
        }
        self.close(found);
        self.header_only = true;
        let block = found.open(&line.place, Form::DeviceBox, instrument);
        self.devices = Some(Block { driver, ..block });
    }

    fn begin_processes(&mut self, line: &LogicalLine, found: &mut Found) {
        let instrument = self.instrument();
        self.header_only = false;
        self.close_devices(found);
        self.close_processes(found);
        self.processes = Some(Block::new(line.place.clone(), Form::ProcessBox, instrument));
    }

    /// The block that a device's row goes to. A device told again begins the next sample.
    fn block_for(&mut self, line: &LogicalLine, id: &DeviceId, found: &mut Found) -> &mut Block {
        let instrument = self.instrument();
        if self.processes.is_some() {
            self.close_processes(found);
        }
        if self.devices.as_ref().is_some_and(|block| block.is_done_for(id)) {
            self.close_devices(found);
        }
        self.header_only = false;
        self.devices.get_or_insert_with(|| found.open(&line.place, Form::DeviceBox, instrument))
    }

    /// Whether the last row was of this device: the same one again is a duplicated line.
    fn last_is(&self, id: &DeviceId) -> bool {
        self.devices.as_ref().and_then(|block| block.devices.last()).is_some_and(|last| last.id == *id)
    }

    /// Banners and headings: they part samples, and begin and end the list of processes.
    fn heading(&mut self, line: &LogicalLine, inside: &str, found: &mut Found) -> bool {
        let words = inside.trim_start();
        if let Some((instrument, driver)) = banner(inside) {
            self.begin(line, instrument, driver, found);
        } else if words.starts_with("Processes:") {
            self.begin_processes(line, found);
        } else if words.starts_with("GPU") {
            // The columns' own heading. Where the line above it was cut off, it still tells what follows.
            if words.contains("Process name") && self.processes.is_none() {
                self.begin_processes(line, found);
            } else if words.contains("Bus-Id") {
                self.close_processes(found);
            }
        } else {
            return false;
        }
        true
    }

    fn process(&mut self, line: &LogicalLine, inside: &str, found: &mut Found) -> bool {
        let listing = self.processes.is_some();
        if says_none(inside) {
            if !listing {
                self.begin_processes(line, found);
            }
            if let Some(block) = &mut self.processes {
                block.lists_all_processes = true;
            }
            return true;
        }
        if listing && let Some((_, words)) = refused_row(inside) {
            // A list of refusals only is no list, whatever ends it.
            self.list_begun = false;
            found.note(&line.place, DumpProblem::ProcessesRefused { words: words.trim().to_owned() });
            return true;
        }
        let place = line.place.further(offset(&line.text, inside.trim_start()));
        let row = if listing && self.instrument() == Instrument::Nvitop {
            nvitop_row(inside, place)
        } else {
            process_row(inside, place, !listing)
        };
        let Some(row) = row else { return false };
        if !listing {
            self.begin_processes(line, found);
        }
        if let Some(block) = &mut self.processes {
            block.lists_all_processes = true;
            // A line that came twice is one process: a process has one row per device and instance.
            let again = |last: &ProcessFacts| last.device == row.device && last.listed == row.listed;
            if !block.processes.last().is_some_and(again) {
                block.processes.push(row);
            }
        }
        true
    }

    /// A device's second line: the figures.
    fn figures(&mut self, line: &LogicalLine, cells: &[&str], found: &mut Found) -> bool {
        let Some((at, (used, total))) = cells.iter().find_map(|cell| Some((cell, pair_cell(cell)?))) else {
            // `Not Supported` in place of the pair: the device keeps unknown figures.
            let unknown = self.pending
                && cells.len() >= 3
                && cells
                    .get(1)
                    .is_some_and(|cell| !cell.trim().is_empty() && amount_cell(cell) == Some(None));
            self.pending &= !unknown;
            return unknown;
        };
        if !self.pending && self.last_line == line.text && self.devices.is_some() {
            return true;
        }
        // Without the line above it, the pair of watts in front tells a device's line from other tables, and from the
        // BAR1 line below a MIG instance.
        let of_a_device = cells.len() >= 3 && cells.first().is_some_and(|cell| cell.contains(" / "));
        if !self.pending && !of_a_device {
            return false;
        }
        let place = line.place.further(offset(&line.text, at.trim_start()));
        let pending = std::mem::take(&mut self.pending);
        let block = self.block_for(line, &DeviceId::default(), found);
        match block.devices.last_mut() {
            Some(device) if pending => {
                (device.place, device.used, device.total) = (place, used, total);
            }
            _ => block.devices.push(DeviceFacts {
                used,
                total,
                ..DeviceFacts::new(place, DeviceId::default())
            }),
        }
        line.text.clone_into(&mut self.last_line);
        true
    }

    fn device(&mut self, line: &LogicalLine, cells: &[&str], found: &mut Found) -> bool {
        if let Some(facts) = mig_row(line, cells) {
            self.pending = false;
            if !self.last_is(&facts.id) {
                self.block_for(line, &facts.id, found).devices.push(facts);
            }
            return true;
        }
        if let Some(facts) = device_line(line, cells) {
            if !(self.pending && self.last_is(&facts.id)) {
                self.block_for(line, &facts.id, found).devices.push(facts);
            }
            self.pending = true;
            return true;
        }
        self.figures(line, cells, found)
    }

    /// A rule parts devices, and after the heading's rule it ends the list of processes.
    fn rule(&mut self, text: &str) -> bool {
        let open = self.devices.is_some() || self.processes.is_some();
        self.pending = false;
        if let Some(block) = &mut self.processes {
            if self.list_begun {
                block.lists_all_processes = true;
            }
            self.list_begun |= text.contains(['=', '═']);
        }
        open
    }
}

impl FormReader for Table {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        if is_rule(&line.text) {
            return self.rule(&line.text);
        }
        let Some(cells) = cells(&line.text) else { return false };
        let inside = inside(&line.text, &cells);
        self.heading(line, inside, found)
            || (cells.len() == 1 && self.process(line, inside, found))
            || (cells.len() > 1 && self.device(line, &cells, found))
            || (line.text.trim_start().starts_with(BARS)
                && (self.devices.is_some() || self.processes.is_some()))
    }

    fn close(&mut self, found: &mut Found) {
        self.close_devices(found);
        self.close_processes(found);
        self.last_line.clear();
    }
}
