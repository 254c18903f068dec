//! Which device a rank ran on, and which sample of it to compare with.
//!
//! A log hardly says it: `CUDA_VISIBLE_DEVICES` renumbers what the arguments count. So the free memory of the log is held
//! against each device of the dump, the arguments break ties, and what stays a tie is said, not guessed.

use super::UNEXPLAINED_LIMIT;
use super::processes::{carries_tag, is_server};
use crate::launch::{Launch, Rank};
use crate::ledger::Ledger;
use crate::observe::{MigInstance, Observation};
use crate::quantity::{GIB, Quantity};
use crate::time::Stamp;

/// How far a device's used memory may be from the log's to be taken for the same device at all.
const MATCH_LIMIT: i128 = GIB;

/// How the device of a rank is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceBasis {
    /// Its used memory matches that one device's only.
    Match,
    /// The arguments number it, and the dump does not speak against it.
    Argument,
    /// The user said so.
    Option,
    /// Only this device runs a process that carries the rank's name, right now.
    Process,
    /// It runs the process whose id the log gives the rank.
    Pid,
    /// The log names the card itself, by its address or its number.
    Communicator,
}

impl DeviceBasis {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceBasis::Match => "smi-match",
            DeviceBasis::Argument => "argument",
            DeviceBasis::Option => "option",
            DeviceBasis::Process => "process-name",
            DeviceBasis::Pid => "pid",
            DeviceBasis::Communicator => "nccl",
        }
    }
}

/// Several devices match a rank equally well, and nothing breaks the tie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie {
    /// The devices in question.
    pub devices: Vec<u32>,
}

/// The device of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceChoice {
    /// The device, as the instrument numbers it.
    pub device: Option<u32>,
    /// How it is known.
    pub basis: Option<DeviceBasis>,
    /// The sample to compare with.
    pub observation: Option<usize>,
    /// Where no choice was possible.
    pub tie: Option<Tie>,
}

/// Chooses a device and a sample for each rank of a launch. `mapped` is what the user gave with `--map`.
pub fn choose_devices(
    launch: &Launch,
    ledgers: &[Ledger],
    observations: &[Observation],
    mapped: &dyn Fn(&Rank) -> Option<u32>,
) -> Vec<DeviceChoice> {
    let moment = launch.ready.as_ref().and_then(|ready| ready.stamp).or(launch.last_event_at);
    launch
        .ranks
        .iter()
        .zip(ledgers)
        .map(|(rank, ledger)| choose(launch, rank, ledger, observations, mapped(rank), moment))
        .collect()
}

fn choose(
    launch: &Launch,
    rank: &Rank,
    ledger: &Ledger,
    observations: &[Observation],
    mapped: Option<u32>,
    moment: Option<Stamp>,
) -> DeviceChoice {
    let targets = targets(observations);
    let sample_of = |target: Target| nearest_sample(observations, target, moment);
    let chosen = |target: Target, basis: DeviceBasis| DeviceChoice {
        device: Some(target.0),
        basis: Some(basis),
        observation: sample_of(target),
        tie: None,
    };
    let mismatch = |target: Target| -> Option<i128> {
        let sample = observations.get(sample_of(target)?)?;
        Some(distance(sample, ledger.final_free()?)?.magnitude().low())
    };
    let within = |among: &[Target], limit: i128| -> Vec<Target> {
        let near = |target: &Target| mismatch(*target).is_some_and(|bytes| bytes <= limit);
        among.iter().copied().filter(near).collect()
    };
    // A device that is cut into slices: the slice that fits, if only one does.
    let on = |device: u32, basis: DeviceBasis| {
        let parts: Vec<Target> = targets.iter().copied().filter(|target| target.0 == device).collect();
        let fitting = within(&parts, MATCH_LIMIT);
        match (parts.as_slice(), fitting.as_slice()) {
            ([only], _) | (_, [only]) => chosen(*only, basis),
            _ => DeviceChoice { device: Some(device), basis: Some(basis), ..DeviceChoice::default() },
        }
    };
    if let Some(device) = mapped {
        return on(device, DeviceBasis::Option);
    }
    if let Some(target) = target_by_pid(observations, rank) {
        return chosen(target, DeviceBasis::Pid);
    }
    if let Some(device) = device_by_address(observations, rank) {
        return on(device, DeviceBasis::Communicator);
    }
    if let Some(device) = device_by_process(observations, rank) {
        return on(device, DeviceBasis::Process);
    }
    let numbered = rank.identity.as_ref().and_then(|identity| identity.nvml_device);
    let (argument, by_number) = match numbered {
        Some(device) => (Some(device), DeviceBasis::Communicator),
        None => (device_by_arguments(launch, rank), DeviceBasis::Argument),
    };
    let matching = within(&targets, MATCH_LIMIT);
    // Several within reach: one that closes the bridge, where the others don't, is it.
    let closing = within(&matching, UNEXPLAINED_LIMIT);
    let matching = if closing.is_empty() { matching } else { closing };
    let holds = |among: &[Target], device: u32| among.iter().any(|target| target.0 == device);
    match (matching.as_slice(), argument) {
        ([only], _) => chosen(*only, DeviceBasis::Match),
        ([], Some(device)) if holds(&targets, device) || targets.is_empty() => on(device, by_number),
        // A server may have grown by more than the limit since: of one rank and one device asked live, nothing is open.
        ([], None) if launch.ranks.len() == 1 && only_live(&targets, observations) => {
            match targets.as_slice() {
                [only] => chosen(*only, DeviceBasis::Match),
                _ => DeviceChoice::default(),
            }
        }
        ([], _) => DeviceChoice::default(),
        (several, Some(device)) if holds(several, device) => on(device, by_number),
        (several, _) => {
            let mut devices: Vec<u32> = several.iter().map(|target| target.0).collect();
            devices.dedup();
            DeviceChoice { tie: Some(Tie { devices }), ..DeviceChoice::default() }
        }
    }
}

/// Whether there is one device only, and a probe of this machine tells of it.
fn only_live(targets: &[Target], observations: &[Observation]) -> bool {
    targets.len() == 1 && observations.iter().any(|sample| sample.is_live() && sample.used.is_some())
}

/// What a rank can run on: a device, or a MIG slice of one.
type Target = (u32, Option<MigInstance>);

/// The devices and slices that were sampled. A device that is cut into slices has no memory of its own to give.
fn targets(observations: &[Observation]) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    let figures = observations.iter().filter(|sample| sample.used.is_some() && sample.total.is_some());
    for target in figures.filter_map(|sample| Some((sample.device?, sample.mig))) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    let sliced: Vec<u32> =
        targets.iter().filter(|target| target.1.is_some()).map(|target| target.0).collect();
    targets.retain(|target| target.1.is_some() || !sliced.contains(&target.0));
    targets.sort_by_key(|target| target.0);
    targets
}

/// The one device, or slice of one, where a process with the rank's id runs. `None` where none or several do, and where
/// the process can't be a server: another machine's, or a later process with the same number.
fn target_by_pid(observations: &[Observation], rank: &Rank) -> Option<Target> {
    let pid = rank.identity.as_ref()?.pid;
    let runs = |sample: &&Observation| {
        sample.processes.iter().any(|process| process.pid == Some(pid) && is_server(&process.name))
    };
    let mut found: Option<Target> = None;
    // A list of processes alone names devices by UUID; another sample tells the number.
    let same_card = |one: &Observation, other: &Observation| one.uuid.is_some() && one.uuid == other.uuid;
    for sample in observations.iter().filter(runs) {
        let named =
            || observations.iter().filter(|other| same_card(sample, other)).find_map(|other| other.device);
        let target = (sample.device.or_else(named)?, sample.mig);
        if found.is_some_and(|known| known != target) {
            return None;
        }
        found = Some(target);
    }
    found
}

/// The device at the PCI address that the log gives the rank. Of several machines' dumps none says whose it is.
fn device_by_address(observations: &[Observation], rank: &Rank) -> Option<u32> {
    let bus = rank.identity.as_ref()?.bus?;
    let mut devices: Vec<u32> = observations
        .iter()
        .filter(|sample| sample.bus == Some(bus) && sample.used.is_some())
        .filter_map(|sample| sample.device)
        .collect();
    devices.sort_unstable();
    devices.dedup();
    match devices.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// The one device where a live sample lists a process with the rank's tag in its name (`sglang::scheduler_TP0`). `None`
/// where none or several do. A dump's processes are no such evidence: it may be of another server.
fn device_by_process(observations: &[Observation], rank: &Rank) -> Option<u32> {
    let carries =
        |sample: &&Observation| sample.processes.iter().any(|process| carries_tag(&process.name, &rank.tag));
    let live = observations.iter().filter(|sample| sample.is_live() && sample.used.is_some());
    let mut devices: Vec<u32> = live.filter(carries).filter_map(|sample| sample.device).collect();
    devices.sort_unstable();
    devices.dedup();
    match devices.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// How far a sample's free memory is from the log's, the driver's reserve aside.
fn distance(sample: &Observation, free_by_log: Quantity) -> Option<Quantity> {
    if let Some(free) = sample.free {
        return Some(free - free_by_log);
    }
    let remainder = sample.total? - sample.used? - free_by_log;
    let reserve = sample.reserved.or_else(|| super::known_reserve(sample.name.as_deref()?, sample.total?));
    Some(remainder - reserve.unwrap_or(Quantity::ZERO))
}

/// The sample of a device that is nearest in time to `moment`, and from it on, where clocks allow; else the last one.
fn nearest_sample(observations: &[Observation], target: Target, moment: Option<Stamp>) -> Option<usize> {
    let samples = observations.iter().enumerate().filter(|(_, sample)| {
        sample.device == Some(target.0)
            && sample.mig == target.1
            && sample.used.is_some()
            && sample.total.is_some()
    });
    samples
        .map(|(index, sample)| {
            let apart = sample.taken_at.zip(moment).and_then(|(taken, moment)| taken.seconds_since(&moment));
            // Before ready the device was still filling: such samples rank behind all later ones.
            let rank = match apart {
                Some(seconds) if seconds >= -1.0 => (0, seconds.abs()),
                Some(seconds) => (1, seconds.abs()),
                None => (0, 0.0),
            };
            (index, rank)
        })
        .min_by(|(one, a), (other, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(other.cmp(one)))
        .map(|(index, _)| index)
}

/// The device that the launcher gives a rank: `base_gpu_id` plus the rank's number on its node times `gpu_id_step`
/// (SGLang `managers/scheduler` launch, 0.4 to 0.5.23), before `CUDA_VISIBLE_DEVICES` renumbers it.
pub(crate) fn device_by_arguments(launch: &Launch, rank: &Rank) -> Option<u32> {
    if let Some(gpu) = rank.tag.coordinates.gpu {
        return Some(gpu);
    }
    let arguments = launch.args()?;
    let size = |key: &str| arguments.integer(key).filter(|size| *size > 0).unwrap_or(1);
    let (tensor, pipeline, nodes) = (size("tp_size"), size("pp_size"), size("nnodes"));
    let coordinates = rank.tag.coordinates;
    let (tp, pp, dp) =
        (coordinates.tp.unwrap_or(0), coordinates.pp.unwrap_or(0), coordinates.dp.unwrap_or(0));
    // With DP attention the data-parallel ranks share the tensor-parallel group; otherwise each replica has its own GPUs.
    let replica = if arguments.flag("enable_dp_attention") == Some(true) {
        0
    } else {
        i128::from(dp) * tensor * pipeline
    };
    let world = tensor * pipeline;
    let per_node = (world / nodes).max(1);
    let local = (i128::from(pp) * tensor + i128::from(tp)).rem_euclid(per_node);
    let base = arguments.integer("base_gpu_id").unwrap_or(0);
    u32::try_from(base + (replica + local) * arguments.integer("gpu_id_step").unwrap_or(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Identity;
    use crate::observe::{BusId, Instrument, ProcessUse};
    use crate::place::Place;
    use crate::stage::RankTag;

    const BUS: BusId = BusId { domain: 0, bus: 0x1b, device: 0, function: 0 };

    fn rank(pid: u64) -> Rank {
        let identity = Identity { pid, bus: Some(BUS), nvml_device: None };
        Rank { tag: RankTag::default(), events: Vec::new(), identity: Some(identity) }
    }

    fn sample(device: u32, pid: u64, name: &str) -> Observation {
        let place = Place { source: "smi".into(), line: 1, column: 1 };
        let process = ProcessUse { pid: Some(pid), name: name.to_string(), kind: None, used: None };
        Observation {
            device: Some(device),
            used: Some(Quantity::exact_mib(100)),
            total: Some(Quantity::exact_mib(200)),
            processes: vec![process],
            ..Observation::unknown(place, Instrument::NvidiaSmi)
        }
    }

    fn slice(number: u32) -> Option<MigInstance> {
        Some(MigInstance { gpu_instance: Some(number), compute_instance: Some(0), device: Some(number) })
    }

    #[test]
    fn the_rank_s_process_tells_the_very_slice() {
        let instances = [(7, 1), (8, 2)]
            .map(|(pid, number)| Observation { mig: slice(number), ..sample(3, pid, "python3") });
        assert_eq!(target_by_pid(&instances, &rank(8)), Some((3, slice(2))));
    }

    #[test]
    fn a_process_that_is_no_server_or_on_two_devices_tells_nothing() {
        assert_eq!(target_by_pid(&[sample(0, 8, "Xorg")], &rank(8)), None);
        assert_eq!(target_by_pid(&[sample(0, 9, "python3")], &rank(8)), None);
        assert_eq!(target_by_pid(&[sample(0, 8, "python3"), sample(1, 8, "python3")], &rank(8)), None);
    }

    #[test]
    fn a_list_of_processes_alone_is_placed_by_the_uuid() {
        let uuid = Some("GPU-1".to_string());
        let card = Observation { uuid: uuid.clone(), processes: Vec::new(), ..sample(2, 1, "") };
        let list =
            Observation { uuid, device: None, used: None, total: None, ..sample(0, 8, "sglang::scheduler") };
        assert_eq!(target_by_pid(&[card, list], &rank(8)), Some((2, None)));
    }

    #[test]
    fn the_card_s_address_tells_the_device_whatever_its_number() {
        let at = |device, bus| Observation { bus: Some(bus), ..sample(device, 1, "") };
        let other = BusId { bus: 0x1c, ..BUS };
        assert_eq!(device_by_address(&[at(0, other), at(5, BUS)], &rank(8)), Some(5));
        assert_eq!(device_by_address(&[at(0, BUS), at(5, BUS)], &rank(8)), None);
    }
}
