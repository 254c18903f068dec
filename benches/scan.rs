//! How fast a long log is read, and in how much memory, beside `rg -c` over the same needles.
//!
//! `cargo bench --bench scan` writes a log of 1 GiB that is mostly decode and HTTP lines, runs the program and ripgrep
//! over it (whole processes, warm cache, best of five), and prints gigabytes per second, peak memory and the ratio. It
//! fails where ripgrep is faster. `VRAMLEDGER_BENCH_MIB` sets another size. Without `--bench`, as `cargo test
//! --benches` runs it, a small log shows that all of it works, and nothing is compared.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let full = std::env::args().any(|argument| argument == "--bench");
    let asked = std::env::var("VRAMLEDGER_BENCH_MIB").ok().and_then(|size| size.parse().ok());
    let size = asked.unwrap_or(if full { 1024 } else { 8 });
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("server.log");
    write_log(&log, size << 20)?;
    let bytes = std::fs::metadata(&log)?.len();
    println!("{size} MiB, {} threads", std::thread::available_parallelism().map_or(1, usize::from));

    let own =
        best(|| Command::new(env!("CARGO_BIN_EXE_vramledger")).arg("--quiet").arg(&log).spawn_silent())?;
    report("vramledger", bytes, &own);
    let (literals, patterns) = (folder.path().join("literals"), folder.path().join("patterns"));
    std::fs::write(&literals, vramledger::read::needles().join("\n"))?;
    let escaped: Vec<String> = vramledger::read::needles().into_iter().map(regex::escape).collect();
    std::fs::write(&patterns, escaped.join("\n"))?;
    let mut slower = false;
    for (name, options, needles) in
        [("rg -c", &["-c"][..], &patterns), ("rg -c -F", &["-c", "-F"], &literals)]
    {
        match best(|| Command::new("rg").args(options).arg("-f").arg(needles).arg(&log).spawn_silent()) {
            Ok(theirs) => {
                report(name, bytes, &theirs);
                println!(
                    "  {:.2} times as long as vramledger",
                    theirs.time.as_secs_f64() / own.time.as_secs_f64()
                );
                slower |= theirs.time < own.time;
            }
            Err(error) => println!("{name}: not run ({error})"),
        }
    }
    if full && slower { Err(io::Error::other("ripgrep was faster over the same needles")) } else { Ok(()) }
}

/// One run of a program.
struct Run {
    time: Duration,
    peak_kib: u64,
}

trait SpawnSilent {
    fn spawn_silent(&mut self) -> io::Result<Run>;
}

impl SpawnSilent for Command {
    /// Runs to the end, and watches the peak of its memory in /proc.
    fn spawn_silent(&mut self) -> io::Result<Run> {
        let started = Instant::now();
        let mut child = self.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut peak_kib = 0;
        loop {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
            peak_kib = peak_kib.max(kib.unwrap_or(0));
            if let Some(status) = child.try_wait()? {
                // 1 is ripgrep's "no match" and vramledger's "findings"; 2 is an error of either program.
                return if status.code().is_some_and(|code| code < 2) {
                    Ok(Run { time: started.elapsed(), peak_kib })
                } else {
                    Err(io::Error::other(format!("it ended with {status}")))
                };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The shortest of five runs, with the highest peak of all.
fn best(mut run: impl FnMut() -> io::Result<Run>) -> io::Result<Run> {
    let mut best = run()?;
    for _ in 0..4 {
        let next = run()?;
        best = Run { time: best.time.min(next.time), peak_kib: best.peak_kib.max(next.peak_kib) };
    }
    Ok(best)
}

fn report(name: &str, bytes: u64, run: &Run) {
    let seconds = run.time.as_secs_f64();
    let peak = run.peak_kib as f64 / 1024.0;
    println!("{name}: {:.0} ms, {:.2} GB/s, peak {peak:.1} MiB", seconds * 1e3, bytes as f64 / seconds / 1e9);
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
