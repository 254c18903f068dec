//! Which process and which card a rank is, where the log itself says so.
//!
//! Only NCCL's lines do (`NCCL_DEBUG=INFO`). A server has many communicators; the one that joins all of its ranks numbers
//! them as the launcher does, pipeline stage by pipeline stage, so its lines are taken and no other's.

use super::Launch;
use crate::event::{Event, Value};
use crate::grammar::sglang::catalogue::machine::RANK_OF_COMMUNICATOR;
use crate::observe::BusId;
use crate::stage::Coordinates;
use std::sync::Arc;

/// A rank's process and card by its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its process id, in the server's namespace.
    pub pid: u64,
    /// The card's PCI address: the same inside and outside of containers.
    pub bus: Option<BusId>,
    /// The card as NVML numbers it where the server runs; NCCL 2.17 and older don't print it.
    pub nvml_device: Option<u32>,
}

/// Takes the communicators' lines out of a launch's notes, and gives each rank its identity.
pub(super) fn identify(launch: &mut Launch) {
    let (lines, notes) =
        std::mem::take(&mut launch.notes).into_iter().partition(|note| is_communicator(note));
    launch.notes = notes;
    let lines: Vec<Arc<Event>> = lines;
    let Some((tensor, world)) = sizes(launch) else { return };
    for rank in &mut launch.ranks {
        let Coordinates { tp, pp, .. } = rank.tag.coordinates;
        let number = pp.unwrap_or(0) * tensor + tp.unwrap_or(0);
        let named = |event: &&Arc<Event>| {
            event.count("nranks") == Some(world.into()) && event.count("rank") == Some(number.into())
        };
        let mut told = lines.iter().filter(named).filter_map(|event| identity(event));
        let first = told.next();
        // Replicas number their ranks alike: what two processes claim is nobody's.
        if told.all(|other| first.as_ref().is_some_and(|first| first.pid == other.pid)) {
            rank.identity = first;
        }
    }
}

/// Whether a line is of a communicator's rank.
pub(super) fn is_communicator(event: &Event) -> bool {
    event.template.is_some_and(|row| row.id.starts_with(RANK_OF_COMMUNICATOR))
}

fn identity(event: &Event) -> Option<Identity> {
    let number = |name: &str| event.count(name);
    let bus = match event.field("busId").map(|field| &field.value) {
        Some(Value::Word(word)) => BusId::from_digits(word),
        // All digits: read as a number, though it is hexadecimal.
        Some(Value::Number(digits)) => BusId::from_digits(&digits.to_integer()?.to_string()),
        _ => None,
    };
    Some(Identity {
        pid: number("pid").and_then(|pid| u64::try_from(pid).ok())?,
        bus,
        nvml_device: number("nvmlDev").and_then(|device| u32::try_from(device).ok()),
    })
}

/// Tensor-parallel size, and how many ranks the server has: by its arguments, else by the ranks that spoke.
fn sizes(launch: &Launch) -> Option<(u32, u32)> {
    let counted = |of: fn(&Coordinates) -> Option<u32>| {
        launch.ranks.iter().filter_map(|rank| of(&rank.tag.coordinates)).max().map_or(1, |last| last + 1)
    };
    let argument = |key: &str| {
        let size = launch.args()?.integer(key)?;
        u32::try_from(size).ok().filter(|size| *size > 0)
    };
    let tensor = argument("tp_size").unwrap_or_else(|| counted(|rank| rank.tp));
    let pipeline = argument("pp_size").unwrap_or_else(|| counted(|rank| rank.pp));
    Some((tensor, tensor.checked_mul(pipeline)?))
}
