//! Out-of-memory sentences of the device allocators, and the figures in them.
//!
//! The wording is torch's, the driver's or a library's, not SGLang's, and can stand anywhere in a line; so it is
//! found by phrases, and each figure by the words around it. False friends (KV slots, shared memory, faults) are
//! kept out here, once for all.

use super::clause::{RawField, measure};
use crate::event::Value;
use crate::quantity::{Convention, Decimal};

/// Phrases that say by themselves that device memory ran out.
const SURE: [&str; 12] = [
    "out of memory. tried to allocate",
    "error: out of memory",
    "outofmemoryerror",
    "error_out_of_memory",
    "erroroutofmemory",
    "errormemoryallocation",
    "out_of_device_memory",
    "out_of_host_or_device_memory",
    "out of device memory",
    "_alloc_failed",
    "cuda out of memory",
    "hip out of memory",
];
/// Who is meant, where a line only says `out of memory`.
const DEVICES: [&str; 11] =
    ["cuda", "hip", "nccl", "rccl", "cublas", "triton", "npu", "xpu", "musa", "device", "gpu"];
/// Codes of the driver for the same thing, without the words; no digit may follow.
const CODES: [&str; 4] = ["cuda driver error: 2", "curesult 2", "curesult: 2", "curesult=2"];
/// Words that make such a line speak of something else.
const FALSE_FRIENDS: [&str; 7] = [
    "os oom killer",
    "oom-kill",
    "shared memory",
    "illegal memory access",
    "memory access fault",
    "to avoid out of memory",
    "batch size",
];

/// Figures: the field's name, the words before the amount and the words after it.
const FIGURES: [(&str, &str, &str); 12] = [
    ("asked", "tried to allocate ", ""),
    ("total", "total capacity of ", ""),
    ("total", "", " total capacity"),
    ("free", "of which ", " is free"),
    ("free", "; ", " free"),
    ("allowed", "", " allowed"),
    ("in use", "this process has ", " memory in use"),
    ("allocated", "", " is allocated by pytorch"),
    ("allocated", "", " already allocated"),
    ("private pools", "", " allocated in private pools"),
    ("reserved unallocated", "", " is reserved by pytorch but unallocated"),
    ("reserved", "", " reserved in total by pytorch"),
];

/// Whether the text says that device memory ran out.
pub(super) fn is_out_of_memory(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    if FALSE_FRIENDS.iter().any(|friend| text.contains(friend)) && !text.contains("tried to allocate") {
        return false;
    }
    SURE.iter().any(|phrase| text.contains(phrase))
        || CODES.iter().any(|code| contains_code(&text, code))
        || text.contains("out of memory") && DEVICES.iter().any(|device| text.contains(device))
}

/// Whether `code` stands in the text with no digit behind it.
fn contains_code(text: &str, code: &str) -> bool {
    text.match_indices(code).any(|(at, _)| {
        let next = text.get(at + code.len()..).and_then(|rest| rest.chars().next());
        !next.is_some_and(|character| character.is_ascii_digit())
    })
}

/// The figures of the sentence: `asked`, `gpu`, `total`, `free`, `in use`, `allocated`, `private pools`,
/// `reserved unallocated`, `reserved`, `allowed`, and for each other process on the device `process` (its id)
/// and `process memory`. An amount asked for that the line was cut in is [`Value::Cut`].
pub(super) fn figures(text: &str) -> Vec<RawField> {
    let lower = text.to_ascii_lowercase();
    let mut fields = Vec::new();
    let mut at = 0;
    while let Some(start) =
        text.get(at..).and_then(|rest| rest.find(|c: char| c.is_ascii_digit())).map(|offset| at + offset)
    {
        let rest = text.get(start..).unwrap_or_default();
        let Some((value, length)) = measure(rest, Convention::Binary) else {
            at = start + rest.bytes().take_while(u8::is_ascii_digit).count().max(1);
            continue;
        };
        at = start + length;
        let (before, after) = (lower.get(..start).unwrap_or_default(), lower.get(at..).unwrap_or_default());
        match value {
            Value::Memory(_) => {
                if let Some(process) = process_before(before) {
                    fields.push(process);
                    fields.push(raw("process memory", value, start, length));
                } else if let Some((name, ..)) =
                    FIGURES.iter().find(|(_, front, back)| before.ends_with(front) && after.starts_with(back))
                {
                    fields.push(raw(name, value, start, length));
                }
            }
            Value::Number(_) if before.ends_with("tried to allocate ") => {
                fields.push(raw("asked", Value::Cut, start, length));
            }
            Value::Number(_) if names_device(before) && !fields.iter().any(|field| field.name == "gpu") => {
                fields.push(raw("gpu", value, start, length));
            }
            _ => {}
        }
    }
    if lower.trim_end().ends_with("tried to allocate") {
        fields.push(raw("asked", Value::Cut, text.len(), 0));
    }
    fields
}

/// Whether the words end in a device's name: what follows is its number.
fn names_device(before: &str) -> bool {
    ["gpu ", "npu ", "xpu "].iter().any(|device| before.ends_with(device))
}

fn raw(name: &str, value: Value, start: usize, length: usize) -> RawField {
    RawField { name: name.to_owned(), value, start, length, key_start: start }
}

/// `process 1234 has ` at the end of the text: the process's id.
fn process_before(before: &str) -> Option<RawField> {
    let named = before.strip_suffix(" has ")?;
    let digits = named.len() - named.bytes().rev().take_while(u8::is_ascii_digit).count();
    let id = Decimal::parse(named.get(digits..)?)?;
    named
        .get(..digits)?
        .ends_with("process ")
        .then(|| raw("process", Value::Number(id), digits, named.len() - digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{Quantity, Unit};

    fn memory(digits: &str, unit: Unit) -> Value {
        Value::Memory(Quantity::from_print(&Decimal::parse(digits).unwrap(), unit).unwrap())
    }

    fn named(text: &str) -> Vec<(String, Value)> {
        figures(text).into_iter().map(|field| (field.name, field.value)).collect()
    }

    #[test]
    fn the_sentence_of_torch_2_gives_its_figures() {
        let text = "CUDA out of memory. Tried to allocate 28.00 MiB. GPU 3 has a total capacity of 139.80 GiB of which \
                    2.75 MiB is free. Process 1957 has 518.00 MiB memory in use. Including non-PyTorch memory, this \
                    process has 139.28 GiB memory in use. Of the allocated memory 138.51 GiB is allocated by PyTorch, \
                    with 22.00 MiB allocated in private pools (e.g., CUDA Graphs), and 36.28 MiB is reserved by \
                    PyTorch but unallocated.";
        assert!(is_out_of_memory(text));
        assert_eq!(
            named(text),
            [
                ("asked", memory("28.00", Unit::Mib)),
                ("gpu", Value::Number(Decimal::new(3, 0))),
                ("total", memory("139.80", Unit::Gib)),
                ("free", memory("2.75", Unit::Mib)),
                ("process", Value::Number(Decimal::new(1957, 0))),
                ("process memory", memory("518.00", Unit::Mib)),
                ("in use", memory("139.28", Unit::Gib)),
                ("allocated", memory("138.51", Unit::Gib)),
                ("private pools", memory("22.00", Unit::Mib)),
                ("reserved unallocated", memory("36.28", Unit::Mib)),
            ]
            .map(|(name, value)| (name.to_owned(), value))
        );
    }

    #[test]
    fn the_sentence_of_torch_1_gives_its_figures() {
        let text = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.44 GiB already \
                    allocated; 1.80 GiB free; 22.11 GiB reserved in total by PyTorch)";
        let names: Vec<String> = named(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["asked", "gpu", "total", "allocated", "free", "reserved"]);
    }

    #[test]
    fn a_cut_amount_is_unknown() {
        assert_eq!(named("CUDA out of memory. Tried to allocate 224.0"), [("asked".to_owned(), Value::Cut)]);
        assert_eq!(named("CUDA out of memory. Tried to allocate"), [("asked".to_owned(), Value::Cut)]);
    }

    #[test]
    fn all_devices_and_codes_are_known() {
        for text in [
            "HIP out of memory. Tried to allocate 2.00 GiB",
            "NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)",
            "XPU out of memory. Tried to allocate 2.00 GiB",
            "CUDA error: out of memory",
            "CUDA driver error: 2",
            "cuMemCreate failed with CUresult 2 (size=2097152)",
            "NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO), Cuda failure 2 'out of memory'",
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "Triton Error [CUDA]: out of memory",
            "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
        ] {
            assert!(is_out_of_memory(text), "{text}");
        }
    }

    #[test]
    fn false_friends_are_not_exhaustion() {
        for text in [
            "out of resource: shared memory, Required: 131072, Hardware limit: 101376",
            "CUDA error: an illegal memory access was encountered",
            "Memory access fault by GPU node-2 (Agent handle: 0x1) on address 0x2. Reason: Unknown.",
            "a common cause is the OS OOM killer",
            "alloc_req_slots runs out of memory. Please set a smaller number",
            "Prefill out of memory. Try to lower your batch size.",
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED",
            "CUDA driver error: 209",
            "reducing max_m to 64 to avoid out of memory",
            "Killed",
        ] {
            assert!(!is_out_of_memory(text), "{text}");
        }
    }
}
