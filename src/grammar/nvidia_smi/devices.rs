//! The devices of one sample: which rows of which forms are one device's, and whose the processes are.
//!
//! Separate because it is the only place that compares identities: a box numbers devices, `-q` gives their PCI
//! addresses, CSV their UUIDs, and only together they say whose process a UUID's is.

use super::block::{DeviceFacts, DeviceId, MOST_DEVICES, ProcessFacts};
use super::join::Sample;
use super::notes::{DumpNote, DumpProblem};
use crate::observe::{BusId, Instrument, Observation, ProcessUse};
use crate::quantity::{GIB, Quantity};
use crate::time::Stamp;
use std::collections::{HashMap, HashSet};

/// Less memory than this may be in use without any process: older drivers count their own reserve as used, which
/// is 616 MiB on an H200.
const OWN_RESERVE: i128 = GIB;

/// One way of naming a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Index(u32),
    Uuid(String),
    Bus(BusId),
}

/// The ways in which an identity names its device.
fn keys(id: &DeviceId) -> impl Iterator<Item = Key> {
    let index = id.index.map(Key::Index);
    let uuid = id.uuid.clone().map(Key::Uuid);
    index.into_iter().chain(uuid).chain(id.bus.map(Key::Bus))
}

/// A device of a sample, with what all forms say of it.
struct Device {
    facts: DeviceFacts,
    processes: Vec<ProcessFacts>,
}

/// The devices of a sample.
pub(super) struct Devices {
    instrument: Instrument,
    taken_at: Option<Stamp>,
    driver: Option<String>,
    devices: Vec<Device>,
    /// Where a device of a name stands.
    by_key: HashMap<Key, Vec<usize>>,
    /// The only device of a product name; `None` where there are several.
    by_name: HashMap<String, Option<usize>>,
    /// Where each process already stands: device and place in its list.
    told: HashMap<(usize, u64), usize>,
    lists_all: bool,
}

impl Devices {
    pub fn of(mut sample: Sample) -> Self {
        let mut devices = Devices {
            instrument: sample.instrument,
            taken_at: sample.taken_at,
            driver: sample.blocks.iter_mut().find_map(|block| block.driver.take()),
            devices: Vec::new(),
            by_key: HashMap::new(),
            by_name: HashMap::new(),
            told: HashMap::new(),
            lists_all: sample.blocks.iter().any(|block| block.lists_all_processes),
        };
        // All devices first, those with most names in front: they connect what the others name in one way only.
        let mut facts: Vec<DeviceFacts> =
            sample.blocks.iter_mut().flat_map(|block| std::mem::take(&mut block.devices)).collect();
        facts.sort_by_key(|facts| std::cmp::Reverse(names(&facts.id)));
        facts.into_iter().for_each(|facts| devices.add(facts));
        devices.index_names();
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

    /// The device of an identity, if it has been told of.
    fn find(&self, id: &DeviceId) -> Option<usize> {
        let candidates = |key: Key| self.by_key.get(&key).into_iter().flatten().take(MOST_DEVICES);
        let same = |at: &&usize| self.devices.get(**at).is_some_and(|device| device.facts.id.same_as(id));
        keys(id).find_map(|key| candidates(key).find(same).copied())
    }

    /// Makes a device findable by every name that it has.
    fn index_keys(&mut self, at: usize) {
        let Some(device) = self.devices.get(at) else { return };
        for key in keys(&device.facts.id) {
            let places = self.by_key.entry(key).or_default();
            if places.last() != Some(&at) {
                places.push(at);
            }
        }
    }

    fn index_names(&mut self) {
        for (at, device) in self.devices.iter().enumerate() {
            if let Some(name) = &device.facts.name {
                self.by_name.entry(name.clone()).and_modify(|only| *only = None).or_insert(Some(at));
            }
        }
    }

    fn push(&mut self, facts: DeviceFacts) -> usize {
        let at = self.devices.len();
        self.devices.push(Device { facts, processes: Vec::new() });
        self.index_keys(at);
        at
    }

    fn add(&mut self, facts: DeviceFacts) {
        let at = self.find(&facts.id);
        let Some((at, device)) = at.and_then(|at| Some((at, self.devices.get_mut(at)?))) else {
            self.push(facts);
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
        self.index_keys(at);
    }

    /// The device that a process is on, made for it where no form tells of it. A product name alone finds its
    /// device only where that is the only one.
    fn owner(&mut self, process: &ProcessFacts) -> usize {
        let name = process.device_name.clone();
        let known = process.device.is_known();
        let found = if known {
            self.find(&process.device)
        } else {
            self.by_name.get(name.as_deref().unwrap_or_default()).copied().flatten()
        };
        found.unwrap_or_else(|| {
            let facts = DeviceFacts::new(process.place.clone(), process.device.clone());
            let at = self.push(DeviceFacts { name: name.clone(), ..facts });
            if !known {
                self.by_name.insert(name.unwrap_or_default(), Some(at));
            }
            at
        })
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

    /// What the sample says, device by device; remarks go to `notes`.
    pub fn observations(self, notes: &mut Vec<DumpNote>) -> Vec<Observation> {
        let (instrument, taken_at, lists_all) = (self.instrument, self.taken_at, self.lists_all);
        let instances = self.devices.iter().filter(|device| device.facts.id.mig.is_some());
        let parents: HashSet<Key> = instances.flat_map(|device| keys(&device.facts.id)).collect();
        let mut observations = Vec::new();
        for Device { facts, processes } in self.devices {
            let listed = facts.processes_listed || lists_all;
            let is_parent = facts.id.mig.is_none() && keys(&facts.id).any(|key| parents.contains(&key));
            remark(&facts, &processes, instrument, listed && !is_parent, notes);
            observations.push(Observation {
                taken_at,
                driver: self.driver.clone(),
                device: facts.id.index,
                mig: facts.id.mig,
                bus: facts.id.bus,
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
        + id.mig.map_or(0, |mig| usize::from(mig.device.is_some()))
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
