//! One message to what it says: the catalogue first, then exceptions, then labels nobody knows yet.
//!
//! Everything here works on byte offsets into the message; places come in with the event ([`super::parse_line`]).

mod failure;
mod known;
mod nccl;
mod role;
mod unknown;
mod values;

use super::catalogue::Template;
use super::clause::RawField;
use super::oom;
use crate::event::Role;
use crate::version::VersionRange;

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// The row whose wording it is exactly.
    pub template: Option<&'static Template>,
    /// What it is for.
    pub role: Role,
    /// The releases with this wording.
    pub wording: VersionRange,
    /// The label.
    pub label: String,
    /// The fields, in printed order.
    pub fields: Vec<RawField>,
    /// How many of the figures that the line should hold are there and known.
    pub met: usize,
    /// Whether words or values are missing at the end of the message.
    pub open: bool,
}

/// Reads a message. If it is the beginning of a known line, the number says how many bytes of that line's fixed
/// words it has, also where the reading is `None`.
pub(super) fn read(text: &str) -> (Option<Reading>, usize) {
    let (text, skipped) = without_bar(text);
    let (reading, begins) = read_bare(text.trim_end());
    let reading = reading.map(|mut reading| {
        shift(&mut reading.fields, skipped);
        reading
    });
    (reading, begins)
}

fn shift(fields: &mut [RawField], by: usize) {
    for field in fields {
        field.start += by;
        field.key_start += by;
    }
}

/// The text behind a progress bar that it was glued to, and how many bytes the bar takes.
fn without_bar(text: &str) -> (&str, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || !text.get(digits..).is_some_and(|rest| rest.starts_with("%|")) {
        return (text, 0);
    }
    let end = ["it/s]", "s/it]"].iter().filter_map(|end| text.find(end).map(|at| at + end.len())).min();
    match end.and_then(|end| text.get(end..)) {
        Some(rest) => (rest, text.len() - rest.len()),
        None => (text, 0),
    }
}

fn read_bare(text: &str) -> (Option<Reading>, usize) {
    let (known, begins) = known::from_catalogue(text);
    if known.is_some() {
        return (known.map(|reading| failure::with_oom_figures(reading, text)), begins);
    }
    if let Some(reading) = nccl::from_nccl(text) {
        return (Some(reading), 0);
    }
    if let Some((name, start)) = failure::exception(text) {
        let (reading, begins) = failure::from_exception(text, name, start);
        return (Some(reading), begins);
    }
    if oom::is_out_of_memory(text) {
        return (Some(failure::out_of_memory(text)), begins);
    }
    (unknown::unknown_stage(text).or_else(|| unknown::unrecognised(text)), begins)
}
