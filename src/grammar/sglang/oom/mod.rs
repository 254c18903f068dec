//! Out-of-memory sentences of the device allocators: which lines are some, and what they say.
//!
//! The wording is torch's, the driver's or a library's, not SGLang's, and can stand anywhere in a line; so it is
//! found by phrases. False friends (KV slots, shared memory, faults) are kept out here, once for all. The figures of
//! torch's sentence are the business of `sentence`, who refused that of `refusal`.

mod refusal;
mod sentence;

pub use refusal::{Accelerator, Generation, OtherProcess, OutOfMemory, Refuser};
pub(super) use sentence::{figures, lacks_end, words_met};

/// Phrases that say by themselves that device memory ran out.
const SURE: [&str; 14] = [
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
    "reserved by pytorch but unallocated",
    "reserved in total by pytorch",
];
/// Who is meant, where a line only says `out of memory`.
const DEVICES: [&str; 13] = [
    "cuda", "hip", "nccl", "rccl", "hccl", "nvshmem", "cublas", "triton", "npu", "xpu", "musa", "device",
    "gpu",
];
/// Codes of the driver for the same thing, without the words; no digit may follow.
const CODES: [&str; 5] =
    ["cuda driver error: 2", "curesult 2", "curesult: 2", "curesult=2", "curesult error: 2"];
/// Words that make such a line speak of something else.
const FALSE_FRIENDS: [&str; 9] = [
    "os oom killer",
    "oom-kill",
    "oom_kill",
    "out of memory: killed process",
    "shared memory",
    "illegal memory access",
    "memory access fault",
    "to avoid out of memory",
    "batch size",
];

/// The end of torch's sentence without its beginning.
const TAILS: [&str; 2] = ["reserved by pytorch but unallocated", "reserved in total by pytorch"];

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

/// Whether the text is an end of torch's sentence whose beginning, with the words `out of memory`, stands elsewhere or
/// nowhere.
pub(super) fn is_tail(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    TAILS.iter().any(|tail| text.contains(tail)) && !text.contains("out of memory")
}

/// Whether `code` stands in the text with no digit behind it.
fn contains_code(text: &str, code: &str) -> bool {
    text.match_indices(code).any(|(at, _)| {
        let next = text.get(at + code.len()..).and_then(|rest| rest.chars().next());
        !next.is_some_and(|character| character.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "[torch_memory_saver.cpp] CUresult error: 2 (out of memory) file=csrc/core.cpp func=cu_mem_create line=98",
            "nvshmem: out of memory in symmetric heap",
            "torch.AcceleratorError: CUDA error: out of memory",
            "62.00 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated.",
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
            "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB",
            "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0 on a GPU node. out of memory",
        ] {
            assert!(!is_out_of_memory(text), "{text}");
        }
    }
}
