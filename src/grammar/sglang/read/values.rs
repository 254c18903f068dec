//! Rules for values: which of them need a unit, and which were cut.
//!
//! A cut value is unknown, never a smaller number.

use crate::event::Value;
use crate::grammar::sglang::clause::RawField;
use crate::grammar::sglang::pattern::{Key, Kind};
use crate::quantity::{Quantity, Unit};

/// Keys that make a posting of any line they stand in.
const STAGE_KEYS: [&str; 5] =
    ["avail mem", "mem usage", "avail_mem", "available_gpu_mem", "available_cpu_mem"];

pub(super) fn is_stage_key(name: &str) -> bool {
    STAGE_KEYS.iter().any(|key| key.eq_ignore_ascii_case(name))
}

/// A field that must hold memory and has no unit was cut; where the row prints none, the row knows the unit.
pub(super) fn require_unit(field: &mut RawField, key: Option<&Key>) {
    let memory = match key {
        Some(Key { kind: Kind::Memory(unit), has_unit, .. }) => Some((*unit, *has_unit)),
        Some(_) => None,
        None if is_stage_key(&field.name) => Some((Unit::Gib, true)),
        None => None,
    };
    let Some((unit, has_unit)) = memory else { return };
    field.value = match &field.value {
        Value::Memory(quantity) => Value::Memory(*quantity),
        Value::Number(decimal) if !has_unit => {
            Quantity::from_print(decimal, unit).map_or(Value::Cut, Value::Memory)
        }
        _ => Value::Cut,
    };
}

/// Where a line lacks its end, the value that touches the end may be the beginning of a longer one. Says whether
/// the last value is unknown.
pub(super) fn cut_at_end(text: &str, fields: &mut [RawField], incomplete: bool) -> bool {
    let Some(last) = fields.last_mut() else { return false };
    let (Some(front), Some(tail)) = (text.get(..last.end()), text.get(last.end()..)) else { return false };
    if !matches!(tail, "" | ".") {
        return false;
    }
    // A number that ends in a digit, or in a point, may go on: an amount printed without unit (the unbalanced
    // message) too. One with its unit is whole.
    let bare = front.ends_with(|character: char| character.is_ascii_digit());
    if incomplete && (bare || tail.is_empty() && matches!(last.value, Value::Number(_) | Value::Word(_))) {
        last.value = Value::Cut;
    }
    last.value == Value::Cut
}

/// How many of the fields have a known value.
pub(super) fn known<'f>(fields: impl IntoIterator<Item = &'f RawField>) -> usize {
    fields.into_iter().filter(|field| field.value != Value::Cut).count()
}
