//! Lines of labels that nobody knows yet: a stage by its figures, or a figure that fits nothing.

use super::Reading;
use super::values::{cut_at_end, is_stage_key, known, require_unit};
use crate::event::{Edge, Role, WorkerHint};
use crate::grammar::sglang::clause;
use crate::grammar::sglang::unrecognised::looks_like_memory;
use crate::quantity::Convention;
use crate::stage::Stage;
use crate::version::VersionRange;

/// Last words of a label that opens a stage, and of one that closes it.
const OPENING: [&str; 5] = ["begin", "begins", "start", "starts", "starting"];

const CLOSING: [&str; 9] =
    ["end", "ends", "ended", "finish", "finished", "complete", "completes", "completed", "done"];

/// A label longer than this is prose.
const LONGEST_LABEL: usize = 200;

/// A line nobody knows that prints a stage's figures: a stage under its own words, or a bar.
pub(super) fn unknown_stage(text: &str) -> Option<Reading> {
    let mut fields = clause::fields(text, 0, Convention::Binary);
    let first = fields.first()?.key_start;
    if !fields.iter().any(|field| is_stage_key(&field.name)) {
        return None;
    }
    for field in &mut fields {
        require_unit(field, None);
    }
    let cut = cut_at_end(text, &mut fields, false);
    let label = clause::label(text, first);
    let role = if label.is_empty() || label.len() > LONGEST_LABEL {
        Role::Unrecognised
    } else if text.contains("%|") {
        Role::Progress(Stage::Other)
    } else {
        Role::Stage(Stage::Other, edge(label), WorkerHint::ByOrder)
    };
    let label = label.to_owned();
    let met = known(fields.iter().filter(|field| is_stage_key(&field.name)));
    Some(Reading { template: None, role, wording: VersionRange::ALL, label, fields, met, open: cut })
}

/// Which end of a stage a label's words name: the last such word tells.
fn edge(label: &str) -> Edge {
    let lower = label.to_ascii_lowercase();
    lower
        .split(|character: char| !character.is_alphanumeric())
        .rev()
        .find_map(|word| match word {
            _ if OPENING.contains(&word) => Some(Edge::Begin),
            _ if CLOSING.contains(&word) => Some(Edge::End),
            _ => None,
        })
        .unwrap_or(Edge::Whole)
}

/// A line with an amount of memory in it that fits nothing.
pub(super) fn unrecognised(text: &str) -> Option<Reading> {
    looks_like_memory(text).then(|| {
        let fields = clause::fields(text, 0, Convention::Binary);
        let end = fields.first().map_or(text.len(), |field| field.key_start);
        Reading {
            template: None,
            role: Role::Unrecognised,
            wording: VersionRange::ALL,
            label: clause::label(text, end).to_owned(),
            fields,
            met: 0,
            open: false,
        }
    })
}
