//! `nvidia-smi -q`, whole or with `-d MEMORY`: headings with indented `key : value` lines below.
//!
//! Indentation is not relied on, since pasting loses it: a heading holds until the next one. Only the section
//! `FB Memory Usage` is device memory; BAR1 and Conf Compute have the same keys.

use super::block::{Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts};
use super::cells::{amount_cell, bus_id_cell, is_unknown, number, number_cell, offset, uuid_cell};
use super::notes::DumpProblem;
use crate::input::LogicalLine;
use crate::observe::{Instrument, MigInstance, ProcessUse};
use crate::time::Stamp;

/// The first line of the output.
const OPENING: &str = "NVSMI LOG";

/// The heading of device memory.
const FRAME_BUFFER: &str = "FB Memory Usage";

/// Literals by which a scanner finds lines of this form.
pub(super) const HINTS: [&str; 3] = [OPENING, FRAME_BUFFER, "Used GPU Memory"];

/// Keys of the parent that follow its MIG devices: from here on, figures are the parent's again.
const AFTER_INSTANCES: [&str; 6] =
    ["Accounting Mode", "Driver Model", "Serial Number", "GPU UUID", "Minor Number", "VBIOS Version"];

/// The sections whose keys matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    FrameBuffer,
    MigDevice,
    Processes,
    #[default]
    Other,
}

/// Reads the text.
#[derive(Debug, Default)]
pub(super) struct QueryText {
    block: Option<Block>,
    section: Section,
    attached: Option<usize>,
    /// Whether the last device in the block is a MIG instance whose keys are still coming.
    in_instance: bool,
    /// The instance numbers that stand in front of a process's id.
    instances: (Option<u32>, Option<u32>),
}

/// A heading: a few words without a colon.
fn is_heading(text: &str) -> bool {
    let wordy = |letter: char| letter.is_ascii_alphanumeric() || " ()-/".contains(letter);
    text.len() <= 48 && text.starts_with(|first: char| first.is_ascii_uppercase()) && text.chars().all(wordy)
}

/// `GPU 00000000:00:06.0`: the address.
fn device_heading(text: &str) -> Option<DeviceId> {
    let bus = bus_id_cell(text.strip_prefix("GPU ")?)?;
    Some(DeviceId { bus: Some(bus), ..DeviceId::default() })
}

impl QueryText {
    fn open(&mut self, line: &LogicalLine, found: &mut Found) -> &mut Block {
        self.block.get_or_insert_with(|| found.open(&line.place, Form::QueryText, Instrument::NvidiaSmi))
    }

    fn device(&mut self) -> Option<&mut DeviceFacts> {
        self.block.as_mut().and_then(|block| block.devices.last_mut())
    }

    /// The device that the MIG instances at the end of the list belong to.
    fn parent(&mut self) -> Option<&mut DeviceFacts> {
        self.block
            .as_mut()
            .and_then(|block| block.devices.iter_mut().rev().find(|device| device.id.mig.is_none()))
    }

    fn heading(&mut self, line: &LogicalLine, text: &str, found: &mut Found) -> bool {
        if text.contains(OPENING) {
            self.close(found);
            self.open(line, found);
            return true;
        }
        if let Some(id) = device_heading(text) {
            if self.block.as_ref().is_some_and(|block| block.is_done_for(&id)) {
                self.close(found);
            }
            let place = line.place.clone();
            self.open(line, found).devices.push(DeviceFacts::new(place, id));
            (self.section, self.in_instance) = (Section::Other, false);
            return true;
        }
        if self.block.is_none() && text != FRAME_BUFFER {
            return false;
        }
        if !is_heading(text) {
            return false;
        }
        self.section = match text {
            FRAME_BUFFER => {
                self.frame_buffer(line, found);
                Section::FrameBuffer
            }
            "MIG Device" => {
                self.instance(line);
                Section::MigDevice
            }
            "Processes" => {
                self.in_instance = false;
                if let Some(device) = self.parent() {
                    device.processes_listed = true;
                }
                Section::Processes
            }
            _ => Section::Other,
        };
        true
    }

    /// Device memory begins: of the open instance if it has none yet, else of the parent. A heading without a
    /// device above it is a dump whose top was cut.
    fn frame_buffer(&mut self, line: &LogicalLine, found: &mut Found) {
        let place = line.place.clone();
        if self.in_instance && self.device().is_some_and(|device| device.has_figures()) {
            self.in_instance = false;
        }
        if self.parent().is_none() {
            self.open(line, found).devices.push(DeviceFacts::new(place, DeviceId::default()));
        } else if let Some(device) = self.target() {
            device.place = place;
        }
    }

    fn target(&mut self) -> Option<&mut DeviceFacts> {
        if self.in_instance { self.device() } else { self.parent() }
    }

    fn instance(&mut self, line: &LogicalLine) {
        let Some(parent) = self.parent().map(|parent| parent.id.clone()) else { return };
        let mig = MigInstance { gpu_instance: None, compute_instance: None, device: None };
        let id = DeviceId { mig: Some(mig), ..parent };
        if let Some(block) = self.block.as_mut().filter(|block| !block.is_full()) {
            block.devices.push(DeviceFacts::new(line.place.clone(), id));
            self.in_instance = true;
        }
    }

    fn key(&mut self, line: &LogicalLine, key: &str, content: &str) {
        if self.in_instance && AFTER_INSTANCES.contains(&key) {
            self.in_instance = false;
        }
        match key {
            "Timestamp" => {
                if let (Some(block), Some(stamp)) = (&mut self.block, Stamp::parse(content)) {
                    block.taken_at = Some(stamp);
                }
            }
            "Driver Version" => {
                if let Some(block) = &mut self.block {
                    block.driver = (!is_unknown(content)).then(|| content.to_owned());
                }
            }
            "Attached GPUs" => self.attached = number(content),
            "Product Name" => {
                if let Some(device) = self.parent() {
                    device.name = (!is_unknown(content)).then(|| content.to_owned());
                }
            }
            "GPU UUID" => {
                if let Some(device) = self.parent() {
                    device.id.uuid = uuid_cell(content).map(str::to_owned);
                }
            }
            "Processes" => {
                if let Some(device) = self.parent() {
                    device.processes_listed = content == "None";
                }
            }
            _ => match self.section {
                Section::FrameBuffer => self.figure(line, key, content),
                Section::MigDevice => self.coordinate(key, content),
                Section::Processes => self.process(line, key, content),
                Section::Other => {}
            },
        }
    }

    /// A figure of device memory. The first of a kind counts: a duplicated line or a section whose heading was cut
    /// out must not replace it.
    fn figure(&mut self, line: &LogicalLine, key: &str, content: &str) {
        let Some(Some(amount)) = amount_cell(content) else { return };
        let place = line.place.further(offset(&line.text, content));
        let Some(device) = self.target() else { return };
        let slot = match key {
            "Total" => &mut device.total,
            "Reserved" => &mut device.reserved,
            "Used" => &mut device.used,
            "Free" => &mut device.free,
            _ => return,
        };
        if slot.is_none() {
            *slot = Some(amount);
            if key == "Used" {
                device.place = place;
            }
        }
    }

    fn coordinate(&mut self, key: &str, content: &str) {
        if !self.in_instance {
            return;
        }
        let Some(mig) = self.device().and_then(|device| device.id.mig.as_mut()) else { return };
        let told = number(content);
        match key {
            "Index" => mig.device = told,
            "GPU Instance ID" => mig.gpu_instance = told,
            "Compute Instance ID" => mig.compute_instance = told,
            _ => {}
        }
    }

    fn process(&mut self, line: &LogicalLine, key: &str, content: &str) {
        let device = self.parent().map(|parent| parent.id.clone()).unwrap_or_default();
        let instances = self.instances;
        let Some(block) = &mut self.block else { return };
        let known = |content: &str| (!is_unknown(content)).then(|| content.to_owned());
        match (key, block.processes.last_mut()) {
            ("GPU instance ID", _) => self.instances = (number(content), None),
            ("Compute instance ID", _) => self.instances.1 = number(content),
            ("Process ID", _) => {
                let mig = instances.0.map(|gpu| MigInstance {
                    gpu_instance: Some(gpu),
                    compute_instance: instances.1,
                    device: None,
                });
                self.instances = (None, None);
                let listed = ProcessUse {
                    pid: number_cell(content).flatten(),
                    name: String::new(),
                    kind: None,
                    used: None,
                };
                let device = DeviceId { mig, ..device };
                let place = line.place.further(offset(&line.text, content));
                block.processes.push(ProcessFacts { place, device, device_name: None, listed, cut: false });
            }
            ("Type", Some(process)) => process.listed.kind = known(content),
            ("Name", Some(process)) => process.listed.name = known(content).unwrap_or_default(),
            ("Used GPU Memory", Some(process)) => process.listed.used = amount_cell(content).flatten(),
            _ => {}
        }
    }
}

/// Numbers the devices of a block by their order, where all that are attached are shown. Returns how many are
/// shown otherwise.
pub(super) fn number_by_order(block: &mut Block, attached: Option<usize>) -> Result<(), usize> {
    let shown = block.devices.iter().filter(|device| device.id.mig.is_none()).count();
    if attached.is_some_and(|attached| attached != shown) {
        return Err(shown);
    }
    if attached.is_none() {
        return Ok(());
    }
    let mut next = 0;
    for device in &mut block.devices {
        if device.id.mig.is_none() {
            next += 1;
        }
        device.id.index = device.id.index.or_else(|| u32::checked_sub(next, 1));
    }
    Ok(())
}

impl FormReader for QueryText {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let text = line.text.trim();
        if self.heading(line, text, found) {
            return true;
        }
        if self.block.is_none() {
            return false;
        }
        let Some((key, content)) = text.split_once(':') else { return false };
        // Keys are padded, so a blank stands in front of the colon: log lines have none there.
        if !key.ends_with([' ', '\t']) {
            return false;
        }
        self.key(line, key.trim(), content.trim());
        true
    }

    fn close(&mut self, found: &mut Found) {
        let attached = self.attached.take();
        if let Some(mut block) = self.block.take() {
            if let (Err(shown), Some(attached)) = (number_by_order(&mut block, attached), attached)
                && shown > 0
            {
                found.note(&block.place, DumpProblem::SomeDevices { shown, attached });
            }
            found.keep(Some(block));
        }
        *self = QueryText::default();
    }
}
