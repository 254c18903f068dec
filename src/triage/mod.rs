//! Triage of a launch that died: what ran out, in which phase, who refused, on which rank, and how much was free.
//!
//! Facts only, from whatever there is: a bare sentence, a traceback, the end of a log, a whole ledger, a dump beside it.
//! What they are worth and what to change is decided in [`crate::rules`].

mod friend;
pub mod imbalance;
mod phase;
mod room;
mod traceback;

#[cfg(test)]
mod tests;

pub use friend::Friend;
pub use phase::{Period, Phase};
pub use room::{Remedy, Room, Setting, graph_max_batch};
pub use traceback::{Frame, frames};

use crate::event::{Event, FailureKind, Role};
use crate::grammar::sglang::oom::{OutOfMemory, Refuser};
use crate::launch::{Launch, Outcome};
use crate::ledger::Ledger;
use crate::place::Place;
use crate::quantity::{MIB, Quantity};
use crate::reconcile::DeviceChoice;
use crate::stage::{RankTag, Stage};

/// What ran out.
#[derive(Debug, Clone, PartialEq)]
pub enum Resource {
    /// Device memory; the sentence says by how much, if it says.
    Device(Box<OutOfMemory>),
    /// Nothing, yet: SGLang refused to start, because the static budget holds no KV beside the weights.
    StaticBudget,
    /// Nothing, yet: SGLang refused to start, because the state cache of a hybrid model does not fit.
    StateCache,
    /// Nothing: the ranks' memory differs too much.
    Balance,
    /// Host memory.
    Host,
    /// No memory at all.
    Other(Friend),
    /// A death without words.
    Unknown,
}

/// The last free memory that anything said of the dying rank's device.
#[derive(Debug, Clone, PartialEq)]
pub struct LastFree {
    /// How much.
    pub amount: Quantity,
    /// Who said it, in words.
    pub said_by: String,
    /// Where it stands.
    pub place: Option<Place>,
}

/// What is known of a death.
#[derive(Debug, Clone)]
pub struct Diagnosis<'a> {
    /// The line that tells best why the launch ended.
    pub cause: &'a Event,
    /// What ran out.
    pub resource: Resource,
    /// What was going on.
    pub phase: Phase,
    /// When that is, relative to the KV pool.
    pub period: Period,
    /// The innermost frame that is SGLang's own, where a traceback was given.
    pub frame: Option<Frame<'a>>,
    /// The rank that died, as an index into the launch's ranks.
    pub rank: Option<usize>,
    /// Its tag, where the input tells.
    pub tag: Option<RankTag>,
    /// How many other ranks died of the same kind of failure.
    pub others_died: usize,
    /// The last free memory of its device.
    pub last_free: Option<LastFree>,
}

impl Diagnosis<'_> {
    /// The out-of-memory line, where device memory ran out.
    pub fn out_of_memory(&self) -> Option<&OutOfMemory> {
        match &self.resource {
            Resource::Device(sentence) => Some(sentence),
            _ => None,
        }
    }

    /// Whether an allocator other than torch's refused.
    pub fn is_outside_torch(&self) -> bool {
        self.out_of_memory().is_some_and(|sentence| sentence.refuser != Refuser::Torch)
    }
}

/// The start-up stage that the failing line's traceback tells, for launches whose lines don't, or not so exactly.
pub fn stage_at_death(launch: &Launch) -> Option<Stage> {
    let cause = launch.cause.as_deref().filter(|_| launch.outcome == Outcome::Failed)?;
    match phase::by_frames(&frames(launch, cause))? {
        Phase::Startup(stage, _) => Some(stage),
        phase if launch.ranks.is_empty() => Some(phase.stage()),
        _ => None,
    }
}

/// Below this much free memory a failure that can be exhaustion is taken for it: a CUDA library's handle with its
/// workspace, or a communicator's first buffers, take more.
const NEXT_TO_NOTHING: i128 = 128 * MIB;

/// Diagnoses a launch. `None` where it did not fail.
pub fn diagnose<'a>(
    launch: &'a Launch,
    ledgers: &[Ledger],
    devices: &[DeviceChoice],
) -> Option<Diagnosis<'a>> {
    if launch.outcome != Outcome::Failed {
        return None;
    }
    let cause = launch.cause.as_deref()?;
    let mut resource = resource(launch, cause);
    let sentence = match &resource {
        Resource::Device(sentence) => Some(sentence.as_ref()),
        _ => None,
    };
    let rank = rank_of(launch, cause, sentence, devices);
    let tag = rank
        .and_then(|rank| launch.ranks.get(rank))
        .map(|rank| rank.tag.clone())
        .or_else(|| printed_tag(launch, cause));
    let frames = frames(launch, cause);
    let last_free = last_free(cause, sentence, rank.and_then(|rank| ledgers.get(rank)));
    let pools = sentence.and_then(|sentence| sentence.private_pools).is_some_and(|pools| pools.high() > 0);
    let phase = phase::by_frames(&frames).unwrap_or_else(|| phase::by_stage(launch, cause, tag.as_ref()));
    if let Resource::Other(friend) = &resource
        && friend.doubtful
        && last_free.as_ref().is_some_and(|free| free.amount.surely_below(NEXT_TO_NOTHING))
    {
        resource = Resource::Device(Box::new(OutOfMemory::read(cause)));
    }
    let phase =
        if resource == Resource::Balance { phase::by_stage(launch, cause, tag.as_ref()) } else { phase };
    Some(Diagnosis {
        cause,
        phase,
        period: phase::period(phase, launch, cause, pools),
        frame: frames.iter().find(|frame| is_sglang(frame)).copied(),
        others_died: others_died(launch, cause),
        last_free,
        resource,
        rank,
        tag,
    })
}

fn is_sglang(frame: &Frame<'_>) -> bool {
    frame.file.contains("sglang")
}

/// What the cause says ran out. A capture that failed with an out-of-memory sentence inside ran out of device memory.
fn resource(launch: &Launch, cause: &Event) -> Resource {
    let Role::Failure(kind) = cause.role else { return Resource::Unknown };
    match kind {
        FailureKind::BudgetExhausted => return Resource::StaticBudget,
        FailureKind::StateCache => return Resource::StateCache,
        FailureKind::Unbalanced => return Resource::Balance,
        _ => {}
    }
    if friend::is_host_memory(cause) && !killed_by_launcher(launch, cause) {
        return Resource::Host;
    }
    if let Some(friend) = friend::friend(cause).filter(|_| kind == FailureKind::OutOfMemory) {
        return Resource::Other(friend);
    }
    if let Some(sentence) = OutOfMemory::of(cause) {
        return Resource::Device(Box::new(sentence));
    }
    friend::friend(cause).map_or(Resource::Unknown, Resource::Other)
}

/// Whether the shell's `Killed` follows the launcher's own notice that a child failed: it then ended itself and the rest.
fn killed_by_launcher(launch: &Launch, cause: &Event) -> bool {
    &*cause.text == "Killed" && launch.failures.iter().any(|event| event.place.line < cause.place.line)
}

/// The rank that died: by the tag of its line, by the device that its sentence names, or by the crash notice before it.
/// Where the log has one rank only, it is that.
fn rank_of(
    launch: &Launch,
    cause: &Event,
    sentence: Option<&OutOfMemory>,
    devices: &[DeviceChoice],
) -> Option<usize> {
    if let [_] = launch.ranks.as_slice() {
        return Some(0);
    }
    let of_tag = |tag: &RankTag| launch.ranks.iter().position(|rank| rank.tag == *tag);
    if !cause.rank.text.is_empty() {
        return of_tag(&cause.rank);
    }
    // Lines of several ranks' tracebacks interleave, and then the notice before one may be another's; its sentence names
    // the device, which no other rank has.
    let on_device = sentence.and_then(|sentence| sentence.device).and_then(|device| {
        let mut ranks = devices.iter().enumerate().filter(|(_, choice)| choice.device == Some(device));
        match (ranks.next(), ranks.next()) {
            (Some((rank, _)), None) => Some(rank),
            _ => None,
        }
    });
    on_device.or_else(|| printed_tag(launch, cause).as_ref().and_then(of_tag))
}

/// The tag of the failure's line, or of the crash notice that precedes it.
fn printed_tag(launch: &Launch, cause: &Event) -> Option<RankTag> {
    if !cause.rank.text.is_empty() {
        return Some(cause.rank.clone());
    }
    let notice = launch.failures.iter().rev().find(|event| {
        event.place.line <= cause.place.line && event.role == Role::Failure(FailureKind::SchedulerException)
    })?;
    (!notice.rank.text.is_empty()).then(|| notice.rank.clone())
}

/// How many more crash notices there are than the one of the rank that died first.
fn others_died(launch: &Launch, cause: &Event) -> usize {
    let mut tags: Vec<&str> = launch
        .failures
        .iter()
        .filter(|event| {
            event.role == cause.role || event.role == Role::Failure(FailureKind::SchedulerException)
        })
        .map(|event| event.rank.text.as_str())
        .filter(|tag| !tag.is_empty())
        .collect();
    tags.sort_unstable();
    tags.dedup();
    tags.len().saturating_sub(1)
}

/// The last free memory before the end: the sentence's, else the last bar's or level's of the rank's ledger.
fn last_free(cause: &Event, sentence: Option<&OutOfMemory>, ledger: Option<&Ledger>) -> Option<LastFree> {
    if let Some(free) = sentence.and_then(|sentence| sentence.free) {
        let place = cause.field("free").map(|field| field.place.clone());
        return Some(LastFree { amount: free, said_by: "the failure itself".into(), place });
    }
    let ledger = ledger?;
    let bar = ledger.postings.last().and_then(|posting| posting.progress.last());
    if let Some(point) = bar.filter(|_| ledger.headroom.is_none()) {
        return Some(LastFree {
            amount: point.available,
            said_by: format!("the bar at {}", point.label),
            place: None,
        });
    }
    match ledger.headroom {
        Some(headroom) => Some(LastFree {
            amount: headroom,
            said_by: "the summary line".into(),
            place: ledger.headroom_place.clone(),
        }),
        None => Some(LastFree {
            amount: ledger.closing.or(ledger.opening)?,
            said_by: "the last stage line".into(),
            place: ledger.closing_place.clone().or_else(|| ledger.opening_place.clone()),
        }),
    }
}
