//! Analyses for tests, from log lines as SGLang prints them.

use crate::analysis::{Analysis, Settings, SourceFacts, SourceKind, SourceReading, analyse};
use crate::input::Source;
use crate::launch::Launch;
use crate::observe::{Instrument, Observation, ProcessUse};
use crate::place::Place;
use crate::quantity::Quantity;
use crate::read::read_source;
use crate::time::Stamp;

/// SGLang 0.5.12 on one H200, as recorded (bars shortened).
pub(in crate::render) const ONE_RANK: &str = "\
[2026-11-29 13:51:21] server_args=ServerArgs(...)
[2026-11-29 13:51:41] Init torch distributed ends. elapsed=0.23 s, mem usage=0.09 GB
[2026-11-29 13:51:42] Load weight begin. avail mem=139.13 GB
[2026-11-29 13:51:43] Load weight end. elapsed=0.13 s, type=LlamaForCausalLM, avail mem=124.15 GB, mem usage=14.98 GB.
[2026-11-29 13:51:43] KV Cache is allocated. #tokens: 845985, K size: 51.63 GB, V size: 51.63 GB
[2026-11-29 13:51:43] Memory pool end. avail mem=20.65 GB
[2026-11-29 13:51:43] Capture cuda graph begin. This can take up to several minutes. avail mem=20.55 GB
Capturing batches (bs=32 avail_mem=20.54 GB)
Capturing batches (bs=24 avail_mem=20.48 GB)
[2026-11-29 13:51:45] Capture cuda graph end. Time elapsed: 2.25 s. mem usage=0.08 GB. avail mem=20.47 GB.
[2026-11-29 13:51:45] Capture piecewise CUDA graph begin. avail mem=20.47 GB
Capturing num tokens (num_tokens=8192 avail_mem=19.49 GB)
[2026-11-29 13:52:05] Capture piecewise CUDA graph end. Time elapsed: 20.27 s. mem usage=1.16 GB. avail mem=19.31 GB.
[2026-11-29 13:52:05] max_total_num_tokens=845985, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=8192, available_gpu_mem=19.31 GB
[2026-11-29 13:52:05] The server is fired up and ready to roll!
";

/// Two ranks, 40 GiB of the second card taken by another process, as recorded.
pub(in crate::render) const UNBALANCED: &str = "\
[2026-11-29 13:49:45] server_args=ServerArgs(...)
[2026-11-29 13:50:05 TP1] Init torch distributed ends. elapsed=2.48 s, mem usage=1.01 GB
[2026-11-29 13:50:05 TP0] Init torch distributed ends. elapsed=0.98 s, mem usage=1.01 GB
[2026-11-29 13:50:06 TP0] Load weight begin. avail mem=138.28 GB
[2026-11-29 13:50:06 TP0] Load weight end. elapsed=0.12 s, type=LlamaForCausalLM, avail mem=130.80 GB, mem usage=7.48 GB.
[2026-11-29 13:50:06 TP1] Load weight begin. avail mem=97.67 GB
[2026-11-29 13:50:06 TP1] Load weight end. elapsed=0.16 s, type=LlamaForCausalLM, avail mem=90.19 GB, mem usage=7.48 GB.
[2026-11-29 13:50:06 TP1] KV Cache is allocated. #tokens: 1157680, K size: 35.33 GB, V size: 35.33 GB
[2026-11-29 13:50:06 TP1] Memory pool end. avail mem=19.30 GB
[2026-11-29 13:50:06 TP0] KV Cache is allocated. #tokens: 1157680, K size: 35.33 GB, V size: 35.33 GB
[2026-11-29 13:50:06 TP0] Memory pool end. avail mem=59.90 GB
[2026-11-29 13:50:06 TP1] Capture cuda graph begin. This can take up to several minutes. avail mem=19.20 GB
[2026-11-29 13:50:06 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=59.80 GB
Capturing batches (bs=32 avail_mem=59.79 GB)
[2026-11-29 13:50:11 TP0] Capture cuda graph end. Time elapsed: 4.62 s. mem usage=0.08 GB. avail mem=59.72 GB.
[2026-11-29 13:50:11 TP1] Capture cuda graph end. Time elapsed: 4.75 s. mem usage=0.08 GB. avail mem=19.12 GB.
[2026-11-29 13:50:11 TP0] max_total_num_tokens=1157680, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=8192, available_gpu_mem=59.72 GB
[2026-11-29 13:50:11] The server is fired up and ready to roll!
";

/// A launch of ranks, each with its lines.
pub(in crate::render) fn launch(ranks: &[(&str, &[&str])]) -> Launch {
    let mut log = String::new();
    for (tag, lines) in ranks {
        for line in *lines {
            log.push_str(&format!(
                "[2026-11-29 13:51:41{}{tag}] {line}\n",
                if tag.is_empty() { "" } else { " " }
            ));
        }
    }
    launches("server.log", &log, None).remove(0)
}

/// A launch of this many ranks that agree; one rank has no tag.
pub(in crate::render) fn ranks(number: usize) -> Launch {
    let tags: Vec<String> =
        (0..number).map(|rank| if number == 1 { String::new() } else { format!("TP{rank}") }).collect();
    let lines: &[&str] = &[
        "Load weight begin. avail mem=138.28 GB",
        "Load weight end. elapsed=0.12 s, type=LlamaForCausalLM, avail mem=130.80 GB, mem usage=7.48 GB",
    ];
    let ranks: Vec<(&str, &[&str])> = tags.iter().map(|tag| (tag.as_str(), lines)).collect();
    launch(&ranks)
}

/// Reads a log into launches. `arguments` takes the place of `ServerArgs(...)` in it.
pub(in crate::render) fn launches(source: &str, log: &str, arguments: Option<String>) -> Vec<Launch> {
    let log = log.replace("ServerArgs(...)", &arguments.unwrap_or_default());
    read_source(&Source::memory(source, log.as_bytes())).unwrap().launches
}

/// The arguments that headers and findings ask for.
pub(in crate::render) fn arguments(tp: u32, fraction: f64) -> String {
    format!(
        "ServerArgs(model_path='/models/llama-8b-geometry', mem_fraction_static={fraction}, tp_size={tp}, pp_size=1, \
         device='cuda', disable_cuda_graph=False, speculative_algorithm=None, max_total_tokens=None)"
    )
}

/// A sample of an H200.
pub(in crate::render) fn sample(
    device: u32,
    used: i128,
    taken_at: &str,
    processes: &[(u64, &str, Option<i128>)],
) -> Observation {
    let place = Place::new(&"nvidia-smi.txt".into(), 10 + 3 * u64::from(device), 1);
    Observation {
        taken_at: Stamp::parse(taken_at),
        device: Some(device),
        name: Some("NVIDIA H200".into()),
        total: Some(Quantity::whole_mib(143_771)),
        used: Some(Quantity::whole_mib(used)),
        processes: processes
            .iter()
            .map(|(pid, name, used)| ProcessUse {
                pid: Some(*pid),
                name: (*name).into(),
                kind: Some("C".into()),
                used: used.map(Quantity::whole_mib),
            })
            .collect(),
        processes_listed: true,
        ..Observation::unknown(place, Instrument::NvidiaSmi)
    }
}

/// What a source gave, analysed.
pub(in crate::render) fn analysed(launches: Vec<Launch>, observations: Vec<Observation>) -> Analysis {
    let facts = SourceFacts {
        name: "server.log".into(),
        kind: SourceKind::Log,
        bytes: 20_000,
        lines: 64,
        found_instead: None,
        left_out: 0,
    };
    let reading =
        SourceReading { facts, launches, observations, notes: Vec::new(), unrecognised: Vec::new() };
    analyse(vec![reading], &Settings::default())
}
