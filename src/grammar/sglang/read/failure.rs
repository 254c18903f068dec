//! The last lines of exceptions, and out-of-memory sentences wherever they stand.

use super::known::from_catalogue;
use super::{Reading, shift};
use crate::event::{FailureKind, Role, Value};
use crate::grammar::sglang::clause::{RawField, dotted_name};
use crate::grammar::sglang::oom;
use crate::version::VersionRange;
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::tag;
use nom::combinator::eof;
use nom::sequence::terminated;
use std::collections::HashSet;

/// The name of a Python exception at the beginning of its last line, and where its text begins.
pub(super) fn exception(text: &str) -> Option<(&str, usize)> {
    let (rest, name) = terminated(dotted_name, alt((tag(": "), eof))).parse(text).ok()?;
    let last = name.rsplit('.').next()?;
    let usual = ["Error", "Exception", "Interrupt", "Exit"].iter().any(|end| last.ends_with(end));
    let qualified = name.contains('.')
        && last.starts_with(|character: char| character.is_ascii_uppercase())
        && name.starts_with(|character: char| character.is_ascii_alphabetic())
        && !last.ends_with("Warning");
    (usual || qualified).then_some((name, text.len() - rest.len()))
}

/// The last line of an exception: what its text says where that is known, its kind otherwise; and how much of a
/// known line's beginning it is.
pub(super) fn from_exception(text: &str, name: &str, start: usize) -> (Reading, usize) {
    let inner = text.get(start..).unwrap_or_default();
    let (known, begins) = from_catalogue(inner);
    let mut reading = match known {
        Some(known) => with_oom_figures(known, inner),
        None if oom::is_out_of_memory(text) => out_of_memory(inner),
        None => Reading {
            template: None,
            role: Role::Failure(FailureKind::Exception),
            wording: VersionRange::ALL,
            label: name.to_owned(),
            fields: Vec::new(),
            met: 0,
            open: begins > 0 || !has_ended(inner),
        },
    };
    shift(&mut reading.fields, start);
    let value = Value::Word(name.to_owned());
    let named = RawField { name: "exception".to_owned(), value, start: 0, length: name.len(), key_start: 0 };
    reading.fields.insert(0, named);
    (reading, begins)
}

/// An out-of-memory sentence.
pub(super) fn out_of_memory(text: &str) -> Reading {
    let fields = oom::figures(text);
    let cut = fields.last().is_some_and(|field| field.value == Value::Cut);
    Reading {
        template: None,
        role: Role::Failure(FailureKind::OutOfMemory),
        wording: VersionRange::ALL,
        label: first_words(text),
        open: cut || oom::lacks_end(text, &fields) || (!has_ended(text) && !fields.is_empty()),
        met: known_kinds(&fields) + oom::words_met(text),
        fields,
    }
}

/// The label of an out-of-memory sentence: its words up to `memory`. None where it is only the end of one, so that it can
/// still be joined to its beginning.
fn first_words(text: &str) -> String {
    let words = text.split_inclusive("memory").next().filter(|_| !oom::is_tail(text));
    words.unwrap_or_default().trim().to_owned()
}

/// Adds the figures of an out-of-memory sentence to the failure that it caused.
pub(super) fn with_oom_figures(mut reading: Reading, text: &str) -> Reading {
    let caused =
        matches!(reading.role, Role::Failure(FailureKind::CaptureFailed | FailureKind::SchedulerException));
    if caused && oom::is_out_of_memory(text) {
        let figures = oom::figures(text);
        reading.met += known_kinds(&figures) + oom::words_met(text);
        reading.open |= oom::lacks_end(text, &figures);
        reading.fields.extend(figures);
    }
    let cut = reading.fields.iter().any(|field| field.value == Value::Cut);
    reading.open |= caused && (cut || !has_ended(text));
    reading
}

/// How many kinds of figures are known. A second sentence's figures are no gain, or a line that waits would take
/// them.
fn known_kinds(figures: &[RawField]) -> usize {
    let known = figures.iter().filter(|field| field.value != Value::Cut);
    known.map(|field| field.name.as_str()).collect::<HashSet<_>>().len()
}

/// Whether the text ends as sentences and tracebacks do. Where it does not, its cause may go on in the next line.
fn has_ended(text: &str) -> bool {
    text.ends_with(['.', ')', '`', '\'', ':'])
}
