//! What a line's fields mean to a ledger: which is a level, which a claim, which a pool.
//!
//! Separate from the bookkeeping because names vary by release and fork, and bookkeeping does not.

use super::Part;
use crate::event::{Event, Field, Value};
use crate::place::Place;
use crate::quantity::Quantity;

/// Field names that carry a free level, in the order they are looked for.
const LEVEL_NAMES: [&str; 5] =
    ["avail mem", "available_gpu_mem", "available_cpu_mem", "avail_mem", "available mem"];
/// Field names that carry a claimed usage.
const CLAIM_NAMES: [&str; 3] = ["mem usage", "mem", "memory usage"];

pub(super) fn level_field(event: &Event) -> Option<&Field> {
    LEVEL_NAMES.iter().find_map(|name| event.field(name))
}

pub(super) fn level_of(event: &Event) -> Option<(Quantity, Place)> {
    let field = level_field(event)?;
    Some((field.memory()?, field.place.clone()))
}

pub(super) fn claim_of(event: &Event) -> Option<Quantity> {
    CLAIM_NAMES.iter().find_map(|name| event.memory(name))
}

pub(super) fn elapsed_of(event: &Event) -> Option<f64> {
    ["elapsed", "Time elapsed"].iter().find_map(|name| event.number(name)).map(|seconds| seconds.to_f64())
}

/// Where the line's first memory figure stands, or the line itself.
pub(super) fn figure_place(event: &Event) -> Place {
    event
        .fields
        .iter()
        .find(|field| field.memory().is_some())
        .map_or_else(|| event.place.clone(), |field| field.place.clone())
}

/// The pools that a line sizes: each field of memory that is neither level nor claim.
pub(super) fn parts_of(event: &Event) -> Vec<Part> {
    let tokens = ["#tokens", "tokens", "Logical #tokens"]
        .iter()
        .find_map(|name| event.count(name))
        .and_then(|count| u64::try_from(count).ok());
    let pool = pool_label(&event.label);
    let sizes = event.fields.iter().filter(|field| {
        !LEVEL_NAMES.contains(&field.name.as_str()) && !CLAIM_NAMES.contains(&field.name.as_str())
    });
    sizes
        .filter_map(|field| {
            let size = field.memory()?;
            let name = field.name.strip_suffix(" size").unwrap_or(&field.name);
            let label = if pool.is_empty() { name.to_string() } else { format!("{pool} {name}") };
            Some(Part { label, size, tokens, place: field.place.clone() })
        })
        .collect()
}

/// The pool's own name in front of `KV Cache is allocated`: `Full`, `SWA`; empty for the plain pool.
pub(super) fn pool_label(label: &str) -> &str {
    label.find("KV Cache").and_then(|position| label.get(..position)).unwrap_or_default().trim()
}

pub(super) fn shown(field: &Field) -> String {
    match &field.value {
        Value::Number(number) => number.to_string(),
        Value::Word(word) => word.clone(),
        Value::List(items) => format!("[{}]", items.join(", ")),
        Value::Memory(_) | Value::Cut => "?".into(),
    }
}
