//! Deaths read from log lines, and every advised value put back into the arithmetic.

use super::*;
use crate::analysis::{Analysis, LaunchAnalysis, Settings, analyse};
use crate::budget::audit::{AuditInputs, audit};
use crate::budget::capacity::Budget;
use crate::budget::plan::{Change, Facts, project};
use crate::input::Source;
use crate::quantity::{Decimal, GIB};
use crate::read::read_source;
use crate::stage::{Stage, Worker};

/// A launch on an 80 GB card up to the pool, in the words of 0.5.12: pre 78.50, weights 14.99, f and what it leaves.
fn start(fraction: &str, after_pool: &str, tokens: u64, half: &str) -> String {
    format!(
        "[2026-11-29 10:00:00] server_args=ServerArgs(model_path='/models/llama-8b', tp_size=1, pp_size=1, mem_fraction_static={fraction}, \
         chunked_prefill_size=8192, max_running_requests=None, cuda_graph_max_bs=256, disable_cuda_graph=False, \
         disable_piecewise_cuda_graph=True, speculative_algorithm=None, max_total_tokens=None, enable_memory_saver=False, device='cuda')\n\
         [2026-11-29 10:00:20] Init torch distributed begin.\n\
         [2026-11-29 10:00:21] Init torch distributed ends. elapsed=0.23 s, mem usage=0.09 GB\n\
         [2026-11-29 10:00:22] Load weight begin. avail mem=78.50 GB\n\
         [2026-11-29 10:00:30] Load weight end. elapsed=8.10 s, type=LlamaForCausalLM, avail mem=63.51 GB, mem usage=14.99 GB.\n\
         [2026-11-29 10:00:30] Using KV cache dtype: torch.bfloat16\n\
         [2026-11-29 10:00:30] KV Cache is allocated. #tokens: {tokens}, K size: {half} GB, V size: {half} GB\n\
         [2026-11-29 10:00:30] Memory pool end. avail mem={after_pool} GB\n"
    )
}

const CAPTURE: &str = "[2026-11-29 10:00:31] Capture cuda graph begin. This can take up to several minutes. avail mem=1.10 GB\n\
    Capturing batches (bs=256 avail_mem=0.90 GB):   0%|          | 0/36 [00:00<?, ?it/s]\n\
    [2026-11-29 10:00:33] Scheduler hit an exception: Traceback (most recent call last):\n\
    \x20 File \"/x/sglang/srt/model_executor/cuda_graph_runner.py\", line 918, in capture\n\
    \x20 File \"/x/sglang/srt/layers/linear.py\", line 472, in forward\n\
    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which \
    120.00 MiB is free. Including non-PyTorch memory, this process has 78.98 GiB memory in use. Of the allocated memory 77.90 GiB is \
    allocated by PyTorch, with 40.00 MiB allocated in private pools (e.g., CUDA Graphs), and 90.00 MiB is reserved by PyTorch but \
    unallocated.\n";

fn analysed(log: &str) -> Analysis {
    analyse(vec![read_source(&Source::memory("server.log", log.as_bytes())).unwrap()], &Settings::default())
}

/// Names of the findings that say what ended a launch.
fn causes(log: &str) -> Vec<&'static str> {
    let analysis = analysed(log);
    let findings = analysis.launches.iter().flat_map(|launch| &launch.findings);
    findings.map(|finding| finding.rule).filter(|rule| rule.code >= "VL030").map(|rule| rule.name).collect()
}

/// Runs `check` on the diagnosis of the log's only launch, with the room of its rank and what a plan starts from.
fn with_diagnosis<T>(log: &str, check: impl FnOnce(&Diagnosis<'_>, &Room<'_>, &Facts) -> T) -> T {
    let analysis = analysed(log);
    let LaunchAnalysis { launch, ledgers, devices, .. } = analysis.launches.first().unwrap();
    let diagnosis = diagnose(launch, ledgers, devices).unwrap();
    let missing = diagnosis.out_of_memory().unwrap().missing().unwrap();
    let inputs = AuditInputs { launch, ledgers, card_mib: None, model: None };
    let audit = audit(&inputs).unwrap();
    let world = audit.worlds.first().unwrap();
    let facts = Facts::of(&inputs, &audit, world).unwrap();
    let budget = world.budget(audit.fraction.as_ref().unwrap());
    let ledger = diagnosis.rank.and_then(|rank| ledgers.get(rank));
    let room = Room::new(launch, ledger, budget, missing, ledger.and_then(Ledger::final_free));
    check(&diagnosis, &room, &facts)
}

/// Whether applying a setting gives at least what was missing, recomputed from the log's own figures.
fn removes(setting: Setting, missing: Quantity, budget: &Budget, tokens: (i128, i128)) -> bool {
    let gained = match setting {
        Setting::Fraction(value) => {
            let then = Budget { fraction: value, ..*budget };
            assert!(then.rest().unwrap().low() > 0, "{value} leaves nothing for KV");
            (then.slack().unwrap().midpoint()) - budget.slack().unwrap().midpoint()
        }
        Setting::MaxTotalTokens(left) => (tokens.0 - left) * tokens.1 / tokens.0,
        Setting::GraphMaxBatch(size) => (256 - size) * 2 * MIB,
        Setting::ChunkedPrefill(size) => (8192 - size) * 3 * MIB / 2,
        Setting::PrefillGraphTokens(_) | Setting::MaxRunningRequests(_) | Setting::TensorParallel(_) => {
            return true;
        }
    };
    gained >= missing.high()
}

#[test]
fn a_capture_is_told_by_its_frames_and_every_advised_value_removes_it() {
    let log = start("0.98", "1.20", 510_500, "31.15") + CAPTURE;
    assert_eq!(causes(&log), ["out-of-memory-capture"]);
    with_diagnosis(&log, |diagnosis, room, facts| {
        assert_eq!(diagnosis.phase, Phase::Startup(Stage::GraphDecode, Worker::Target));
        assert_eq!((diagnosis.period, diagnosis.rank), (Period::AfterPool, Some(0)));
        let missing = diagnosis.out_of_memory().unwrap().missing().unwrap();
        let budget = *room.budget().unwrap();
        let remedies =
            [room.lower_fraction(), room.graph_max_batch(), room.max_total_tokens(), room.chunked_prefill()];
        for remedy in remedies {
            let setting = remedy.expect("a value").setting;
            assert!(removes(setting, missing, &budget, (510_500, 2 * 31 * GIB)), "{setting:?}");
        }
        let Some(Remedy { setting: Setting::Fraction(value), .. }) = room.lower_fraction() else { panic!() };
        assert!(value.to_f64() < 0.98, "down, not up: {value}");
        // The plan says the same: it starts, and its slack is larger by what was missing at least.
        let (now, then) =
            (project(facts, &Change::default()).unwrap(), project(facts, &Change::fraction(value)).unwrap());
        assert!(then.starts() && then.slack.midpoint() - now.slack.midpoint() >= missing.high());
    });
}

#[test]
fn a_fraction_that_would_leave_no_kv_is_not_advised() {
    // 14.99 of 16.20 GiB are weights: 0.93 is the least that leaves anything, and aiming at the guide would go below it.
    let log = start("0.96", "0.50", 100_000, "0.27").replace("78.50", "16.20").replace("63.51", "1.21")
        + &CAPTURE
            .replace("79.10 GiB", "16.50 GiB")
            .replace("512.00 MiB", "220.00 MiB")
            .replace("1.10 GB", "0.45 GB");
    with_diagnosis(&log, |_, room, _| {
        let Some(Remedy { setting: Setting::Fraction(value), .. }) = room.lower_fraction() else {
            panic!("a value")
        };
        assert_eq!(value, Decimal::new(95, 2));
        assert!(room.holds(value) && !room.holds(Decimal::new(92, 2)) && !room.holds(Decimal::new(96, 2)));
    });
}

#[test]
fn where_no_fraction_works_that_is_said() {
    let log = start("0.96", "0.50", 100_000, "0.27").replace("78.50", "16.20").replace("63.51", "1.21")
        + &CAPTURE.replace("79.10 GiB", "16.50 GiB").replace("512.00 MiB", "1.50 GiB");
    with_diagnosis(&log, |_, room, _| {
        assert_eq!(room.lower_fraction(), None);
    });
    let analysis = analysed(&log);
    let advice: Vec<&str> = analysis.launches[0]
        .findings
        .iter()
        .flat_map(|finding| &finding.advice)
        .map(String::as_str)
        .collect();
    assert!(advice.iter().any(|line| line.starts_with("no --mem-fraction-static works")), "{advice:?}");
    assert!(analysis.launches[0].findings.iter().any(|finding| finding.rule.name == "budget-dead-zone"));
    assert!(!advice.iter().any(|line| line.starts_with("--mem-fraction-static 0.")), "{advice:?}");
}

#[test]
fn each_ending_has_exactly_one_cause() {
    let up = start("0.88", "9.34", 443_105, "27.05")
        + "[2026-11-29 10:00:40] max_total_num_tokens=443105, chunked_prefill_size=8192, max_prefill_tokens=16384, \
           max_running_requests=2048, context_len=8192, available_gpu_mem=8.90 GB\n\
           [2026-11-29 10:00:41] The server is fired up and ready to roll!\n";
    let crash = |line: &str| {
        format!(
            "[2026-11-29 10:05:00] Scheduler hit an exception: Traceback (most recent call last):\n{line}\n"
        )
    };
    let oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free.";
    let at =
        |file: &str, function: &str| format!("  File \"/x/sglang/srt/{file}\", line 1, in {function}\n{oom}");
    let loading: String =
        start("0.88", "9.34", 443_105, "27.05").lines().take(4).map(|line| format!("{line}\n")).collect();
    let pool: String =
        start("0.88", "9.34", 443_105, "27.05").lines().take(6).map(|line| format!("{line}\n")).collect();
    for (log, expected) in [
        (loading.clone() + &crash(&at("model_loader/loader.py", "load_model")), "out-of-memory-weights"),
        (loading + &crash(oom), "out-of-memory-weights"),
        (pool.clone() + &crash(&at("mem_cache/memory_pool.py", "_create_buffers")), "out-of-memory-kv-pool"),
        (pool + &crash(oom), "out-of-memory-kv-pool"),
        (
            up.clone() + &crash(&at("model_executor/model_runner.py", "forward_extend")),
            "out-of-memory-runtime",
        ),
        (up.clone() + &crash(oom), "out-of-memory-runtime"),
        (
            up.clone()
                + &crash("RuntimeError: NCCL error: unhandled cuda error, Cuda failure 2 'out of memory'"),
            "out-of-memory-outside-torch",
        ),
        (up.clone() + &crash("RuntimeError: CUDA driver error: 2"), "out-of-memory-outside-torch"),
        (
            up.clone() + &crash("RuntimeError: CUDA error: an illegal memory access was encountered"),
            "not-device-memory",
        ),
        (
            up.clone() + &crash("torch.distributed.DistBackendError: NCCL error, unhandled cuda error"),
            "not-device-memory",
        ),
        (
            up + "[2026-11-29 10:05:00] Rank 0 scheduler is dead. Please check if there are relevant logs.\n[2026-11-29 10:05:00] Exit code: -9\n",
            "out-of-memory-host",
        ),
        (crash(oom), "out-of-memory-unplaced"),
        (oom.to_string(), "out-of-memory-unplaced"),
        (at("layers/sampler.py", "forward"), "out-of-memory-runtime"),
        ("CUDA driver error: 2".into(), "out-of-memory-outside-torch"),
        ("Killed".into(), "out-of-memory-host"),
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.".into(),
            "start-refused",
        ),
        (
            "[12345.678901] Memory cgroup out of memory: Killed process 7 (python3) total-vm:1kB".into(),
            "out-of-memory-host",
        ),
        (
            "[Mon Nov 29 12:00:00 2026] Out of memory: Killed process 7 (python3) total-vm:1kB".into(),
            "out-of-memory-host",
        ),
    ] {
        assert_eq!(causes(&log), [expected], "{log}");
    }
}

#[test]
fn a_full_card_turns_a_doubtful_friend_into_exhaustion() {
    let full = start("0.98", "0.05", 510_500, "31.15");
    let line = "[2026-11-29 10:00:33] Scheduler hit an exception: Traceback (most recent call last):\n\
                RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`\n";
    assert_eq!(causes(&(full + line)), ["out-of-memory-outside-torch"]);
    assert_eq!(causes(&(start("0.88", "9.34", 443_105, "27.05") + line)), ["not-device-memory"]);
}

#[test]
fn interleaved_tracebacks_are_told_apart_by_the_device() {
    let rank = |tag: &str| {
        start("0.98", "1.20", 510_500, "31.15")
            .lines()
            .skip(1)
            .map(|line| line.replacen(']', &format!(" {tag}]"), 1) + "\n")
            .collect::<String>()
    };
    let arguments =
        start("0.98", "1.20", 510_500, "31.15").lines().next().unwrap().replace("tp_size=1", "tp_size=2")
            + "\n";
    let log = arguments
        + &rank("TP0")
        + &rank("TP1")
        + "[2026-11-29 10:00:33 TP0] Scheduler hit an exception: Traceback (most recent call last):\n\
           [2026-11-29 10:00:33 TP1] Scheduler hit an exception: Traceback (most recent call last):\n\
           torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free.\n\
           torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB of which 1.00 GiB is free.\n";
    with_diagnosis(&log, |diagnosis, _, _| {
        assert_eq!(diagnosis.tag.as_ref().unwrap().text, "TP0");
        assert_eq!(diagnosis.others_died, 1);
    });
}

#[test]
fn a_restart_s_frames_are_not_the_next_failure_s() {
    let bare = "  File \"/x/sglang/srt/model_loader/loader.py\", line 1, in load_model\nKeyError: 'x'\n\
                Traceback (most recent call last):\n  File \"/x/sglang/srt/layers/sampler.py\", line 1, in forward\n\
                torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    with_diagnosis_of(bare, |diagnosis| assert_eq!(diagnosis.phase, Phase::Sampler));
}

fn with_diagnosis_of(log: &str, check: impl FnOnce(&Diagnosis<'_>)) {
    let analysis = analysed(log);
    let launch = analysis.launches.first().unwrap();
    check(&diagnose(&launch.launch, &launch.ledgers, &launch.devices).unwrap());
}
