//! amd-smi: the texts of `static`, `metric` and `process`, the table of `monitor`, and the box that it prints without
//! a command. Its `MB` are MiB.

use crate::grammar::nvidia_smi::block::{
    Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts,
};
use crate::grammar::nvidia_smi::cells::{
    amount, amount_cell, bus_id_within, number, number_cell, offset, pair_cell, whole,
};
use crate::grammar::nvidia_smi::processes::says_none;
use crate::grammar::nvidia_smi::table::{cells, inside};
use crate::input::LogicalLine;
use crate::observe::{Instrument, ProcessUse};
use crate::quantity::Quantity;
use nom::bytes::complete::is_not;
use nom::character::complete::{multispace0, space1};
use nom::multi::many1;
use nom::sequence::preceded;

/// Literals by which a scanner finds its lines.
pub(crate) const HINTS: [&str; 7] =
    ["AMD-SMI", "TOTAL_VRAM", "USED_VRAM", "FREE_VRAM", "VRAM_MEM", "VRAM_USED", "amdgpu version"];

/// Reads amd-smi's output.
#[derive(Debug, Default)]
pub(crate) struct Amd {
    /// `GPU: 0` of the text form, until its first key shows that this is amd-smi.
    device: Option<u32>,
    /// The heading that holds in the text form.
    section: String,
    columns: Vec<String>,
    block: Option<Block>,
    /// Whether the box's banner has been seen.
    in_box: bool,
    /// The first line of a device in the box: name and place of the second are to come.
    pending: Option<DeviceFacts>,
}

impl Amd {
    /// Keeps the block. `static` tells sizes without use, `process` no sizes: both are parts of one sample with `metric`.
    fn keep(&mut self, found: &mut Found) {
        let Some(mut block) = self.block.take() else { return };
        if block.devices.iter().all(|device| device.used.is_none()) {
            let of_processes =
                block.lists_all_processes || block.devices.iter().any(|device| device.processes_listed);
            block.form = if of_processes { Form::ProcessBox } else { Form::DeviceList };
        }
        found.keep(Some(block));
    }

    fn open(&mut self, line: &LogicalLine, found: &mut Found) -> &mut Block {
        self.block.get_or_insert_with(|| found.open(&line.place, Form::Relative, Instrument::AmdSmi))
    }

    /// The text form's device in the block.
    fn facts(&mut self, line: &LogicalLine, index: u32, found: &mut Found) -> Option<&mut DeviceFacts> {
        let id = DeviceId::numbered(index);
        let block = self.open(line, found);
        if block.devices.last().is_none_or(|device| device.id.index != Some(index)) {
            block.devices.push(DeviceFacts::new(line.place.clone(), id));
        }
        block.devices.last_mut()
    }

    /// A key of the text form, under its device. Keys that are not of memory only keep the section.
    fn key(&mut self, line: &LogicalLine, key: &str, content: &str, found: &mut Found) -> bool {
        let Some(index) = self.device else { return false };
        if content.is_empty() {
            key.clone_into(&mut self.section);
            return true;
        }
        let told = || amount_cell(content).flatten();
        let place = line.place.further(offset(&line.text, content));
        let in_vram = self.section == "VRAM";
        match key {
            "TOTAL_VRAM" | "USED_VRAM" | "FREE_VRAM" | "MARKET_NAME" => {}
            "SIZE" if in_vram => {}
            "NAME" | "PID" | "VRAM_MEM" => return self.process(line, index, key, content, found),
            _ => return self.block.is_some(),
        }
        let Some(facts) = self.facts(line, index, found) else { return true };
        match key {
            "TOTAL_VRAM" | "SIZE" => facts.total = told(),
            "USED_VRAM" => (facts.used, facts.place) = (told(), place),
            "FREE_VRAM" => facts.free = told(),
            _ => facts.name = Some(content.to_owned()),
        }
        true
    }

    /// A process of the text form: name, id and memory come one after another.
    fn process(
        &mut self,
        line: &LogicalLine,
        index: u32,
        key: &str,
        content: &str,
        found: &mut Found,
    ) -> bool {
        if self.section != "PROCESS_INFO" && key != "VRAM_MEM" {
            return false;
        }
        if let Some(facts) = self.facts(line, index, found) {
            facts.processes_listed = true;
        }
        let processes = &mut self.open(line, found).processes;
        if key == "NAME" {
            let listed = ProcessUse { pid: None, name: content.to_owned(), kind: None, used: None };
            let device = DeviceId::numbered(index);
            processes.push(ProcessFacts {
                place: line.place.clone(),
                device,
                device_name: None,
                listed,
                cut: false,
            });
        } else if let Some(process) = processes.last_mut() {
            match key {
                "PID" => process.listed.pid = number_cell(content).flatten(),
                _ => process.listed.used = amount_cell(content).flatten(),
            }
        }
        true
    }

    /// A row of `monitor`: numbers with their units, under the columns of the heading.
    fn monitor_row(&mut self, line: &LogicalLine, text: &str, found: &mut Found) -> bool {
        let values = values(text);
        if values.len() != self.columns.len() {
            return false;
        }
        let row: Vec<(String, &str)> = self.columns.iter().cloned().zip(values).collect();
        let value = |name: &str| row.iter().find(|(column, _)| column == name).map(|(_, value)| *value);
        let Some(index) = value("GPU").and_then(number::<u32>) else { return false };
        let told = |name: &str| value(name).and_then(|value| amount_cell(value).flatten());
        let id = DeviceId::numbered(index);
        if self.block.as_ref().is_some_and(|block| block.is_done_for(&id)) {
            self.keep(found);
        }
        let place = line.place.further(value("VRAM_USED").map_or(0, |value| offset(&line.text, value)));
        let device = DeviceFacts {
            used: told("VRAM_USED"),
            free: told("VRAM_FREE"),
            total: told("VRAM_TOTAL"),
            ..DeviceFacts::new(place, id)
        };
        self.open(line, found).devices.push(device);
        true
    }

    /// A line of the box.
    fn box_line(&mut self, line: &LogicalLine, cells: &[&str], found: &mut Found) -> bool {
        let inside = inside(&line.text, cells);
        if let [only] = cells {
            if says_none(only) {
                self.open(line, found).lists_all_processes = true;
            } else if let Some((index, listed)) = box_process(inside) {
                let device = DeviceId::numbered(index);
                let place = line.place.clone();
                let block = self.open(line, found);
                block.lists_all_processes = true;
                block.processes.push(ProcessFacts { place, device, device_name: None, listed, cut: false });
            }
            return true;
        }
        let [first, second, ..] = cells else { return true };
        if let Some(bus) = bus_id_within(first) {
            let name = first.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
            let id = DeviceId { bus: Some(bus), ..DeviceId::default() };
            self.pending = Some(DeviceFacts { name: Some(name), ..DeviceFacts::new(line.place.clone(), id) });
            return true;
        }
        // The pair is glued to other figures by blanks only: `0 %   N/A   283/196592 MB`.
        let at = second.char_indices().find_map(|(at, _)| {
            let tail = second.get(at..)?;
            let begins = second.get(..at)?.ends_with(char::is_whitespace);
            Some((tail, pair_cell(tail)?)).filter(|_| begins)
        });
        let index = first.split_whitespace().next().and_then(number::<u32>);
        if let (Some((tail, (used, total))), Some(index)) = (at, index) {
            let place = line.place.further(offset(&line.text, tail));
            let facts =
                self.pending.take().unwrap_or_else(|| DeviceFacts::new(place.clone(), DeviceId::default()));
            let id = DeviceId { index: Some(index), ..facts.id };
            self.open(line, found).devices.push(DeviceFacts { place, used, total, id, ..facts });
        }
        true
    }
}

/// Splits a row of `monitor` into values: a word, with its unit behind it if the next word is one.
fn values(text: &str) -> Vec<&str> {
    let mut values: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let starts = word.starts_with(|first: char| first.is_ascii_digit()) || word == "N/A";
        match values.last_mut() {
            Some(last) if !starts => {
                let begin = offset(text, last);
                *last = text.get(begin..offset(text, word) + word.len()).unwrap_or(last);
            }
            _ => values.push(word),
        }
    }
    values
}

/// `0   2135  python3   2.0 MB  110.2 GB  110.3 GB  0.0 %`: the second amount is of VRAM.
fn box_process(inside: &str) -> Option<(u32, ProcessUse)> {
    let mut words = inside.split_whitespace();
    let index = number(words.next()?)?;
    let pid = number_cell(words.next()?)?;
    let name = words.next()?;
    let figures = inside.get(offset(inside, name) + name.len()..)?.trim();
    let amounts = (many1(preceded(multispace0, amount)), space1, is_not("\n"));
    let (amounts, _, _): (Vec<Quantity>, _, _) = whole(amounts, figures)?;
    let used = amounts.get(1).copied();
    Some((index, ProcessUse { pid, name: name.to_owned(), kind: None, used }))
}

impl FormReader for Amd {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let text = line.text.trim();
        if let Some(cells) = cells(text) {
            if text.contains("AMD-SMI") {
                self.close(found);
                self.in_box = true;
                return true;
            }
            let foreign = text.contains("NVIDIA-SMI") || text.contains("npu-smi");
            return self.in_box && !foreign && text.starts_with('|') && self.box_line(line, &cells, found);
        }
        if text.starts_with("GPU ") && text.contains("VRAM_USED") {
            self.close(found);
            self.columns = text.split_whitespace().map(str::to_owned).collect();
            return true;
        }
        if !self.columns.is_empty() {
            return text.starts_with(|first: char| first.is_ascii_digit())
                && self.monitor_row(line, text, found);
        }
        let Some((key, content)) = text.split_once(':') else { return false };
        let (key, content) = (key.trim(), content.trim());
        if key == "GPU" {
            let Some(index) = number(content) else { return false };
            let id = DeviceId::numbered(index);
            if self.block.as_ref().is_some_and(|block| block.is_done_for(&id)) {
                self.keep(found);
            }
            self.device = Some(index);
            self.section.clear();
            return self.block.is_some();
        }
        let is_key =
            key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        is_key && self.key(line, key, content, found)
    }

    fn close(&mut self, found: &mut Found) {
        self.keep(found);
        *self = Amd::default();
    }
}
