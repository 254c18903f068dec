//! How fast a long log is read, and in how much memory, beside `rg -c` over the same needles.
//!
//! `cargo bench --bench scan` writes a log of 1 GiB that is mostly decode and HTTP lines, reads it in processes of its
//! own (warm cache, best of five, whole process), and prints gigabytes per second, peak memory, and ripgrep's time
//! where `rg` is on the path. It fails where ripgrep is faster. `VRAMLEDGER_BENCH_MIB` sets another size. Without
//! `--bench`, as `cargo test --benches` runs it, a small log shows that all of it works, and nothing is compared.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vramledger::input::{NeedleClass, Needles, Source, read_lines};

/// Distinctive pieces of the lines that SGLang prints while it starts, stops or fails.
const NEEDLES: &[&str] = &[
    "avail mem",
    "mem usage",
    "avail_mem",
    "available_gpu_mem",
    "KV Cache",
    "KV cache dtype",
    "Mamba Cache",
    "max_total_num_tokens",
    "server_args",
    "out of memory",
    "OutOfMemoryError",
    "Traceback",
    "Memory pool end",
    "Load weight",
    "Init torch distributed",
    "Init nccl",
    "Init parallel",
    "Memory baseline",
    "cuda graph begin",
    "cuda graph end",
    "CUDA graph begin",
    "CUDA graph end",
    "Capture cuda graph",
    "Capture CUDA graph",
    "Capture draft",
    "Capture piecewise",
    "Capturing batches",
    "Capturing num tokens",
    "sliding window memory pool",
    "SWAKVPool",
    "DSV4",
    "memory calculation",
    "UnifiedKVPool",
    "ReplaySSM",
    "of the KV budget",
    "mamba checkpoint pool",
    "Post-capture KV sizing",
    "memory_saver",
    "memory-saver",
    "LoRA",
    "Update weights",
    "Update engine weights",
    "host memory",
    "HiCache",
    "memory capacity is unbalanced",
    "Not enough memory",
    "Not enough GPU memory",
    "mem-fraction-static",
    "mem_fraction_static",
    "SWA pool",
    "larger than the profiled value",
    "max_running_requests",
    "KV pool",
    "RuntimeError",
    "ValueError",
    "alloc_req_slots",
    "fired up and ready",
    "Uvicorn running",
    "SIGTERM",
    "SIGQUIT",
    "Killed",
    "CUDA error",
    "CUDA driver error",
    "CUBLAS_STATUS",
    "NCCL error",
    "DeepGEMM",
    "symmetric memory",
    "Started server process",
];

/// The same for nvidia-smi.
const DUMP_NEEDLES: &[&str] = &[
    "NVIDIA-SMI",
    "MiB",
    "GiB",
    "nvidia_smi_log",
    "FB Memory Usage",
    "memory.used",
    "memory.total",
    "used_gpu_memory",
];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path] = arguments.as_slice()
        && flag == "--child"
    {
        return child(path);
    }
    let asked = std::env::var("VRAMLEDGER_BENCH_MIB").ok().and_then(|size| size.parse().ok());
    let full = arguments.iter().any(|argument| argument == "--bench");
    let size = asked.unwrap_or(if full { 1024 } else { 8 });
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("server.log");
    write_log(&log, size << 20)?;
    let bytes = std::fs::metadata(&log)?.len();
    println!("{size} MiB, {} threads", std::thread::available_parallelism().map_or(1, usize::from));

    let own = best(|| Command::new(std::env::current_exe()?).arg("--child").arg(&log).output())?;
    report("vramledger input", bytes, own.0);
    print!("{}", String::from_utf8_lossy(&own.1));
    let needles = folder.path().join("needles");
    std::fs::write(&needles, [NEEDLES, DUMP_NEEDLES].concat().join("\n"))?;
    for (name, options) in [("rg -c", &["-c"][..]), ("rg -c -F", &["-c", "-F"])] {
        match best(|| {
            Command::new("rg").args(options).arg("-f").arg(&needles).arg(&log).stdin(Stdio::null()).output()
        }) {
            Ok(theirs) => {
                report(name, bytes, theirs.0);
                println!(
                    "  {:.2} times as long as vramledger's",
                    theirs.0.as_secs_f64() / own.0.as_secs_f64()
                );
            }
            Err(error) => println!("{name}: not run ({error})"),
        }
    }
    Ok(())
}

/// One whole process: reads the lines of a log, or of standard input for `-`, and prints what it found and its peak memory.
fn child(path: &str) -> io::Result<()> {
    let needles = Needles::new(&[
        NeedleClass { literals: NEEDLES, before: 3, after: 4 },
        NeedleClass { literals: DUMP_NEEDLES, before: 6, after: 200 },
    ])
    .map_err(io::Error::other)?;
    let (mut lines, mut hits) = (0_u64, 0_u64);
    let source = if path == "-" { Source::Stdin } else { Source::Path(path.into()) };
    let summary = read_lines(&source, &needles, |line| {
        lines += 1;
        hits += u64::from(line.hit);
        ControlFlow::Continue(())
    })
    .map_err(io::Error::other)?;
    println!("  {} lines, {lines} handed on, {hits} of them hits", summary.lines);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("  peak memory {}", peak.trim());
    }
    Ok(())
}

/// The shortest of five runs, and what the last one printed.
fn best(mut run: impl FnMut() -> io::Result<std::process::Output>) -> io::Result<(Duration, Vec<u8>)> {
    let mut shortest = Duration::MAX;
    let mut printed = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let output = run()?;
        shortest = shortest.min(started.elapsed());
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        printed = output.stdout;
    }
    Ok((shortest, printed))
}

fn report(name: &str, bytes: u64, time: Duration) {
    let seconds = time.as_secs_f64();
    println!("{name}: {:.0} ms, {:.2} GB/s", seconds * 1e3, bytes as f64 / seconds / 1e9);
}

/// Writes a log: a start-up, then traffic, and a restart each 128 MiB.
fn write_log(path: &Path, size: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut written = 0;
    let mut next_start = 0;
    while written < size {
        let (minute, second) = (random.below(60), random.below(60));
        let prefix = format!("[2026-11-29 13:{minute:02}:{second:02}");
        let line = if written >= next_start {
            next_start += 128 << 20;
            START.replace("{prefix}", &prefix)
        } else {
            traffic(&prefix, &mut random)
        };
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    out.flush()
}

const START: &str = "\
{prefix}] server_args=ServerArgs(model_path='/models/llama-8b', tp_size=1, mem_fraction_static=0.85)\n\
{prefix} TP0] Init torch distributed ends. elapsed=0.23 s, mem usage=0.09 GB\n\
{prefix} TP0] Load weight begin. avail mem=139.13 GB\n\
{prefix} TP0] Load weight end. elapsed=0.13 s, type=LlamaForCausalLM, avail mem=124.15 GB, mem usage=14.98 GB.\n\
{prefix} TP0] KV Cache is allocated. #tokens: 845985, K size: 51.63 GB, V size: 51.63 GB\n\
{prefix} TP0] Memory pool end. avail mem=20.65 GB\n\
{prefix}] INFO:     Uvicorn running on http://127.0.0.1:30020 (Press CTRL+C to quit)\n";

fn traffic(prefix: &str, random: &mut Random) -> String {
    match random.below(16) {
        0 => format!(
            "{prefix} TP0] Prefill batch, #new-seq: 1, #new-token: {}, #cached-token: {}, token usage: 0.{:02}, #running-req: {}, #queue-req: 0, \n",
            random.below(8192),
            random.below(8192),
            random.below(100),
            random.below(64),
        ),
        1..8 => {
            let path = [
                "POST /generate",
                "POST /v1/chat/completions",
                "GET /health",
                "GET /server_info",
                "GET /metrics",
            ];
            let path = path.get(random.below(5) as usize).unwrap_or(&"GET /");
            let (host, port) = (random.below(256), random.below(60_000));
            format!("{prefix}] INFO:     10.42.0.{host}:{port} - \"{path} HTTP/1.1\" 200 OK\n")
        }
        _ => format!(
            "{prefix} TP0] Decode batch, #running-req: {}, #token: {}, token usage: 0.{:02}, cuda graph: True, gen throughput (token/s): {}.{:02}, #queue-req: {}, \n",
            random.below(64),
            random.below(900_000),
            random.below(100),
            random.below(4000),
            random.below(100),
            random.below(16),
        ),
    }
}

/// A small pseudo-random generator (xorshift): the same log each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
