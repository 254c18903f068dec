//! The grammar of SGLang's log lines: from a logical line to an event.
//!
//! A line is taken apart in this order: [`prefix`] (time and rank), then the message, by the [`catalogue`] of known
//! wordings, whose fields the general clause parser reads; what the catalogue does not know is an exception, a
//! stage under its own words, an unrecognised figure, or none of our business. [`assemble`] puts wrapped and torn
//! lines together first; callers normally feed an [`Assembler`].

pub mod assemble;
pub mod catalogue;
mod clause;
pub mod oom;
mod pattern;
pub mod prefix;
mod read;
mod unrecognised;

#[cfg(test)]
mod tests;

pub use assemble::Assembler;
pub use catalogue::needles;

use crate::event::{Event, Field, Role, Value};
use crate::input::LogicalLine;
use crate::place::Place;
use prefix::Prefix;
use read::Reading;
use std::sync::Arc;

/// Reads one line by itself. `None` where it is no business of this program.
///
/// The event's template is the row whose wording the line is exactly, letter case aside; its
/// [`wording_range`](Event::wording_range) is the union over all rows with these words. A line that has a known
/// label with other fields gets the label's role, no template, and no claim about the release.
pub fn parse_line(line: &LogicalLine) -> Option<Event> {
    let prefix = Prefix::of(&line.text);
    let (reading, _) = read::read(message(&line.text, &prefix));
    Some(event(reading?, &prefix, line, &[]))
}

/// The message of a line.
fn message<'t>(text: &'t str, prefix: &Prefix) -> &'t str {
    text.get(prefix.length..).unwrap_or_default()
}

/// Where a later part of a joined line stands in its text, and in the source.
#[derive(Debug, Clone, PartialEq)]
struct Seam {
    at: usize,
    place: Place,
}

/// The place of byte `at` of a line's text.
fn place(line: &LogicalLine, seams: &[Seam], at: usize) -> Place {
    match seams.iter().rev().find(|seam| seam.at <= at) {
        Some(seam) => seam.place.further(at - seam.at),
        None => line.place.further(at),
    }
}

/// The event of a reading.
fn event(reading: Reading, prefix: &Prefix, line: &LogicalLine, seams: &[Seam]) -> Event {
    let text = message(&line.text, prefix).trim_end();
    let mut fields: Vec<Field> = reading
        .fields
        .into_iter()
        .map(|raw| Field {
            place: place(line, seams, prefix.length + raw.start),
            name: raw.name,
            value: raw.value,
            length: raw.length,
        })
        .collect();
    // The scanner cut the line itself: what touches its end goes on somewhere. Amounts have their unit, so are whole.
    if line.cut
        && reading.role != Role::ServerArgs
        && let Some(last) = fields.last_mut()
        && !matches!(last.value, Value::Memory(_))
        && last.place.further(last.length) == place(line, seams, prefix.length + text.len())
    {
        last.value = Value::Cut;
    }
    Event {
        place: place(line, seams, prefix.length),
        stamp: prefix.stamp.or(line.envelope_time),
        stream: Arc::clone(&line.stream),
        rank: prefix.rank.clone(),
        text: Arc::from(text),
        template: reading.template,
        wording_range: reading.wording,
        role: reading.role,
        label: Arc::from(reading.label),
        fields,
    }
}
