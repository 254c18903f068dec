//! `launch-failed`: the launch died, or its log ends before ready.

use super::stage_unfinished::unfinished;
use super::support::{rank_words, stage_words};
use super::{Context, Rule, budget_exhausted};
use crate::budget::plan::{Change, Goal, solve};
use crate::event::{Event, FailureKind, Role};
use crate::finding::{Finding, Severity};
use crate::launch::Outcome;
use crate::quantity::{GIB, group_digits, mib_text};
use crate::stage::{Stage, Worker};

pub(super) static RULE: Rule = Rule {
    code: "VL001",
    name: "launch-failed",
    severity: Severity::Error,
    summary: "the launch failed, or its log ends before the server was ready",
    explanation: "Which stage was under way tells which way to turn the knob, and the two ways are opposite:\n\n\
Refused at the KV pool (`Not enough memory. Please try to increase --mem-fraction-static`, `leave no GPU memory for the KV cache`): the static \
budget pre × f was used up by the weights. The fraction must go UP, above 1 − available / pre, or the weights must be spread (TP, EP, \
quantisation).\n\n\
Out of memory in weights or KV pool allocation: the card holds less than the arithmetic assumed: another process, or memory outside PyTorch.\n\n\
Out of memory in graph capture or while serving: the slack pre × (1 − f) is too small for graphs, activations and workspaces. The fraction must \
go DOWN, or --cuda-graph-max-bs, or --chunked-prefill-size.\n\n\
Killed with exit code -9 or 137, or `Not enough host memory`: host memory, not the device. No fraction helps.\n\n\
`alloc_req_slots`, `Prefill out of memory. Try to lower your batch size`: slots of the KV pool, not device memory.\n\n\
A log that ends before ready without a failure may simply be cut, or the server is still starting: the last thing each rank said is listed.",
    check,
};

/// The middle of what SGLang's tuning guide wants free after start-up.
const GUIDE_MIDDLE: i128 = 6 * GIB + GIB / 2;

fn check(context: &Context<'_>) -> Vec<Finding> {
    let launch = context.launch;
    match launch.outcome {
        Outcome::Ready | Outcome::Running => Vec::new(),
        Outcome::Failed => vec![failed(context)],
        // A fragment without any stage says nothing about a launch.
        Outcome::Incomplete if launch.ranks.is_empty() => Vec::new(),
        Outcome::Incomplete => vec![incomplete(context)],
    }
}

fn failed(context: &Context<'_>) -> Finding {
    let launch = context.launch;
    let stage = launch.failed_stage.unwrap_or(Stage::Other);
    let cause = launch.cause.as_deref();
    let kind = cause.and_then(kind_of);
    let while_doing = match stage {
        Stage::Ready => "while serving".to_string(),
        Stage::Other => "at an unknown stage".to_string(),
        stage => format!("in {}", stage_words(stage, Worker::Target)),
    };
    let what = match (kind, cause) {
        (Some(FailureKind::Exception), Some(event)) => shortened(&event.text),
        (Some(kind), _) => kind.words().to_string(),
        (None, _) => "it stopped".to_string(),
    };
    let mut finding = Finding::new(&RULE, format!("failed {while_doing}: {what}")).stage(stage);
    if let Some(event) = cause {
        finding = finding.at([event.place.clone()]).explain(in_own_words(event));
        if !event.rank.text.is_empty() {
            finding = finding.rank(&event.rank.text);
        }
        finding = sums_at_death(finding, event);
    }
    finding = last_words(context, finding);
    match kind {
        Some(FailureKind::BudgetExhausted | FailureKind::StateCache) => raise(context, finding),
        Some(FailureKind::OutOfMemory | FailureKind::CaptureFailed) if stage.is_capture() || stage == Stage::Ready => lower(context, finding, stage),
        Some(FailureKind::OutOfMemory) => finding
            .advise("the card holds less than SGLang's arithmetic assumed: look for other processes on it (nvidia-smi) before turning any knob"),
        Some(FailureKind::Unbalanced) => finding.advise("see ranks-unbalanced: free the poorest card"),
        Some(FailureKind::HostMemory) => finding.advise("host memory ran out, not the device's: shrink the hierarchical cache (--hicache-size, --hicache-ratio) or give the machine more memory"),
        Some(FailureKind::SlotsExhausted) => finding.advise("slots of the KV pool ran out, not device memory: lower --max-running-requests"),
        _ => finding.advise("no sign that device memory was the cause: read the exception itself"),
    }
}

fn kind_of(event: &Event) -> Option<FailureKind> {
    match event.role {
        Role::Failure(kind) => Some(kind),
        _ => None,
    }
}

/// The cause's own words, cut to a sentence or two.
fn in_own_words(event: &Event) -> String {
    const LONGEST: usize = 400;
    let text: String = event.text.chars().take(LONGEST).collect();
    if text.len() < event.text.len() {
        format!("In its own words: {text}…")
    } else {
        format!("In its own words: {text}")
    }
}

/// Asked, free and missing, where the out-of-memory sentence says.
fn sums_at_death(finding: Finding, event: &Event) -> Finding {
    let (Some(asked), Some(free)) = (event.memory("asked"), event.memory("free")) else { return finding };
    finding
        .sum(format!(
            "asked for {} MiB, {} free: {} MiB missing",
            mib_text(asked),
            mib_text(free),
            mib_text(asked - free)
        ))
        .amount(asked - free)
}

/// What each rank said last, and how far an unfinished stage came.
fn last_words(context: &Context<'_>, mut finding: Finding) -> Finding {
    for (_, rank, ledger) in context.books() {
        if let Some(last) = rank.last_event() {
            finding = finding.sum(format!(
                "{} said last, in line {}: {}",
                rank_words(&rank.tag.text),
                last.event.place.line,
                shortened(&last.event.text)
            ));
        }
        for posting in unfinished(ledger).filter(|posting| !posting.progress.is_empty()) {
            if let Some(point) = posting.progress.last() {
                finding = finding.sum(format!(
                    "{} came to {} with {} MiB free",
                    stage_words(posting.stage, posting.worker),
                    point.label,
                    mib_text(point.available)
                ));
            }
        }
    }
    finding
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 90;
    if text.chars().count() <= LONGEST {
        text.to_string()
    } else {
        text.chars().take(LONGEST - 1).chain(['…']).collect()
    }
}

/// The budget was used up by the weights: up.
fn raise(context: &Context<'_>, finding: Finding) -> Finding {
    let Some(world) = context.worlds().first() else {
        return finding.advise("raise --mem-fraction-static: the weights took all of the static budget");
    };
    budget_exhausted::advice(context, world).into_iter().fold(finding, Finding::advise)
}

/// Graphs or activations did not fit in the slack: down.
fn lower(context: &Context<'_>, finding: Finding, stage: Stage) -> Finding {
    let rank = context.worlds().first().and_then(|world| world.slack_use.as_ref()).map(|used| used.rank);
    let facts = rank.and_then(|rank| context.facts_of(rank));
    let found = facts.and_then(|facts| solve(facts, &Change::default(), Goal::Headroom(GUIDE_MIDDLE)).ok());
    let finding = match found {
        Some((change, then)) => finding.advise(format!(
            "{}: down, not up. It leaves {} MiB of slack for graphs and activations, and {} tokens or more",
            change.flags(false).join(" "),
            mib_text(then.slack),
            group_digits(then.tokens.0)
        )),
        None => {
            finding.advise("lower --mem-fraction-static: graphs and activations must fit in pre × (1 − f)")
        }
    };
    match stage {
        Stage::GraphPrefill => finding.advise("or lower --piecewise-cuda-graph-max-tokens (up to 0.5.12) or --cuda-graph-max-bs-prefill (from 0.5.15)"),
        Stage::Ready => finding.advise("or lower --chunked-prefill-size, which sets the size of the largest activations"),
        _ => finding.advise("or lower --cuda-graph-max-bs (up to 0.5.12) or --cuda-graph-max-bs-decode (from 0.5.15)"),
    }
}

fn incomplete(context: &Context<'_>) -> Finding {
    let last_stage = context.launch.ranks.iter().flat_map(|rank| &rank.events).rev().find_map(|event| {
        match event.event.role {
            Role::Stage(stage, ..) => Some(stage_words(stage, event.worker)),
            Role::Summary => Some("the summary line".to_string()),
            _ => None,
        }
    });
    let title = match last_stage {
        Some(stage) => format!("the log ends before ready, after {stage}"),
        None => "the log ends before ready".to_string(),
    };
    let finding = Finding::new(&RULE, title)
        .severity(Severity::Warning)
        .explain("No failure and no ready line: the log was cut, the server is still starting, or this is a node other than the first, which prints no ready line.")
        .at(context.launch.ranks.iter().filter_map(|rank| rank.last_event()).map(|event| event.event.place.clone()));
    last_words(context, finding)
        .advise("if the server is still starting, run this again later; else give the log to its end")
}
