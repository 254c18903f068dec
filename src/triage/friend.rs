//! False friends: failures whose words make people think of device memory, and what they are instead.

use crate::event::{Event, FailureKind, Role};

/// A failure that is not the exhaustion of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Friend {
    /// What it is, as a title goes on after "not device memory: ".
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What to do.
    pub advice: &'static str,
    /// Whether it sometimes is exhaustion after all, so that the free memory decides.
    pub doubtful: bool,
}

const fn sure(name: &'static str, meaning: &'static str, advice: &'static str) -> Friend {
    Friend { name, meaning, advice, doubtful: false }
}

const SHARED_MEMORY: Friend = sure(
    "a kernel wants more shared memory than the chip has",
    "Shared memory is on the chip, some 100 to 230 KiB a multiprocessor, and has nothing to do with the device's memory. A kernel was tuned for \
     another card, or its block sizes are too large.",
    "use another attention or MoE backend (--attention-backend, --moe-runner-backend), or a newer release with a configuration for this card",
);
const ILLEGAL_ACCESS: Friend = sure(
    "an illegal memory access",
    "A kernel read or wrote outside what it was given: a bug in a kernel or in what it was called with. The line that reports it is rarely the one \
     that did it.",
    "run once with CUDA_LAUNCH_BLOCKING=1 to find the kernel, and try without CUDA graphs or with another attention backend",
);
const ROCM_FAULT: Friend = sure(
    "a memory access fault",
    "ROCm's words for an access outside what was allocated: a bug in a kernel, or a driver that does not fit the card. Nothing ran out.",
    "look in dmesg for the kernel driver's own lines, and try without CUDA graphs or with another attention backend",
);
const FAULT: Friend = sure(
    "a fault on the device",
    "A kernel failed. Nothing in these words speaks of memory that ran out.",
    "run once with CUDA_LAUNCH_BLOCKING=1 to find the kernel; Xid lines in dmesg tell what the driver saw",
);
const REQUEST_SLOTS: Friend = sure(
    "request slots ran out",
    "A slot of the request table is a row of numbers, allocated at start-up: more requests were admitted than --max-running-requests allows. The \
     device's free memory plays no part.",
    "lower --max-running-requests, or update: a scheduler that admits too many has a bug",
);
const KV_SLOTS: Friend = sure(
    "slots of the KV pool ran out",
    "The pool was allocated at start-up and does not grow; the scheduler gave out more of it than there was. The device's free memory plays no part.",
    "more KV tokens help (a higher --mem-fraction-static, --kv-cache-dtype fp8_e5m2), or fewer requests at once (--max-running-requests)",
);
const CUBLAS_INIT: Friend = Friend {
    name: "cuBLAS could not be initialised",
    meaning: "Usually the first call after something else broke, or a driver that does not fit. But a handle needs some 10 MiB of device memory, so on a \
              full card it is exhaustion without the word: the free memory decides.",
    advice: "look for an earlier error; where nothing was free, treat it as out of memory",
    doubtful: true,
};
const COMMUNICATION: Friend = Friend {
    name: "a communication error",
    meaning: "NCCL reports whatever went wrong on any rank, often a rank that died first. Without the words `out of memory` it is no sign of exhaustion.",
    advice: "look at the other ranks' first error; NCCL_DEBUG=INFO names the call",
    doubtful: true,
};
const NO_IMAGE: Friend = sure(
    "a kernel that was not built for this card",
    "The binary holds no code for the device's architecture.",
    "install the build for this card's compute capability",
);
const OVERFLOW: Friend = sure(
    "an allocation of absurd size",
    "`more than 1EB` is a size that overflowed: a wrong shape, not a full card.",
    "read the frames above it: a length or a dimension is negative or garbage",
);
const STALL: Friend = sure(
    "a rank stood still and the watchdog ended it",
    "Nothing came back for the whole time-out: a hang in communication, a kernel that is being compiled, or a debugger. No sign of memory.",
    "look at the stacks that py-spy printed, or raise --watchdog-timeout if kernels were being compiled",
);
const CAPTURE: Friend = sure(
    "graph capture failed for a reason of its own",
    "Its message says nothing of memory. SGLang prints the same remedies under every failed capture, memory or not.",
    "read the message: a kernel that cannot be captured, a missing build. A lower --mem-fraction-static does not help",
);
const EXCEPTION: Friend = sure(
    "an exception",
    "Its words say nothing of memory.",
    "read the exception itself; no memory setting changes it",
);

/// Words in lower case, and the friend that they name. The first row that fits counts.
const FRIENDS: [(&str, Friend); 21] = [
    ("more than 1eb", OVERFLOW),
    ("out of resource: shared memory", SHARED_MEMORY),
    ("exceeds shared memory", SHARED_MEMORY),
    ("illegal memory access", ILLEGAL_ACCESS),
    ("misaligned address", ILLEGAL_ACCESS),
    ("memory access fault", ROCM_FAULT),
    ("alloc_req_slots", REQUEST_SLOTS),
    ("--max-running-requests`", REQUEST_SLOTS),
    ("prefill out of memory", KV_SLOTS),
    ("decode out of memory", KV_SLOTS),
    ("lower your batch size", KV_SLOTS),
    ("cublas_status_not_initialized", CUBLAS_INIT),
    ("nccl", COMMUNICATION),
    ("rccl", COMMUNICATION),
    ("no kernel image", NO_IMAGE),
    ("device-side assert", FAULT),
    ("unspecified launch failure", FAULT),
    ("launch failed", FAULT),
    ("uncorrectable ecc", FAULT),
    ("cublas_status_execution_failed", FAULT),
    ("capture cuda graph failed", CAPTURE),
];

/// The friend that a failure line is. `None` for a line that speaks of memory, or only of a death.
pub fn friend(event: &Event) -> Option<Friend> {
    let Role::Failure(kind) = event.role else { return None };
    let text = event.text.to_ascii_lowercase();
    let named = FRIENDS.iter().find(|(words, _)| text.contains(words)).map(|(_, friend)| *friend);
    match kind {
        FailureKind::SlotsExhausted => Some(named.unwrap_or(KV_SLOTS)),
        FailureKind::CaptureFailed => Some(named.unwrap_or(CAPTURE)),
        FailureKind::Exception => Some(named.unwrap_or(EXCEPTION)),
        FailureKind::Watchdog => Some(STALL),
        FailureKind::OutOfMemory => named.filter(|friend| *friend == OVERFLOW),
        _ => None,
    }
}

/// Words of host memory's exhaustion that no row of the catalogue holds.
const HOST_WORDS: [&str; 3] = ["cannot allocate memory", "bus error", "std::bad_alloc"];

/// Whether a failure line speaks of host memory: its kind says so, or Python's `MemoryError` and its like.
pub fn is_host_memory(event: &Event) -> bool {
    let Role::Failure(kind) = event.role else { return false };
    let text = event.text.to_ascii_lowercase();
    let killed =
        || event.count("exit code").is_some_and(|code| code == -9 || code == 137) || text == "killed";
    match kind {
        FailureKind::HostMemory => true,
        FailureKind::ProcessDied => killed(),
        FailureKind::Exception => {
            text.starts_with("memoryerror") || HOST_WORDS.iter().any(|words| text.contains(words))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::sglang::parse_line;
    use crate::input::LogicalLine;
    use crate::place::Place;

    fn event(text: &str) -> Event {
        let line = LogicalLine {
            place: Place::new(&"log".into(), 1, 1),
            text: text.to_owned(),
            stream: "".into(),
            envelope_time: None,
            hit: true,
            cut: false,
        };
        parse_line(&line).unwrap()
    }

    #[test]
    fn each_false_friend_is_named() {
        for (text, expected) in [
            (
                "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376.",
                SHARED_MEMORY,
            ),
            ("RuntimeError: CUDA error: an illegal memory access was encountered", ILLEGAL_ACCESS),
            (
                "Memory access fault by GPU node-2 (Agent handle: 0x1) on address 0x2. Reason: Unknown.",
                ROCM_FAULT,
            ),
            (
                "RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`. x=3, num_reqs=5, ",
                REQUEST_SLOTS,
            ),
            ("Prefill out of memory. Try to lower your batch size.", KV_SLOTS),
            ("Decode out of memory. Try to lower your batch size.", KV_SLOTS),
            (
                "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
                CUBLAS_INIT,
            ),
            (
                "torch.distributed.DistBackendError: NCCL error, unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                COMMUNICATION,
            ),
            ("Exception: Capture cuda graph failed: some kernel is missing", CAPTURE),
            ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.", OVERFLOW),
            ("KeyError: 'model.layers.0'", EXCEPTION),
        ] {
            assert_eq!(friend(&event(text)), Some(expected), "{text}");
        }
    }

    #[test]
    fn real_exhaustion_is_no_friend() {
        for text in [
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "RuntimeError: NCCL error: unhandled cuda error, Cuda failure 2 'out of memory'",
            "RuntimeError: CUDA driver error: 2",
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        ] {
            assert_eq!(friend(&event(text)), None, "{text}");
        }
    }

    #[test]
    fn host_memory_is_told_from_the_device_s() {
        for text in [
            "Killed",
            "Exit code: -9",
            "Exit Code: 137",
            "MemoryError",
            "OSError: [Errno 12] Cannot allocate memory",
            "Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. x",
            "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB",
            "Reason: OOMKilled",
        ] {
            assert!(is_host_memory(&event(text)), "{text}");
        }
        for text in
            ["Exit code: 1", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."]
        {
            assert!(!is_host_memory(&event(text)), "{text}");
        }
    }
}
