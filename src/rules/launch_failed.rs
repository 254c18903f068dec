//! `launch-failed`: the launch died, or its log ends before ready.

use super::stage_unfinished::unfinished;
use super::support::{rank_words, stage_words};
use super::{Context, Rule};
use crate::event::{Event, FailureKind, Role};
use crate::finding::{Finding, Severity};
use crate::launch::Outcome;
use crate::quantity::mib_text;
use crate::stage::Stage;
use crate::triage::Resource;

pub(super) static RULE: Rule = Rule {
    code: "VL001",
    name: "launch-failed",
    severity: Severity::Error,
    summary: "the launch failed, or its log ends before the server was ready",
    explanation: "Which stage was under way tells which way to turn the knob, and the two ways are opposite. This finding says what died where, and what \
every rank said last; a second one beside it says what ran out, does the sum, and advises.\n\n\
Refused at the KV pool: nothing ran out; the fraction must go UP (budget-exhausted, start-refused).\n\n\
Out of memory in weights or KV pool: the card holds less than assumed (out-of-memory-weights, out-of-memory-kv-pool).\n\n\
Out of memory in graph capture or while serving: the fraction must go DOWN (out-of-memory-capture, out-of-memory-runtime).\n\n\
Refused because the ranks' memory differs: ranks-unbalanced. Killed from outside: out-of-memory-host. Words that only sound like memory: not-device-memory.\n\n\
A log that ends before ready without a failure may simply be cut, or the server is still starting: the last thing each rank said is listed.",
    check,
};

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
    let while_doing = match context.diagnosis {
        Some(diagnosis) => diagnosis.phase.words(),
        None => "at an unknown stage",
    };
    let what = match (kind, cause) {
        (Some(FailureKind::Exception), Some(event)) => shortened(&event.text),
        (Some(kind), _) => kind.words().to_string(),
        (None, _) => "it stopped".to_string(),
    };
    let mut finding = Finding::new(&RULE, format!("failed {while_doing}: {what}")).stage(stage);
    if let Some(event) = cause {
        finding = finding.at([event.place.clone()]).explain(in_own_words(event));
    }
    if let Some(tag) =
        context.diagnosis.and_then(|diagnosis| diagnosis.tag.as_ref()).filter(|tag| !tag.text.is_empty())
    {
        finding = finding.rank(&tag.text);
    }
    finding = last_words(context, finding);
    // What ran out has a finding of its own; where nothing says what, this one says where to look.
    match context.diagnosis.map(|diagnosis| &diagnosis.resource) {
        Some(Resource::Unknown) => finding.advise(if kind == Some(FailureKind::LoadTimeout) {
            "another rank stopped first or is slow: look for the first failure of any rank, on every node"
        } else {
            "a process died without words: look for the first traceback above, for `Killed` in dmesg, and for the child's exit code"
        }),
        _ => finding,
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
