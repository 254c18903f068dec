//! Lines that look like memory and fit nothing: kept, so that nothing with a figure is silently dropped.
//!
//! Restrictive on purpose: an amount, near a word for memory, in a line of no other known kind. Downloads, rates,
//! bars, traffic and tables of other tools are no business of the SGLang grammar.

use super::clause::measure;
use crate::event::Value;
use crate::quantity::Convention;

/// Longer lines are data, not messages.
const LONGEST: usize = 1000;
/// How words for memory begin.
const MEMORY_WORDS: [&str; 8] = ["mem", "cache", "pool", "alloc", "weight", "buffer", "vram", "reserv"];
/// What stands in lines of other kinds that hold amounts.
const OTHER_KINDS: [&str; 16] = [
    "download",
    "fetch",
    "upload",
    "%|",
    "/s",
    " batch",
    "http/",
    "token usage",
    "disk",
    "storage",
    "uvicorn",
    "safetensors",
    "file size",
    "tokenizer",
    "warn(",
    " : ",
];

/// Whether the text is a message with an amount of memory in it.
pub(super) fn looks_like_memory(text: &str) -> bool {
    if text.len() > LONGEST || text.starts_with(['|', '+', '{', '<', '#']) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    has_memory_word(&lower) && !OTHER_KINDS.iter().any(|other| lower.contains(other)) && has_amount(text)
}

fn has_memory_word(lower: &str) -> bool {
    lower
        .split(|character: char| !character.is_ascii_alphanumeric())
        .any(|word| MEMORY_WORDS.iter().any(|beginning| word.starts_with(beginning)))
}

/// Whether a number with a unit of MiB or more stands in the text.
fn has_amount(text: &str) -> bool {
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(offset) = rest.find(|character: char| character.is_ascii_digit()) else { return false };
        let start = at + offset;
        let found = text.get(start..).and_then(|rest| Some((rest, measure(rest, Convention::Binary)?)));
        let Some((rest, (value, length))) = found else {
            at = start + text.get(start..).unwrap_or_default().bytes().take_while(u8::is_ascii_digit).count();
            continue;
        };
        let glued =
            text.get(..start).is_some_and(|front| front.ends_with(|c: char| c.is_alphanumeric() || c == '.'));
        let unit = rest.get(..length).unwrap_or_default().trim_start_matches(|c: char| !c.is_alphabetic());
        let large = unit.starts_with(['G', 'M', 'T', 'g', 'm', 't']);
        if matches!(value, Value::Memory(_)) && large && !glued {
            return true;
        }
        at = start + length;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_noticed() {
        for text in [
            "Model weights take 14.99 GiB",
            "Some new pool holds 3.10 GB of device memory",
            "allocated workspace buffer of 512 MB",
        ] {
            assert!(looks_like_memory(text), "{text}");
        }
    }

    #[test]
    fn ordinary_lines_are_left_alone() {
        for text in [
            "Downloading model.safetensors: 4.98GB of memory-mapped weights",
            "Prefill batch, #new-seq: 1, #new-token: 5, #cached-token: 0, token usage: 0.95, #running-req: 0",
            "INFO:     127.0.0.1:57580 - \"POST /generate HTTP/1.1\" 200 OK",
            "Loading weights at 1.2 GB/s",
            "|    0   N/A  N/A  1234  C  python memory 1000MiB |",
            "Used GPU Memory                   : 518 MiB",
            "the cache has 5 entries",
            "a 7b model",
        ] {
            assert!(!looks_like_memory(text), "{text}");
        }
    }
}
