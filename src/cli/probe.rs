//! `vramledger probe`: what the drivers of this machine say now.

use super::Exit;
use super::arguments::{ColorWhen, ProbeArguments, ProbeFormat};
use super::output::{Target, complain};
use crate::probe::{AskCuda, Probe, ProbeOptions, Prober, sample_line};
use crate::render::{ProbeTable, probe_csv, probe_table};
use crate::report::probe_report;
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Asks once, or again and again with `--watch`.
pub fn run(arguments: &ProbeArguments, color: ColorWhen) -> anyhow::Result<Exit> {
    let mut recording = arguments.record.as_deref().map(Recording::open).transpose()?;
    let prober = Prober::start(
        ProbeOptions {
            cuda: if arguments.cuda { AskCuda::Always } else { AskCuda::WithoutNvml },
            devices: arguments.device.clone(),
        },
        Duration::from_secs(arguments.timeout),
    );
    let mut screen = Screen { lines: 0, in_place: std::io::stdout().is_terminal() };
    let mut first: Option<Probe> = None;
    let mut taken = 0_u64;
    loop {
        let began = Instant::now();
        let probe = prober.sample()?;
        if let Some(recording) = recording.as_mut() {
            recording.append(&probe)?;
        }
        let target = Target::open(None, color)?;
        let text = text(arguments, &probe, first.as_ref(), taken == 0, target.width())?;
        screen.show(target, &text)?;
        taken += 1;
        let usable = probe.has_figures();
        let first = first.get_or_insert(probe);
        let Some(seconds) = arguments.watch else {
            return Ok(if usable { Exit::Clean } else { unusable(first) });
        };
        if arguments.count.is_some_and(|count| taken >= count) {
            return Ok(Exit::Clean);
        }
        std::thread::sleep(Duration::from_secs_f64(seconds).saturating_sub(began.elapsed()));
    }
}

fn unusable(probe: &Probe) -> Exit {
    complain(&format!("no device told its memory ({} asked)", probe.observations.len()));
    Exit::Unusable
}

fn text(
    arguments: &ProbeArguments,
    probe: &Probe,
    first: Option<&Probe>,
    heading: bool,
    width: usize,
) -> anyhow::Result<String> {
    Ok(match arguments.format {
        ProbeFormat::Table => probe_table(probe, &ProbeTable { first, width, colour: true }),
        // One document a sample: with --watch, a stream of them, one a line.
        ProbeFormat::Json if arguments.watch.is_some() => {
            format!("{}\n", serde_json::to_string(&probe_report(probe))?)
        }
        ProbeFormat::Json => format!("{}\n", serde_json::to_string_pretty(&probe_report(probe))?),
        ProbeFormat::Csv => probe_csv(probe, heading)?,
    })
}

/// Where a watched table stands: on a terminal it is printed over itself.
struct Screen {
    lines: usize,
    in_place: bool,
}

impl Screen {
    fn show(&mut self, target: Target, text: &str) -> anyhow::Result<()> {
        if self.in_place && self.lines > 0 {
            let mut stdout = std::io::stdout().lock();
            let rows = terminal_size::terminal_size().map(|(_, rows)| usize::from(rows.0));
            if rows.is_some_and(|rows| self.lines >= rows) {
                // Taller than the terminal: its top has scrolled out of reach.
                write!(stdout, "\u{1b}[2J\u{1b}[H")?;
            } else {
                // Up over the last table, and everything below goes.
                write!(stdout, "\u{1b}[{}A\u{1b}[J", self.lines)?;
            }
        }
        self.lines = text.lines().count();
        target.write(text)
    }
}

/// A file that samples are appended to, one a line.
struct Recording {
    file: File,
    path: String,
}

impl Recording {
    fn open(path: &Path) -> anyhow::Result<Recording> {
        let shown = path.display().to_string();
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("can't write to {shown}"))?;
        Ok(Recording { file, path: shown })
    }

    fn append(&mut self, probe: &Probe) -> anyhow::Result<()> {
        let mut lines = String::new();
        for observation in &probe.observations {
            lines.push_str(&sample_line(observation)?);
            lines.push('\n');
        }
        // In one piece, so that a reader beside never sees half a sample.
        self.file.write_all(lines.as_bytes()).with_context(|| format!("can't write to {}", self.path))
    }
}
