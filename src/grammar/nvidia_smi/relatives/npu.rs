//! npu-smi (Ascend): a box whose rows are pairs of lines, device memory under `HBM-Usage(MB)`, units in the heading.

use crate::grammar::nvidia_smi::block::{
    Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts,
};
use crate::grammar::nvidia_smi::cells::{bus_id_cell, mib_number, number, offset, whole};
use crate::grammar::nvidia_smi::table::{cells, is_rule};
use crate::input::LogicalLine;
use crate::observe::{Instrument, ProcessUse};
use crate::quantity::Quantity;
use nom::bytes::complete::take_while1;
use nom::character::complete::{char, digit1, space0, space1};
use nom::combinator::map_opt;
use nom::multi::many1;
use nom::sequence::{delimited, separated_pair};
use std::collections::HashMap;

/// Literals by which a scanner finds its lines.
pub(crate) const HINTS: [&str; 3] = ["npu-smi", "HBM-Usage", "Process memory(MB)"];

/// Reads the box.
#[derive(Debug, Default)]
pub(crate) struct Npu {
    in_box: bool,
    in_processes: bool,
    /// Number and name of the device whose second line is to come.
    pending: Option<(u32, String)>,
    block: Option<Block>,
    /// The number given to each chip, by its card's number and its own on the card: processes name those.
    chips: HashMap<(u32, u32), u32>,
}

/// `0           0    / 0          3163 / 65536`: AI-core share, then pairs; the last one is of device memory.
fn device_memory(cell: &str) -> Option<(Quantity, Quantity)> {
    let mib = || map_opt(digit1, mib_number);
    let pair = separated_pair(mib(), delimited(space0, char('/'), space0), mib());
    let share = take_while1(|letter: char| letter.is_ascii_digit() || letter == '.');
    let pairs = many1(delimited(space0, pair, space0));
    let (_, _, pairs) = whole((share, space1, pairs), cell)?;
    pairs.last().copied()
}

impl Npu {
    fn device(&mut self, line: &LogicalLine, cells: &[&str], found: &mut Found) {
        let [first, second, third, ..] = cells else { return };
        let mut words = first.split_whitespace();
        let Some(lead) = words.next().and_then(number::<u32>) else { return };
        let rest: Vec<&str> = words.collect();
        if let Some(bus) = bus_id_cell(second) {
            let Some((npu, name)) = self.pending.take() else { return };
            let Some((used, total)) = device_memory(third) else { return };
            // Cards with two chips print each chip's physical number behind its number on the card.
            let index = rest.first().and_then(|word| number(word)).unwrap_or(npu);
            self.chips.insert((npu, lead), index);
            let id = DeviceId { bus: Some(bus), ..DeviceId::numbered(index) };
            let place = line.place.further(offset(&line.text, third.trim_start()));
            let facts = DeviceFacts {
                name: Some(name),
                used: Some(used),
                total: Some(total),
                ..DeviceFacts::new(place, id)
            };
            self.open(line, found).devices.push(facts);
        } else if !rest.is_empty() {
            self.pending = Some((lead, rest.join(" ")));
        }
    }

    fn process(&mut self, line: &LogicalLine, cells: &[&str], found: &mut Found) {
        if let [only] = cells {
            if only.contains("No running processes found") {
                self.open(line, found).lists_all_processes = true;
            }
            return;
        }
        let [first, pid, name, memory, ..] = cells else { return };
        let mut words = first.split_whitespace().map(number::<u32>);
        let (Some(Some(npu)), Some(pid)) = (words.next(), number::<u64>(pid)) else { return };
        let chip = words.next().flatten().unwrap_or(0);
        let device = self.chips.get(&(npu, chip)).copied().unwrap_or(npu);
        let place = line.place.further(offset(&line.text, memory.trim_start()));
        let listed =
            ProcessUse { pid: Some(pid), name: name.trim().to_owned(), kind: None, used: mib_number(memory) };
        let device = DeviceId::numbered(device);
        let block = self.open(line, found);
        block.lists_all_processes = true;
        block.processes.push(ProcessFacts { place, device, device_name: None, listed, cut: false });
    }

    fn open(&mut self, line: &LogicalLine, found: &mut Found) -> &mut Block {
        self.block.get_or_insert_with(|| found.open(&line.place, Form::Relative, Instrument::NpuSmi))
    }
}

impl FormReader for Npu {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let text = line.text.trim();
        if !self.in_box && !text.contains("npu-smi") && !text.contains("HBM-Usage") {
            return false;
        }
        if is_rule(text) {
            return true;
        }
        let Some(cells) = cells(text) else { return false };
        if text.contains("NVIDIA-SMI") || text.contains("AMD-SMI") {
            return false;
        }
        if text.contains("npu-smi") {
            self.close(found);
            self.in_box = true;
        } else if text.contains("HBM-Usage") {
            (self.in_box, self.in_processes) = (true, false);
        } else if text.contains("Process id") {
            self.in_processes = true;
        } else if self.in_processes {
            self.process(line, &cells, found);
        } else {
            self.device(line, &cells, found);
        }
        text.starts_with('|')
    }

    fn close(&mut self, found: &mut Found) {
        found.keep(self.block.take());
        *self = Npu::default();
    }
}
