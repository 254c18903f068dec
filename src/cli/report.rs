//! `vramledger report`: the default, and the heart of the program.

use super::Exit;
use super::arguments::{ColorWhen, Format, Live, ReportArguments};
use super::output::{Target, complain};
use crate::analysis::{Analysis, Settings, SourceFacts, SourceKind, SourceReading, analyse};
use crate::grammar::nvidia_smi::{DumpNote, DumpProblem};
use crate::input::Source;
use crate::place::Place;
use crate::probe::{AskCuda, LIVE, ProbeOptions, Prober};
use crate::read::read_source;
use crate::render::{TableOptions, terminal};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long `--live` waits for the driver.
const LIVE_LIMIT: Duration = Duration::from_secs(20);

/// Reads everything that was named, and prints the report.
pub fn run(arguments: &ReportArguments, color: ColorWhen) -> anyhow::Result<Exit> {
    let sources = sources(arguments)?;
    let target = Target::open(arguments.output.as_deref(), color)?;
    let (mut readings, unreadable) = read_all(&sources);
    readings.extend(arguments.live.map(ask_now));
    conclude(readings, unreadable, target, arguments)
}

/// What the arguments set.
pub(super) fn settings(arguments: &ReportArguments) -> anyhow::Result<Settings> {
    let mut settings = Settings { mapped: arguments.map.clone(), ..Settings::default() };
    for threshold in &arguments.threshold {
        settings.thresholds.set(threshold)?;
    }
    Ok(settings)
}

/// Analyses what was read and prints the report.
pub(super) fn conclude(
    readings: Vec<SourceReading>,
    unreadable: bool,
    target: Target,
    arguments: &ReportArguments,
) -> anyhow::Result<Exit> {
    let analysis = analyse(readings, &settings(arguments)?);
    if analysis.is_empty() {
        for source in &analysis.sources {
            if let Some(instead) = &source.found_instead {
                complain(&format!("{}: {instead}", source.name));
            }
        }
        if !analysis.sources.is_empty() {
            complain(
                "nothing to report on; what is wanted: a server's log from its start, with lines such as `Load weight begin. avail mem=…`",
            );
        }
        return Ok(Exit::Unusable);
    }
    warn_of_useless_sources(&analysis);
    target_write(target, arguments, &analysis)?;
    Ok(match (unreadable, arguments.fail_on.fails(analysis.worst())) {
        (true, _) => Exit::Unusable,
        (false, true) => Exit::Findings,
        (false, false) => Exit::Clean,
    })
}

fn target_write(target: Target, arguments: &ReportArguments, analysis: &Analysis) -> anyhow::Result<()> {
    let text = match arguments.format {
        Format::Json => {
            let mut json = serde_json::to_string_pretty(&crate::report::report(analysis))?;
            json.push('\n');
            json
        }
        Format::Table => terminal(
            analysis,
            &TableOptions {
                width: target.width(),
                colour: true,
                per_rank: arguments.per_rank,
                quiet: arguments.quiet,
                ascii: false,
            },
        ),
    };
    target.write(&text)
}

/// What to read: files in the order given, then dumps; standard input where nothing is named and something is piped in.
fn sources(arguments: &ReportArguments) -> anyhow::Result<Vec<Source>> {
    let named = arguments.files.iter().chain(&arguments.smi);
    let sources: Vec<Source> = named
        .map(|path| if path == Path::new("-") { Source::Stdin } else { Source::Path(path.clone()) })
        .collect();
    if sources.iter().filter(|source| **source == Source::Stdin).count() > 1 {
        anyhow::bail!("standard input (`-`) can be read only once");
    }
    if !sources.is_empty() || arguments.live.is_some() && std::io::stdin().is_terminal() {
        return Ok(sources);
    }
    if std::io::stdin().is_terminal() {
        anyhow::bail!(
            "nothing to read: name a log, or pipe one in (`kubectl logs pod | vramledger`); see `vramledger --help`"
        );
    }
    Ok(vec![Source::Stdin])
}

/// Reads all sources. A bad one is complained of and never stops the others.
fn read_all(sources: &[Source]) -> (Vec<SourceReading>, bool) {
    let mut readings = Vec::new();
    let mut unreadable = false;
    for source in sources {
        match read_source(source) {
            Ok(reading) => readings.push(reading),
            Err(error) => {
                unreadable = true;
                complain(&error.to_string());
            }
        }
    }
    (readings, unreadable)
}

/// What this machine's GPUs say now, as a source like any other. Where nobody can be asked, that is said and the report
/// goes on.
pub(super) fn ask_now(live: Live) -> SourceReading {
    let cuda = match live {
        Live::Auto => AskCuda::WithoutNvml,
        Live::Nvml => AskCuda::Never,
        Live::Cuda => AskCuda::Always,
    };
    let options = ProbeOptions { cuda, ..ProbeOptions::default() };
    let (observations, words) = match Prober::start(options, LIVE_LIMIT).sample() {
        Ok(probe) => (probe.observations, probe.notes),
        Err(error) => {
            complain(&format!("--live: {error}; the report goes on without"));
            (Vec::new(), vec![error.to_string()])
        }
    };
    let name: Arc<str> = Arc::from(LIVE);
    let note = |words| DumpNote { place: Place::new(&name, 1, 1), problem: DumpProblem::Probe { words } };
    SourceReading {
        facts: SourceFacts {
            name: Arc::clone(&name),
            kind: SourceKind::Smi,
            bytes: 0,
            lines: 0,
            found_instead: None,
            left_out: 0,
        },
        launches: Vec::new(),
        observations,
        notes: words.into_iter().map(note).collect(),
        unrecognised: Vec::new(),
    }
}

/// Sources that gave nothing while others did: said, or a mistyped file would go unnoticed.
fn warn_of_useless_sources(analysis: &Analysis) {
    for source in &analysis.sources {
        if let Some(instead) = &source.found_instead {
            complain(&format!("{}: {instead}", source.name));
        }
    }
}
