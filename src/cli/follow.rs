//! `vramledger follow`: the ledger while a server starts.
//!
//! What has come so far is read again by the same way as a report's source, so that what is shown on the way and the
//! report at the end cannot differ. Progress goes to standard error, the report to standard output.

use super::Exit;
use super::arguments::{ColorWhen, FailOn, FollowArguments, Live, ReportArguments};
use super::output::{Target, complain};
use super::progress::Progress;
use super::report::{ask_now, conclude, redactor, settings};
use crate::analysis::{Analysis, LaunchAnalysis, Settings, SourceReading, analyse};
use crate::input::{Grown, InputError, Source, tail};
use crate::launch::Outcome;
use crate::probe::{AskCuda, ProbeOptions, Prober};
use crate::quantity::mib_whole;
use crate::read::read_source;
use crate::render::{new_entries, outlook};
use anyhow::Context;
use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How often new lines are read.
const PACE: Duration = Duration::from_millis(200);
/// How long nothing may come after ready or a failure before it counts as the end: tracebacks and summaries still come.
const SETTLE: Duration = Duration::from_millis(700);
/// How long to wait for that quiet: a server that serves is never quiet.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a log that are held. Of more, the start of the last launch is kept, and the newest lines.
const MOST_BYTES: usize = 32 << 20;

/// Follows until the server is ready or has failed, the pipe ends, or time is up; then reports.
pub fn run(arguments: &FollowArguments, color: ColorWhen) -> anyhow::Result<Exit> {
    let report = report_arguments(arguments);
    let mut redactor = redactor(&report)?;
    let (settings, _) = settings(&report)?;
    let target = Target::open(report.output.as_deref(), color)?;
    let usual = arguments.baseline.as_deref().map(usual_start).transpose()?.flatten();
    let source =
        if arguments.file == Path::new("-") { Source::Stdin } else { Source::Path(arguments.file.clone()) };
    let mut follower = Follower::new(&source, settings, usual, arguments.live);
    let complete = follower.watch(arguments.timeout.map(Duration::from_secs_f64))?;
    follower.progress.finish();
    if !complete {
        complain(&format!(
            "no ready line and no failure within {} s: this is how far the start has come",
            arguments.timeout.unwrap_or_default()
        ));
    }
    let reading = follower.read();
    let mut unreadable = false;
    let mut ready = false;
    let mut readings = Vec::new();
    match reading {
        Ok(reading) => {
            let outcome = reading.launches.last().map(|launch| launch.outcome);
            ready = matches!(outcome, Some(Outcome::Ready | Outcome::Running));
            readings.push(reading);
        }
        Err(error) => {
            unreadable = true;
            complain(&error.to_string());
        }
    }
    readings.extend(arguments.live.map(ask_now));
    let exit = conclude(readings, unreadable, target, &report, &mut redactor)?;
    // Whoever waits for a server wants to know whether it came, whatever the findings say.
    let came = ready || report.fail_on == FailOn::Never;
    Ok(if exit == Exit::Clean && !came { Exit::Findings } else { exit })
}

fn report_arguments(arguments: &FollowArguments) -> ReportArguments {
    ReportArguments {
        map: arguments.map.clone(),
        format: arguments.format,
        output: arguments.output.clone(),
        fail_on: arguments.fail_on,
        threshold: arguments.threshold.clone(),
        ..ReportArguments::default()
    }
}

/// Seconds to ready of the last launch in a JSON report that was made of a good start.
fn usual_start(path: &Path) -> anyhow::Result<Option<f64>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("can't read {name}"))?;
    let report: serde_json::Value = serde_json::from_str(&text)
        .with_context(|| format!("{name} is no report of `vramledger --format json`"))?;
    let launches = report.get("launches").and_then(serde_json::Value::as_array);
    Ok(launches
        .into_iter()
        .flatten()
        .rev()
        .find_map(|launch| launch.get("ready_after_s").and_then(serde_json::Value::as_f64)))
}

struct Follower {
    source: Source,
    growth: std::sync::mpsc::Receiver<Grown>,
    bytes: Vec<u8>,
    settings: Settings,
    usual: Option<f64>,
    progress: Progress,
    prober: Option<Prober>,
    /// Entries already shown, by launch and rank.
    shown: HashMap<(usize, String), usize>,
    began: Instant,
    /// The launch as last read, the seconds that its log had taken by then, and when that was.
    current: Option<(LaunchAnalysis, f64, Instant)>,
}

impl Follower {
    fn new(source: &Source, settings: Settings, usual: Option<f64>, live: Option<Live>) -> Follower {
        // Between two entries only NVML is asked: a context for each of them would move the very figures.
        let prober = live.map(|_| {
            let options = ProbeOptions { cuda: AskCuda::Never, ..ProbeOptions::default() };
            Prober::start(options, Duration::from_secs(5))
        });
        Follower {
            growth: tail(source),
            source: source.clone(),
            bytes: Vec::new(),
            settings,
            usual,
            progress: Progress::new(),
            prober,
            shown: HashMap::new(),
            began: Instant::now(),
            current: None,
        }
    }

    /// Whether the end was reached, rather than the time limit.
    fn watch(&mut self, limit: Option<Duration>) -> anyhow::Result<bool> {
        let mut quiet_since = Instant::now();
        let mut fresh = false;
        let mut ended = false;
        let mut over_since: Option<Instant> = None;
        let mut looked = Instant::now();
        loop {
            match self.growth.recv_timeout(PACE) {
                Ok(Grown::Bytes(bytes)) => {
                    self.bytes.extend(bytes);
                    quiet_since = Instant::now();
                    fresh = true;
                }
                Ok(Grown::Rotated) => self.interrupted("the file was rotated: following the new one"),
                Ok(Grown::Truncated) => self.interrupted("the file was cut short: reading it from its start"),
                Ok(Grown::Awaited) => self.progress.note("waiting for the file to appear"),
                Ok(Grown::Ended) | Err(RecvTimeoutError::Disconnected) => ended = true,
                Ok(Grown::Failed(error)) => {
                    return Err(
                        anyhow::Error::new(error).context(format!("can't read {}", self.source.name()))
                    );
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if fresh && (looked.elapsed() >= PACE || ended) {
                over_since = self.look().then(|| over_since.unwrap_or_else(Instant::now));
                (looked, fresh) = (Instant::now(), false);
            }
            self.show_outlook();
            let settled = !fresh && quiet_since.elapsed() >= SETTLE;
            if ended || over_since.is_some_and(|since| settled || since.elapsed() >= PATIENCE) {
                return Ok(true);
            }
            if limit.is_some_and(|limit| self.began.elapsed() >= limit) {
                return Ok(false);
            }
        }
    }

    fn interrupted(&mut self, words: &str) {
        if self.bytes.last().is_some_and(|last| *last != b'\n') {
            self.bytes.push(b'\n');
        }
        self.progress.line(words);
    }

    /// Reads what has come, shows what is new, and says whether the last launch is over.
    fn look(&mut self) -> bool {
        // A line that is still being written is no line yet.
        let Some(end) = memchr::memrchr(b'\n', &self.bytes) else { return false };
        let complete = self.bytes.get(..=end).unwrap_or_default().to_vec();
        let Ok(reading) = read_source(&Source::memory(&self.source.name(), complete)) else { return false };
        let analysis = analyse(vec![reading], &self.settings);
        self.forget(&analysis);
        let Some((index, launch)) = analysis.launches.iter().enumerate().next_back() else { return false };
        let mut grew = false;
        for (rank, facts) in launch.launch.ranks.iter().enumerate() {
            let shown = self.shown.entry((index, facts.tag.text.clone())).or_default();
            let (lines, count) = new_entries(launch, rank, *shown);
            *shown += count;
            grew |= count > 0;
            for line in lines {
                self.progress.line(&line);
            }
        }
        if grew {
            self.driver_now();
        }
        let elapsed = match (launch.launch.started_at, launch.launch.last_event_at) {
            (Some(start), Some(last)) => last.seconds_since(&start),
            _ => None,
        };
        let elapsed = elapsed.unwrap_or_else(|| self.began.elapsed().as_secs_f64());
        let over = launch.launch.outcome != Outcome::Incomplete;
        self.current = Some((launch.clone(), elapsed, Instant::now()));
        over
    }

    /// Time goes on between two lines of a log, too.
    fn show_outlook(&self) {
        if let Some((launch, elapsed, read_at)) = &self.current {
            let elapsed = elapsed + read_at.elapsed().as_secs_f64();
            self.progress.outlook(&outlook(launch, elapsed, self.usual));
        }
        self.progress.tick();
    }

    /// The driver's own figure, beside the log's.
    fn driver_now(&self) {
        let Some(prober) = &self.prober else { return };
        match prober.sample() {
            Ok(probe) => {
                let told = probe.observations.iter().filter(|sample| sample.mig.is_none());
                let cards: Vec<String> = told
                    .filter_map(|sample| Some(format!("GPU {} {}", sample.device?, mib_whole(sample.free?))))
                    .collect();
                self.progress.line(&format!("  driver: {} MiB free", cards.join(", ")));
            }
            Err(error) => self.progress.note(&error.to_string()),
        }
    }

    /// Bounds the bytes held: what stands before the last launch is not needed, nor old traffic.
    fn forget(&mut self, analysis: &Analysis) {
        if self.bytes.len() <= MOST_BYTES {
            return;
        }
        let first_line = analysis.launches.last().map_or(1, |launch| launch.launch.first_line);
        let skipped = usize::try_from(first_line.saturating_sub(1)).unwrap_or(usize::MAX);
        let starts = memchr::memchr_iter(b'\n', &self.bytes).nth(skipped.wrapping_sub(1)).map(|at| at + 1);
        let from = starts.unwrap_or(0);
        self.bytes.drain(..from);
        if self.bytes.len() > MOST_BYTES {
            // One launch of that size: its start is kept, and its newest half.
            let cut = self.bytes.len() - MOST_BYTES / 2;
            let end = memchr::memchr(b'\n', self.bytes.get(cut..).unwrap_or_default())
                .map_or(cut, |at| cut + at + 1);
            self.bytes.drain(MOST_BYTES / 4..end.max(MOST_BYTES / 4));
        }
        self.progress
            .line("the log is long: older lines are no longer held, line numbers count from what is");
        self.shown.clear();
    }

    fn read(&self) -> Result<SourceReading, InputError> {
        read_source(&Source::memory(&self.source.name(), self.bytes.clone()))
    }
}
