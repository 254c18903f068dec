//! Why the ranks' free memory differs: the four causes need four remedies, and the message names only one of them.

use crate::event::{Edge, Event, Role};
use crate::launch::Launch;
use crate::observe::{Observation, ProcessUse};
use crate::quantity::{MIB, Quantity, mib_text};
use crate::reconcile::DeviceChoice;
use crate::stage::{Stage, Worker};

/// What a process that only touched CUDA holds at most (see the rule `foreign-process`).
const BARE_CONTEXT: i128 = 700 * MIB;

/// A cause of imbalance, with what shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imbalance {
    /// A process that is no rank's holds memory on the poorest card.
    Foreign {
        /// The device.
        device: Option<u32>,
        /// The process.
        process: ProcessUse,
    },
    /// Ranks' processes, or the launcher's, left contexts on a card that is not theirs, mostly GPU 0.
    OwnContexts {
        /// The device.
        device: Option<u32>,
        /// How many contexts beside the largest process.
        contexts: usize,
        /// What they hold together.
        held: Quantity,
    },
    /// The cards differ in size.
    UnequalCards {
        /// The smallest card's total.
        smallest: Quantity,
        /// The largest card's total.
        largest: Quantity,
    },
    /// The draft model's check ran when the target was loaded: what the ranks' targets took differs.
    DraftAfterTarget,
}

impl Imbalance {
    /// The cause in a sentence.
    pub fn words(&self) -> String {
        let on = |device: &Option<u32>| {
            device.map_or_else(|| "the poorest card".to_string(), |device| format!("GPU {device}"))
        };
        match self {
            Imbalance::Foreign { device, process } => {
                let pid = process.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                let used = process.used.map(|used| format!(" {} MiB", mib_text(used))).unwrap_or_default();
                format!("Another process holds it: {}{pid},{used} on {}.", process.name, on(device))
            }
            Imbalance::OwnContexts { device, contexts, held } => format!(
                "The server's own processes hold it: {contexts} more of them have a context on {}, {} MiB together.",
                on(device),
                mib_text(*held)
            ),
            Imbalance::UnequalCards { smallest, largest } => format!(
                "The cards differ in size: {} and {} MiB.",
                mib_text(*smallest),
                mib_text(*largest)
            ),
            Imbalance::DraftAfterTarget => {
                "The check is the draft model's, run when the target and its KV pool were loaded: what differs is what the ranks' targets took, not \
                 what others hold."
                    .into()
            }
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Imbalance::Foreign { .. } => "end that process, or give the server other cards, then start again",
            Imbalance::OwnContexts { .. } => {
                "let each process see its own card only: set CUDA_VISIBLE_DEVICES for helpers, and call torch.cuda.set_device before anything touches CUDA"
            }
            Imbalance::UnequalCards { .. } => {
                "put cards of one size into a group; with the check off, the smallest card decides for all"
            }
            Imbalance::DraftAfterTarget => {
                "nothing is to be freed: the check compares what is meant to differ; switch it off, or balance the layers (--pp, expert placement)"
            }
        }
    }
}

/// Classifies an imbalance. `None` where the input does not tell: only a process list does.
pub fn classify(
    launch: &Launch,
    devices: &[DeviceChoice],
    observations: &[Observation],
    complaint: Option<&Event>,
    difference: Option<Quantity>,
) -> Option<Imbalance> {
    if complaint.is_some_and(|complaint| target_loaded(launch, complaint)) {
        return Some(Imbalance::DraftAfterTarget);
    }
    let samples = samples(devices, observations);
    unequal(&samples).or_else(|| on_poorest(&samples, difference?))
}

/// Whether the rank that complains had ended loading a model before.
fn target_loaded(launch: &Launch, complaint: &Event) -> bool {
    launch.ranks.iter().filter(|rank| complaint.rank.text.is_empty() || rank.tag == complaint.rank).any(
        |rank| {
            rank.events.iter().any(|event| {
                event.event.place.line < complaint.place.line
                    && event.worker == Worker::Target
                    && matches!(event.event.role, Role::Stage(Stage::Weights, Edge::End, _))
            })
        },
    )
}

/// One sample of each device: those chosen for the ranks, else all that have a number.
fn samples<'a>(devices: &[DeviceChoice], observations: &'a [Observation]) -> Vec<&'a Observation> {
    let chosen: Vec<&Observation> =
        devices.iter().filter_map(|choice| observations.get(choice.observation?)).collect();
    let all = if chosen.len() >= 2 { chosen } else { observations.iter().collect() };
    let mut seen: Vec<&Observation> = Vec::new();
    for sample in all {
        if sample.total.is_some() && !seen.iter().any(|known| known.device == sample.device) {
            seen.push(sample);
        }
    }
    seen
}

/// Cards whose sizes differ by a tenth: the check compares 90 %.
fn unequal(samples: &[&Observation]) -> Option<Imbalance> {
    let totals = || samples.iter().filter_map(|sample| sample.total);
    let smallest = totals().min_by_key(|total| total.midpoint())?;
    let largest = totals().max_by_key(|total| total.midpoint())?;
    let tenth = largest.scale(9, 10)?;
    smallest.surely_below(tenth.low()).then_some(Imbalance::UnequalCards { smallest, largest })
}

/// What explains half of the difference on the card that has most in use.
fn on_poorest(samples: &[&Observation], difference: Quantity) -> Option<Imbalance> {
    let poorest = samples.iter().max_by_key(|sample| sample.used.map(Quantity::midpoint))?;
    let half = difference.midpoint() / 2;
    let elsewhere = |process: &ProcessUse| {
        samples.iter().any(|sample| {
            sample.device != poorest.device
                && sample.processes.iter().any(|other| other.pid.is_some() && other.pid == process.pid)
        })
    };
    let small = |process: &&ProcessUse| process.used.is_some_and(|used| used.surely_below(BARE_CONTEXT));
    let contexts: Vec<&ProcessUse> = poorest.processes.iter().filter(small).collect();
    let held: Quantity = contexts.iter().filter_map(|process| process.used).sum();
    if contexts.len() >= 2 && contexts.iter().any(|process| elsewhere(process)) && held.midpoint() >= half {
        return Some(Imbalance::OwnContexts { device: poorest.device, contexts: contexts.len(), held });
    }
    let mut large: Vec<&ProcessUse> = poorest
        .processes
        .iter()
        .filter(|process| process.used.is_some_and(|used| used.midpoint() >= half) && !is_rank(process))
        .collect();
    large.sort_by_key(|process| std::cmp::Reverse(process.used.map(Quantity::midpoint)));
    large.first().map(|process| Imbalance::Foreign { device: poorest.device, process: (*process).clone() })
}

/// Whether a process's name is one that SGLang gives to its ranks.
fn is_rank(process: &ProcessUse) -> bool {
    process.name.to_ascii_lowercase().contains("sglang")
}
