//! Blocks to observations: which blocks are of one moment, which of their rows are of one device, and whose the
//! processes are.
//!
//! Separate because it is the only place that compares forms: a box numbers devices, `-q` gives their PCI
//! addresses, CSV their UUIDs, and only together they say whose process a UUID's is.

use super::block::{Block, DeviceFacts, DeviceId, Form, ProcessFacts};
use super::notes::{DumpNote, DumpProblem};
use crate::observe::{Instrument, MigInstance, Observation, ProcessUse};
use crate::quantity::{GIB, Quantity};
use crate::time::Stamp;
use std::collections::HashMap;

/// Forms printed one after another by a script are one sample if their clocks are no further apart than this.
/// Each call of nvidia-smi takes up to a second or two on a machine with eight devices.
const SAME_SAMPLE_SECONDS: f64 = 10.0;

/// Less memory than this may be in use without any process: older drivers count their own reserve as used, which
/// is 616 MiB on an H200.
const OWN_RESERVE: i128 = GIB;

/// How far ahead a process box without devices looks for the box that it may belong to.
const LOOK_AHEAD: usize = 8;

/// Blocks of one moment.
#[derive(Debug)]
struct Sample {
    blocks: Vec<Block>,
    instrument: Instrument,
    taken_at: Option<Stamp>,
}

/// Joins blocks to observations, in the order of the source.
pub(super) fn observations(blocks: Vec<Block>, notes: &mut Vec<DumpNote>) -> Vec<Observation> {
    let samples = samples(blocks).into_iter();
    // A list of devices alone is no observation: it only connects what other forms name.
    let tells =
        |block: &Block| block.form != Form::DeviceList || block.devices.iter().any(DeviceFacts::has_figures);
    let samples = samples.filter(|sample| sample.blocks.iter().any(tells));
    samples.flat_map(|sample| Devices::of(sample).observations(notes)).collect()
}

/// Groups blocks into samples.
fn samples(blocks: Vec<Block>) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let forms: Vec<Form> = blocks.iter().map(|block| block.form).collect();
    for (at, block) in blocks.into_iter().enumerate() {
        let ahead = forms.get(at + 1..).unwrap_or_default();
        match samples.last_mut() {
            Some(sample) if sample.takes(&block, ahead) => {
                sample.taken_at = sample.taken_at.or(block.taken_at);
                sample.blocks.push(block);
            }
            _ => samples.push(Sample {
                instrument: block.instrument,
                taken_at: block.taken_at,
                blocks: vec![block],
            }),
        }
    }
    samples
}

impl Sample {
    /// Whether a block is of the same moment: same instrument, a form not told yet, clocks that agree as far as
    /// there are any, and no figure that contradicts. `ahead` are the forms that follow it.
    fn takes(&self, block: &Block, ahead: &[Form]) -> bool {
        let has = |form| self.blocks.iter().any(|told| told.form == form);
        if self.instrument != block.instrument || has(block.form) {
            return false;
        }
        if block.form == Form::DeviceBox && has(Form::ProcessBox) {
            // A list before its devices is the end of the sample before, unless these devices get no list.
            let next =
                ahead.iter().take(LOOK_AHEAD).find(|form| matches!(form, Form::DeviceBox | Form::ProcessBox));
            if next == Some(&Form::ProcessBox) {
                return false;
            }
        }
        let apart = match (self.taken_at, block.taken_at) {
            (Some(one), Some(other)) => {
                other.seconds_since(&one).is_none_or(|seconds| seconds.abs() > SAME_SAMPLE_SECONDS)
            }
            _ => false,
        };
        !apart && !self.contradicts(block)
    }

    fn contradicts(&self, block: &Block) -> bool {
        let differ = |one: Option<Quantity>, other: Option<Quantity>| {
            one.zip(other).is_some_and(|(one, other)| !one.meets(other))
        };
        block.devices.iter().any(|device| {
            self.blocks.iter().flat_map(|told| &told.devices).any(|told| {
                told.id.same_as(&device.id)
                    && (differ(told.used, device.used) || differ(told.total, device.total))
            })
        })
    }
}

/// A device of a sample, with what all forms say of it.
struct Device {
    facts: DeviceFacts,
    processes: Vec<ProcessFacts>,
}

/// The devices of a sample.
struct Devices {
    instrument: Instrument,
    taken_at: Option<Stamp>,
    driver: Option<String>,
    devices: Vec<Device>,
    /// Where each process already stands: device and place in its list.
    told: HashMap<(usize, u64), usize>,
    lists_all: bool,
}

impl Devices {
    fn of(mut sample: Sample) -> Self {
        let mut devices = Devices {
            instrument: sample.instrument,
            taken_at: sample.taken_at,
            driver: sample.blocks.iter_mut().find_map(|block| block.driver.take()),
            devices: Vec::new(),
            told: HashMap::new(),
            lists_all: sample.blocks.iter().any(|block| block.lists_all_processes),
        };
        // All devices first, those with most names in front: they connect what the others name in one way only.
        let mut facts: Vec<DeviceFacts> =
            sample.blocks.iter_mut().flat_map(|block| std::mem::take(&mut block.devices)).collect();
        facts.sort_by_key(|facts| std::cmp::Reverse(names(&facts.id)));
        facts.into_iter().for_each(|facts| devices.add(facts));
        for process in sample.blocks.into_iter().flat_map(|block| block.processes) {
            devices.assign(process);
        }
        let order = |device: &Device| {
            let mig = device.facts.id.mig;
            let mig = mig.map(|mig| (mig.device, mig.gpu_instance, mig.compute_instance));
            (device.facts.id.index.is_none(), device.facts.id.index, mig)
        };
        devices.devices.sort_by_key(order);
        devices
    }

    fn add(&mut self, facts: DeviceFacts) {
        let Some(device) = self.devices.iter_mut().find(|device| device.facts.id.same_as(&facts.id)) else {
            self.devices.push(Device { facts, processes: Vec::new() });
            return;
        };
        let told = &mut device.facts;
        if told.used.is_none() && facts.used.is_some() {
            told.place = facts.place;
        }
        told.id.complete(facts.id);
        told.name = longer(told.name.take(), facts.name);
        told.total = narrower(told.total, facts.total);
        told.used = narrower(told.used, facts.used);
        told.free = narrower(told.free, facts.free);
        told.reserved = narrower(told.reserved, facts.reserved);
        told.processes_listed |= facts.processes_listed;
    }

    /// The device that a process is on, made for it where no form tells of it.
    fn owner(&mut self, process: &ProcessFacts) -> usize {
        let named = |device: &Device| device.facts.id.same_as(&process.device);
        if let Some(at) = self.devices.iter().position(named) {
            return at;
        }
        if !process.device.is_known()
            && let Some(at) = self.only_one_named(process.device_name.as_deref())
        {
            return at;
        }
        let place = process.place.clone();
        let name = process.device_name.clone();
        self.devices.push(Device {
            facts: DeviceFacts { name, ..DeviceFacts::new(place, process.device.clone()) },
            processes: Vec::new(),
        });
        self.devices.len() - 1
    }

    /// The device of that product name, if it is the only one.
    fn only_one_named(&self, name: Option<&str>) -> Option<usize> {
        let name = name?;
        let mut found = self
            .devices
            .iter()
            .enumerate()
            .filter(|(_, device)| device.facts.name.as_deref() == Some(name))
            .map(|(at, _)| at);
        found.next().filter(|_| found.next().is_none())
    }

    /// Puts a process to its device. Told by several forms, it is listed once, with the finest figure and the
    /// longest name.
    fn assign(&mut self, process: ProcessFacts) {
        let at = self.owner(&process);
        let Some(device) = self.devices.get_mut(at) else { return };
        device.facts.processes_listed = true;
        let key = process.listed.pid.map(|pid| (at, pid));
        let told = key.and_then(|key| self.told.get(&key)).and_then(|told| device.processes.get_mut(*told));
        let Some(told) = told else {
            if let Some(key) = key {
                self.told.insert(key, device.processes.len());
            }
            device.processes.push(process);
            return;
        };
        told.cut &= process.cut || process.listed.used.is_none();
        told.listed.used = narrower(told.listed.used, process.listed.used);
        told.listed.kind = told.listed.kind.take().or(process.listed.kind);
        if let Some(name) = longer(Some(std::mem::take(&mut told.listed.name)), Some(process.listed.name)) {
            told.listed.name = name;
        }
    }

    fn observations(self, notes: &mut Vec<DumpNote>) -> Vec<Observation> {
        let (instrument, taken_at, lists_all) = (self.instrument, self.taken_at, self.lists_all);
        let parents: Vec<DeviceId> = self
            .devices
            .iter()
            .filter(|device| device.facts.id.mig.is_some())
            .map(|device| DeviceId { mig: None, ..device.facts.id.clone() })
            .collect();
        let mut observations = Vec::new();
        for Device { facts, processes } in self.devices {
            let listed = facts.processes_listed || lists_all;
            remark(
                &facts,
                &processes,
                instrument,
                listed && !parents.iter().any(|id| id.same_as(&facts.id)),
                notes,
            );
            observations.push(Observation {
                taken_at,
                driver: self.driver.clone(),
                device: facts.id.index,
                mig: facts.id.mig,
                uuid: facts.id.uuid,
                name: facts.name,
                total: facts.total,
                used: facts.used,
                free: facts.free,
                reserved: facts.reserved,
                processes: processes.into_iter().map(|process| process.listed).collect(),
                processes_listed: listed,
                ..Observation::unknown(facts.place, instrument)
            });
        }
        observations
    }
}

/// Notes what the list of a device does not tell: figures cut, or nothing at all though memory is in use. The
/// processes of a device with MIG instances are listed under those.
fn remark(
    facts: &DeviceFacts,
    processes: &[ProcessFacts],
    instrument: Instrument,
    listed: bool,
    notes: &mut Vec<DumpNote>,
) {
    for process in processes.iter().filter(|process| process.cut) {
        if let ProcessUse { pid, used: Some(used), .. } = process.listed {
            notes.push(DumpNote {
                place: process.place.clone(),
                problem: DumpProblem::FigureCut { pid, used },
            });
        }
    }
    let in_use = facts.used.filter(|used| used.surely_above(OWN_RESERVE));
    if let Some(used) = in_use
        && listed
        && processes.iter().all(|process| process.listed.used.is_none())
    {
        let problem = DumpProblem::NoAttribution { instrument, used };
        notes.push(DumpNote { place: facts.place.clone(), problem });
    }
}

/// How many ways an identity can be matched by.
fn names(id: &DeviceId) -> usize {
    usize::from(id.index.is_some())
        + usize::from(id.uuid.is_some())
        + usize::from(id.bus.is_some())
        + id.mig.map_or(0, |mig: MigInstance| usize::from(mig.device.is_some()))
}

/// What both figures allow; where they contradict, or one is unknown, the first that is known.
fn narrower(one: Option<Quantity>, other: Option<Quantity>) -> Option<Quantity> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.intersect(other).unwrap_or(one)),
        _ => one.or(other),
    }
}

/// The name that is not cut: boxes end or begin a cut name with dots, pmon just ends it.
fn longer(one: Option<String>, other: Option<String>) -> Option<String> {
    let told = |name: &String| name.trim_matches('.').len();
    match (one, other) {
        (Some(one), Some(other)) if told(&other) > told(&one) => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}
