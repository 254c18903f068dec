//! What the scanner searches for: a few literals, one of which is in every line of the catalogue.
//!
//! Generated from the rows' own words. A search is the faster the fewer and rarer its needles are, so pieces that
//! many rows share come first; a row that none of them is in contributes its own longest words.

use super::compiled;

/// Pieces that rows share, and that traffic lines never hold; initials are left out where letter case varies. Each is
/// used only while some row needs it.
const SHARED: [&str; 37] = [
    " GB",
    "emory",
    "tokens",
    "KV ",
    "CUDA graph",
    "Capture ",
    "Cache is allocated",
    "mem-fraction-static",
    "mem_fraction_static",
    "max_running_requests",
    "server_args",
    "LoRA",
    "Init ",
    "exception",
    "#retracted",
    "atchdog timeout",
    "child failed",
    "scheduler died",
    "finish loading",
    "state cache",
    "Traceback (most",
    "\", line",
    "fired up",
    "Dummy health",
    "starting at GPU",
    "Update weights",
    "rebalance",
    "ring buffers",
    "pool sizes",
    "runtime state",
    "all-to-all",
    "Graph failed",
    "graph addresses",
    "oom-kill",
    "Exit ",
    "small GPUs",
    " cudaDev ",
];
/// Pieces of lines that are no row's: figures under unknown labels, exceptions, allocator codes, and units of memory,
/// without which a line that nobody knows could not be kept as unrecognised.
const FOREIGN: [&str; 11] = [
    "avail mem",
    "mem usage",
    "avail_mem",
    "available_gpu_mem",
    "available_cpu_mem",
    " GiB",
    "MiB",
    "Error:",
    "Exception:",
    "driver error",
    "CUresult",
];

/// The literals to search for. Every line of the catalogue holds at least one of them, with its letter case as
/// printed; so do lines of unknown labels with a stage's figures, exceptions and allocator messages.
pub fn needles() -> Vec<&'static str> {
    let mut needles: Vec<&'static str> = FOREIGN.to_vec();
    for row in compiled() {
        for words in row.matcher.words() {
            if words.iter().any(|words| needles.iter().any(|needle| words.contains(needle))) {
                continue;
            }
            let shared = SHARED.iter().find(|piece| words.iter().any(|words| words.contains(*piece)));
            let longest = words.iter().max_by_key(|words| words.len()).map(|words| words.trim());
            needles.extend(shared.copied().or(longest));
        }
    }
    needles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::sglang::catalogue::samples::SAMPLES;

    #[test]
    fn every_sample_holds_a_needle() {
        let needles = needles();
        for (id, sample) in SAMPLES {
            assert!(needles.iter().any(|needle| sample.contains(needle)), "{id}: {sample}");
        }
    }

    #[test]
    fn unknown_labels_and_failures_are_found_too() {
        let needles = needles();
        for line in [
            "Some stage end. avail mem=20.60",
            "Some stage end. mem usage=20.60",
            "Something, available_gpu_mem=20.60",
            "Capturing shapes (avail_mem=20.60",
            "DSv4 memory calculation: bytes_per_full_token=1.00",
            "torch.OutOfMemoryError: CUDA out of memory.",
            "RuntimeError: CUDA driver error: 2",
            "failed with CUresult 2",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `x`",
            "  File \"/a/b.py\", line 1, in f",
            "Exit Code:    137",
            "sglang-0   0/1     OOMKilled   3   10m",
        ] {
            assert!(needles.iter().any(|needle| line.contains(needle)), "{line}");
        }
    }

    #[test]
    fn traffic_holds_none() {
        for line in [
            "[2026-11-29 13:52:53 TP0] Decode batch, #running-req: 1, #token: 549, token usage: 0.00, accept len: 1.95, gen throughput (token/s): 140.33, #queue-req: 0,",
            "[2026-11-29 13:52:53 TP0] Decode batch. #running-req: 1, #full token: 549, full token usage: 0.00, mamba num: 2, mamba usage: 0.01, #queue-req: 0",
            "[2026-11-29 13:52:53] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ",
            "[2026-11-29 13:52:53] INFO:     127.0.0.1:57580 - \"POST /generate HTTP/1.1\" 200 OK",
            "[2026-11-29 13:52:53] Prefill batch, #new-seq: 1, #new-token: 7, token usage: 0.00, #pending-token: 0, cuda graph: True, input throughput (token/s): 5.00",
            "INFO:     127.0.0.1:57580 - \"POST /generate HTTP/1.1\" 500 Internal Server Error",
            "INFO:     127.0.0.1:57580 - \"GET /health_generate HTTP/1.1\" 200 OK",
            "INFO:     127.0.0.1:57580 - \"POST /v1/chat/completions HTTP/1.1\" 400 Bad Request",
        ] {
            for needle in needles() {
                assert!(!line.contains(needle), "{needle}: {line}");
            }
        }
    }

    #[test]
    fn they_are_few() {
        assert!(needles().len() < 60, "{}: {:?}", needles().len(), needles());
    }
}
