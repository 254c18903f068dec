//! Which device a rank ran on, and which sample of it to compare with.
//!
//! A log hardly says it: `CUDA_VISIBLE_DEVICES` renumbers what the arguments count. So the free memory of the log is held
//! against each device of the dump, the arguments break ties, and what stays a tie is said, not guessed.

use super::UNEXPLAINED_LIMIT;
use super::processes::carries_tag;
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
}

impl DeviceBasis {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceBasis::Match => "smi-match",
            DeviceBasis::Argument => "argument",
            DeviceBasis::Option => "option",
            DeviceBasis::Process => "process-name",
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
    if let Some(device) = device_by_process(observations, rank) {
        return on(device, DeviceBasis::Process);
    }
    let argument = device_by_arguments(launch, rank);
    let matching = within(&targets, MATCH_LIMIT);
    // Several within reach: one that closes the bridge, where the others don't, is it.
    let closing = within(&matching, UNEXPLAINED_LIMIT);
    let matching = if closing.is_empty() { matching } else { closing };
    let holds = |among: &[Target], device: u32| among.iter().any(|target| target.0 == device);
    match (matching.as_slice(), argument) {
        ([only], _) => chosen(*only, DeviceBasis::Match),
        ([], Some(device)) if holds(&targets, device) || targets.is_empty() => {
            on(device, DeviceBasis::Argument)
        }
        // A server may have grown by more than the limit since: of one rank and one device asked live, nothing is open.
        ([], None) if launch.ranks.len() == 1 && only_live(&targets, observations) => {
            match targets.as_slice() {
                [only] => chosen(*only, DeviceBasis::Match),
                _ => DeviceChoice::default(),
            }
        }
        ([], _) => DeviceChoice::default(),
        (several, Some(device)) if holds(several, device) => on(device, DeviceBasis::Argument),
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
