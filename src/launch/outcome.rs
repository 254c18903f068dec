//! How a launch ended: ready, running, incomplete or failed, where, and because of which line.

use super::{Launch, Outcome};
use crate::event::{Edge, Event, FailureKind, Role};
use crate::stage::Stage;
use std::sync::Arc;

/// Sets outcome, failed stage and cause from everything that was collected.
pub(super) fn settle(launch: &mut Launch) {
    let cause = cause_of(launch);
    launch.outcome = match (&cause, &launch.ready, launch.served) {
        (Some(_), _, _) => Outcome::Failed,
        (None, Some(_), true) => Outcome::Running,
        (None, Some(_), false) => Outcome::Ready,
        (None, None, _) => Outcome::Incomplete,
    };
    launch.failed_stage = cause.as_ref().map(|event| stage_of(launch, event));
    launch.cause = cause;
}

/// The line that tells best why the launch ended: the first failure that was fatal, and among the lines of one
/// traceback the most specific.
fn cause_of(launch: &Launch) -> Option<Arc<Event>> {
    let fatal: Vec<&Arc<Event>> = launch.failures.iter().filter(|event| is_fatal(launch, event)).collect();
    let best = fatal.iter().enumerate().min_by_key(|(index, event)| (generality(event), *index));
    best.map(|(_, event)| Arc::clone(event))
}

/// How little a failure line says: a crash notice says less than the exception behind it.
fn generality(event: &Event) -> u8 {
    match event.role {
        Role::Failure(kind) => match kind {
            // The kernel's preamble says less than the line that names whom it killed.
            FailureKind::HostMemory if event.text.contains("oom-kill") => 1,
            FailureKind::OutOfMemory
            | FailureKind::BudgetExhausted
            | FailureKind::Unbalanced
            | FailureKind::HostMemory
            | FailureKind::StateCache => 0,
            FailureKind::CaptureFailed | FailureKind::LoadTimeout | FailureKind::SlotsExhausted => 1,
            FailureKind::Exception => 2,
            // A kill is the whole story, unless something was said before it: launchers kill what is left.
            FailureKind::ProcessDied if is_kill(event) => 2,
            FailureKind::Watchdog => 3,
            FailureKind::ProcessDied => 4,
            FailureKind::SchedulerException => 5,
        },
        _ => u8::MAX,
    }
}

/// Whether a process was ended from outside: SIGKILL, by its exit code or in the shell's word.
fn is_kill(event: &Event) -> bool {
    event.count("exit code").is_some_and(|code| code == -9 || code == 137) || &*event.text == "Killed"
}

/// Whether a failure line ended the launch: not when its server went on to be ready afterwards, and a notice that can
/// also be a warning only when its rank said nothing of start-up afterwards.
fn is_fatal(launch: &Launch, event: &Event) -> bool {
    let line = event.place.line;
    let ready_after = launch.ready.as_ref().is_some_and(|ready| ready.place.line > line);
    let went_on = launch.ranks.iter().any(|rank| {
        (event.rank.text.is_empty() || rank.tag == event.rank)
            && rank
                .events
                .iter()
                .any(|later| later.event.place.line > line && !matches!(later.event.role, Role::Progress(_)))
    });
    let Role::Failure(kind) = event.role else { return false };
    if ready_after {
        return false;
    }
    match kind {
        FailureKind::Unbalanced => !went_on,
        // Slots and stray exceptions end nothing by themselves: a scheduler's crash notice must stand beside them.
        // So does a launch that has nothing else to say, or whose last words are a traceback.
        FailureKind::SlotsExhausted | FailureKind::Exception => {
            let last_words = launch.ready.is_none() && (is_bare(launch) || follows_traceback(launch, event));
            (crashed(launch) || last_words) && !went_on
        }
        FailureKind::ProcessDied => event.count("exit code") != Some(0),
        FailureKind::Watchdog => launch.ready.is_none() || crashed(launch),
        _ => true,
    }
}

/// Whether the input holds nothing of the start-up: a pasted sentence, a traceback.
fn is_bare(launch: &Launch) -> bool {
    launch.ranks.is_empty() && launch.arguments.is_none()
}

/// Whether frames of a traceback lead to the line. Notes stand in the order of their lines.
fn follows_traceback(launch: &Launch, event: &Event) -> bool {
    const NEAR: u64 = 200;
    let line = event.place.line;
    let before = launch.notes.partition_point(|note| note.place.line < line);
    let notes = launch.notes.get(..before).unwrap_or_default().iter().rev();
    notes
        .take_while(|note| note.place.line + NEAR >= line)
        .any(|note| note.template.is_some_and(|row| row.id == "trace.frame"))
}

/// Whether a scheduler or child process was reported dead.
fn crashed(launch: &Launch) -> bool {
    launch.failures.iter().any(|event| {
        matches!(
            event.role,
            Role::Failure(
                FailureKind::SchedulerException | FailureKind::ProcessDied | FailureKind::CaptureFailed
            )
        )
    })
}

/// The stage under way when this line was printed, by the failing rank's lines, or by any rank's where the line has no
/// tag: the last stage begun and not ended, else the stage after the last one ended.
fn stage_of(launch: &Launch, failure: &Event) -> Stage {
    if launch.ready.as_ref().is_some_and(|ready| ready.place.line < failure.place.line) {
        return Stage::Ready;
    }
    if let Role::Failure(FailureKind::Unbalanced) = failure.role {
        return Stage::DistributedInit;
    }
    let tag = failing_tag(launch, failure);
    let before = launch
        .ranks
        .iter()
        .filter(|rank| tag.as_ref().is_none_or(|tag| rank.tag == *tag))
        .flat_map(|rank| &rank.events)
        .filter(|event| event.event.place.line < failure.place.line);
    let last = before
        .filter_map(|event| match event.event.role {
            Role::Stage(stage, edge, _) => Some((event.event.place.line, stage, edge)),
            Role::Summary => Some((event.event.place.line, Stage::Ready, Edge::Whole)),
            _ => None,
        })
        .max_by_key(|(line, ..)| *line);
    match last {
        None if is_bare(launch) => Stage::Other,
        None => Stage::DistributedInit,
        Some((_, stage, Edge::Begin)) => stage,
        Some((_, Stage::DistributedInit, _)) => Stage::Weights,
        Some((_, Stage::Weights, _)) => Stage::KvCache,
        Some((_, Stage::KvCache | Stage::MemoryPool, _)) => Stage::AttentionBackend,
        Some((_, stage, _)) if stage.is_capture() => after_capture(failure, stage),
        Some((_, stage, _)) => stage,
    }
}

/// After one capture ended the next may have begun without a line of its own; only the failure's words tell.
fn after_capture(failure: &Event, stage: Stage) -> Stage {
    let words = failure.text.to_ascii_lowercase();
    match stage {
        _ if words.contains("piecewise") || words.contains("prefill") => Stage::GraphPrefill,
        // Every release that captures the draft's decode graphs goes on with its extend graphs.
        Stage::GraphDraft => Stage::GraphDraftExtend,
        stage => stage,
    }
}

/// The rank whose crash notice precedes an untagged failure line: tracebacks carry no prefix.
fn failing_tag(launch: &Launch, failure: &Event) -> Option<crate::stage::RankTag> {
    if !failure.rank.text.is_empty() {
        return Some(failure.rank.clone());
    }
    let notice = launch.failures.iter().rev().find(|event| {
        event.place.line <= failure.place.line && event.role == Role::Failure(FailureKind::SchedulerException)
    })?;
    (!notice.rank.text.is_empty()).then(|| notice.rank.clone())
}
