//! The Python frames that lead to a failure line.
//!
//! Frames carry no rank and no clock: they belong to the failure that ends their traceback, and reach back to the line
//! that opens it, or to the failure before.

use crate::event::{Event, Role, Value};
use crate::launch::Launch;

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The file as printed.
    pub file: &'a str,
    /// The function.
    pub function: &'a str,
    /// The line of the log that names it.
    pub line: u64,
}

/// The frames of the traceback that `failure` ends, innermost first. Empty where no traceback stands before it.
pub fn frames<'a>(launch: &'a Launch, failure: &Event) -> Vec<Frame<'a>> {
    let end = failure.place.line;
    let opened = opening_line(launch, failure);
    let mut frames: Vec<Frame<'a>> = launch
        .notes
        .iter()
        .filter(|note| note.stream == failure.stream && (opened..end).contains(&note.place.line))
        .filter_map(|note| frame(note))
        .collect();
    frames.sort_by_key(|frame| std::cmp::Reverse(frame.line));
    frames
}

/// The line from which on frames belong to the failure: behind the last line before it that begins a traceback or ends one.
fn opening_line(launch: &Launch, failure: &Event) -> u64 {
    let begins = |event: &Event| {
        matches!(event.role, Role::Failure(_)) || event.template.is_some_and(|row| row.id == "trace.begin")
    };
    launch
        .notes
        .iter()
        .chain(&launch.failures)
        .filter(|event| event.stream == failure.stream && event.place.line < failure.place.line)
        .filter(|event| begins(event))
        .map(|event| event.place.line)
        .max()
        .unwrap_or(0)
}

fn frame(note: &Event) -> Option<Frame<'_>> {
    if note.template.is_none_or(|row| row.id != "trace.frame") {
        return None;
    }
    let word = |name: &str| match &note.field(name)?.value {
        Value::Word(word) => Some(word.as_str()),
        _ => None,
    };
    Some(Frame { file: word("file")?, function: word("function")?, line: note.place.line })
}
