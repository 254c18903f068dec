//! Properties on arbitrary and mutated lines.

use super::{SAMPLES, assemble, line, read_line};
use crate::event::{Event, Field, Value};
use crate::grammar::sglang::{Assembler, parse_line};
use crate::quantity::Quantity;
use proptest::prelude::*;

/// All amounts of memory in a line, and all its whole numbers.
fn figures(event: &Event) -> (Vec<Quantity>, Vec<i128>) {
    let memory = event.fields.iter().filter_map(Field::memory).collect();
    let counts = event.fields.iter().filter_map(|field| match field.value {
        Value::Number(decimal) => decimal.to_integer(),
        _ => None,
    });
    (memory, counts.collect())
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}", cut in any::<bool>()) {
        let mut line = line(&text);
        line.cut = cut;
        let _ = parse_line(&line);
        let mut assembler = Assembler::new();
        let _ = assembler.push(&line);
        let _ = assembler.push(&line);
        let _ = assembler.finish();
    }

    #[test]
    fn a_cut_line_has_no_amount_that_the_whole_line_lacks(index in 0..SAMPLES.len(), share in 0.0f64..1.0) {
        let (id, text) = SAMPLES[index];
        let at = (0..=((text.len() as f64 * share) as usize)).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let (whole, _) = figures(&read_line(text).unwrap());
        if let Some(event) = read_line(&text[..at]) {
            for amount in figures(&event).0 {
                prop_assert!(whole.contains(&amount), "{}: {} gave {:?}", id, &text[..at], amount);
            }
        }
    }

    #[test]
    fn joined_and_doubled_lines_never_panic(
        one in 0..SAMPLES.len(), other in 0..SAMPLES.len(), at in 0usize..200, prefixed in any::<bool>(),
    ) {
        let (front, back) = (SAMPLES[one].1, SAMPLES[other].1);
        let at = (0..=at.min(front.len())).rev().find(|at| front.is_char_boundary(*at)).unwrap();
        let prefix = if prefixed { "[2026-11-29 13:52:37 TP0] " } else { "" };
        let torn = format!("{prefix}{}", &front[..at]);
        let _ = read_line(&format!("{torn}{back}"));
        let events = assemble(&[&torn, &format!("{prefix}{back}"), &front[at..], back, back]);
        // The whole line in the middle is there, whatever was torn around it.
        let whole = read_line(&format!("{prefix}{back}")).unwrap();
        prop_assert!(events.iter().any(|event| event.text == whole.text), "{torn} | {back}");
    }
}
