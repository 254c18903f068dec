//! `nvidia-smi -q -x`: the XML log.
//!
//! Read by quick-xml, but line by line with a stack of our own: a dump with lines missing, or with log lines
//! between, still gives what stands in it, and every figure keeps its place.

use super::block::{Block, DeviceFacts, DeviceId, Form, FormReader, Found, ProcessFacts};
use super::cells::{amount_cell, bus_id_cell, is_unknown, number, number_cell, uuid_cell};
use super::notes::DumpProblem;
use super::query_text::number_by_order;
use crate::input::LogicalLine;
use crate::observe::{Instrument, MigInstance, ProcessUse};
use crate::time::Stamp;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// The root element.
const ROOT: &str = "nvidia_smi_log";

/// Literals by which a scanner finds lines of this form.
pub(super) const HINTS: [&str; 5] =
    ["<nvidia_smi_log", "</nvidia_smi_log>", "<gpu id=", "fb_memory_usage", "<used_memory>"];

/// Elements nest less deeply than this; deeper ones are damage.
const DEEPEST: usize = 32;

/// Reads the XML.
#[derive(Debug, Default)]
pub(super) struct Xml {
    block: Option<Block>,
    attached: Option<usize>,
    /// Names of the open elements, outermost first.
    open: Vec<String>,
    /// The text of the innermost element so far.
    text: String,
    /// Inside a comment that began on an earlier line.
    in_comment: bool,
}

impl Xml {
    fn begins(text: &str) -> bool {
        text.contains("<nvidia_smi_log") || text.contains("<gpu id=")
    }

    fn is_in(&self, element: &str) -> bool {
        self.open.iter().any(|open| open == element)
    }

    fn start(&mut self, line: &LogicalLine, name: &str, gpu_id: Option<&str>, found: &mut Found) {
        if name == ROOT {
            self.close(found);
        }
        let block =
            self.block.get_or_insert_with(|| found.open(&line.place, Form::Xml, Instrument::NvidiaSmi));
        let place = line.place.clone();
        match name {
            "gpu" => {
                let id = DeviceId { bus: gpu_id.and_then(bus_id_cell), ..DeviceId::default() };
                // An end tag that was cut out must not nest this device in the one before.
                self.open.retain(|open| open == ROOT);
                if block.is_done_for(&id) {
                    self.finish(found);
                    let mut next = Block::new(place.clone(), Form::Xml, Instrument::NvidiaSmi);
                    next.devices.push(DeviceFacts::new(place, id));
                    self.block = Some(next);
                } else {
                    block.devices.push(DeviceFacts::new(place, id));
                }
            }
            "mig_device" if !block.is_full() => {
                let mig = MigInstance { gpu_instance: None, compute_instance: None, device: None };
                let parent = block.devices.iter().rfind(|device| device.id.mig.is_none());
                let id =
                    DeviceId { mig: Some(mig), ..parent.map(|parent| parent.id.clone()).unwrap_or_default() };
                block.devices.push(DeviceFacts::new(place, id));
            }
            "processes" => {
                if let Some(device) = parent(block) {
                    device.processes_listed = true;
                }
            }
            "process_info" if self.open.iter().any(|open| open == "processes") => {
                let listed = ProcessUse { pid: None, name: String::new(), kind: None, used: None };
                let device = parent(block).map(|device| device.id.clone()).unwrap_or_default();
                block.processes.push(ProcessFacts { place, device, device_name: None, listed, cut: false });
            }
            _ => {}
        }
        if self.open.len() < DEEPEST {
            self.open.push(name.to_owned());
        }
        self.text.clear();
    }

    /// An element with its text is complete.
    fn end(&mut self, line: &LogicalLine, name: &str, found: &mut Found) {
        let content = std::mem::take(&mut self.text);
        let content = content.trim();
        if self.open.last().is_some_and(|open| open == name) && !content.is_empty() {
            self.content(line, name, content);
        }
        if let Some(at) = self.open.iter().rposition(|open| open == name) {
            self.open.truncate(at);
        }
        if name == ROOT {
            self.close(found);
        }
    }

    fn content(&mut self, line: &LogicalLine, name: &str, content: &str) {
        let in_instance = self.is_in("mig_device");
        let enclosing = self.open.iter().rev().nth(1).cloned().unwrap_or_default();
        let Some(block) = &mut self.block else { return };
        match (enclosing.as_str(), name) {
            (_, "timestamp") => block.taken_at = Stamp::parse(content).or(block.taken_at),
            (_, "driver_version") => block.driver = (!is_unknown(content)).then(|| content.to_owned()),
            (_, "attached_gpus") => self.attached = number(content),
            ("process_info", _) => process_content(block, name, content),
            ("mig_device", _) => {
                let Some(mig) = block.devices.last_mut().and_then(|device| device.id.mig.as_mut()) else {
                    return;
                };
                match name {
                    "index" => mig.device = number(content),
                    "gpu_instance_id" => mig.gpu_instance = number(content),
                    "compute_instance_id" => mig.compute_instance = number(content),
                    _ => {}
                }
            }
            ("fb_memory_usage", _) => {
                let device = if in_instance { block.devices.last_mut() } else { parent(block) };
                let (Some(device), Some(amount)) = (device, amount_cell(content)) else { return };
                match name {
                    "total" => device.total = amount,
                    "reserved" => device.reserved = amount,
                    "used" => {
                        device.used = amount;
                        let printed = line.text.find(content).unwrap_or_default();
                        device.place = line.place.further(printed);
                    }
                    "free" => device.free = amount,
                    _ => {}
                }
            }
            (_, "uuid") => {
                if let Some(device) = parent(block) {
                    device.id.uuid = uuid_cell(content).map(str::to_owned);
                }
            }
            (_, "product_name") => {
                if let Some(device) = parent(block) {
                    device.name = (!is_unknown(content)).then(|| content.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Reads the line's events. What is no XML ends the line with a note.
    fn read(&mut self, line: &LogicalLine, text: &str, found: &mut Found) {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        loop {
            match reader.read_event() {
                Ok(Event::Start(element)) => {
                    let id = element.try_get_attribute("id").ok().flatten().map(|id| id.value.into_owned());
                    self.start(line, element.name().as_ref(), id.as_deref(), found);
                }
                Ok(Event::Empty(element)) => {
                    let name = element.name().as_ref().to_owned();
                    self.start(line, &name, None, found);
                    self.end(line, &name, found);
                }
                Ok(Event::End(element)) => self.end(line, element.name().as_ref(), found),
                Ok(Event::Text(text)) => self.text.push_str(&text.into_inner()),
                Ok(Event::GeneralRef(entity)) => {
                    let named = resolve_predefined_entity(&entity.xml10_content()).map(str::to_owned);
                    let numbered = entity.resolve_char_ref().ok().flatten().map(String::from);
                    self.text.push_str(&named.or(numbered).unwrap_or_default());
                }
                Ok(Event::Eof) => return,
                Ok(_) => {}
                Err(error) => {
                    found.note(&line.place, DumpProblem::DamagedXml { reason: error.to_string() });
                    return;
                }
            }
        }
    }

    /// Keeps the block, its devices numbered by order.
    fn finish(&mut self, found: &mut Found) {
        let attached = self.attached.take();
        if let Some(mut block) = self.block.take() {
            if let (Err(shown), Some(attached)) = (number_by_order(&mut block, attached), attached)
                && shown > 0
            {
                found.note(&block.place, DumpProblem::SomeDevices { shown, attached });
            }
            found.keep(Some(block));
        }
    }
}

/// The device whose element was opened last.
fn parent(block: &mut Block) -> Option<&mut DeviceFacts> {
    block.devices.iter_mut().rfind(|device| device.id.mig.is_none())
}

fn process_content(block: &mut Block, name: &str, content: &str) {
    let Some(process) = block.processes.last_mut() else { return };
    let instance = |mig: &mut Option<MigInstance>| {
        mig.unwrap_or(MigInstance { gpu_instance: None, compute_instance: None, device: None })
    };
    match name {
        "pid" => process.listed.pid = number_cell(content).flatten(),
        "type" => process.listed.kind = (!is_unknown(content)).then(|| content.to_owned()),
        "process_name" => process.listed.name = content.to_owned(),
        "used_memory" => process.listed.used = amount_cell(content).flatten(),
        "gpu_instance_id" => {
            if let Some(gpu) = number(content) {
                let mig = &mut process.device.mig;
                *mig = Some(MigInstance { gpu_instance: Some(gpu), ..instance(mig) });
            }
        }
        "compute_instance_id" => {
            if let Some(compute) = number(content) {
                let mig = &mut process.device.mig;
                *mig = Some(MigInstance { compute_instance: Some(compute), ..instance(mig) });
            }
        }
        _ => {}
    }
}

impl FormReader for Xml {
    fn take(&mut self, line: &LogicalLine, found: &mut Found) -> bool {
        let mut text = line.text.trim();
        if self.block.is_none() && !Self::begins(text) {
            return text.starts_with("<!DOCTYPE nvidia_smi_log") || text.starts_with("<?xml");
        }
        if self.in_comment {
            if let Some((_, behind)) = text.split_once("-->") {
                self.in_comment = false;
                text = behind.trim_start();
            } else {
                return text.starts_with('<');
            }
        }
        if let Some((before, behind)) = text.rsplit_once("<!--")
            && !behind.contains("-->")
        {
            self.in_comment = true;
            text = before;
        } else if text.starts_with("<!") && !text.starts_with("<!--") {
            return true;
        }
        // A log line in between begins with no tag; the text `None` of an empty list does not matter.
        let Some(at) = text.find('<').filter(|at| *at == 0 || Self::begins(text)) else { return false };
        self.read(line, text.get(at..).unwrap_or_default(), found);
        true
    }

    fn close(&mut self, found: &mut Found) {
        self.finish(found);
        *self = Xml::default();
    }
}
