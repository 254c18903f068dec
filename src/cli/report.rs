//! `vramledger report`: the default, and the heart of the program.

use super::Exit;
use super::arguments::{ColorWhen, Format, Live, ReportArguments};
use super::inputs::{model, read_all, sources, warn_of_useless_sources};
use super::output::{Target, complain, is_broken_pipe};
use super::snapshot;
use crate::analysis::{Analysis, Settings, SourceFacts, SourceKind, SourceReading, analyse};
use crate::grammar::nvidia_smi::{DumpNote, DumpProblem};
use crate::place::Place;
use crate::probe::{AskCuda, LIVE, ProbeOptions, Prober};
use crate::redact::Redactor;
use crate::render::{self, TableOptions, terminal};
use std::sync::Arc;
use std::time::Duration;

/// How long `--live` waits for the driver.
const LIVE_LIMIT: Duration = Duration::from_secs(20);

/// Reads everything that was named, and prints the report.
pub fn run(arguments: &ReportArguments, color: ColorWhen) -> anyhow::Result<Exit> {
    if arguments.max_chars.is_some() && arguments.format != Format::Markdown {
        anyhow::bail!("--max-chars goes with --format markdown only");
    }
    let mut redactor = redactor(arguments)?;
    let result = report(arguments, color, &mut redactor);
    match (result, redactor) {
        // Messages quote names of files: they travel with the report into tickets and logs of CI.
        (Err(error), Some(mut redactor)) if !is_broken_pipe(&error) => {
            Err(anyhow::anyhow!("{}", redactor.text(&format!("{error:#}"))))
        }
        (result, _) => result,
    }
}

/// The redactor that the arguments ask for.
pub(super) fn redactor(arguments: &ReportArguments) -> anyhow::Result<Option<Redactor>> {
    Ok(arguments.redacts().then(|| Redactor::new(arguments.redact_pattern.clone())).transpose()?)
}

fn report(
    arguments: &ReportArguments,
    color: ColorWhen,
    redactor: &mut Option<Redactor>,
) -> anyhow::Result<Exit> {
    let sources = sources(&arguments.files, &arguments.smi, arguments.live.is_some())?;
    let target = Target::open(arguments.output.as_deref(), color)?;
    let (mut readings, unreadable) = read_all(&sources, redactor);
    readings.extend(arguments.live.map(ask_now));
    conclude(readings, unreadable, target, arguments, redactor)
}

/// What the arguments set, and whether a snapshot that they name could not be read.
pub(super) fn settings(arguments: &ReportArguments) -> anyhow::Result<(Settings, bool)> {
    let named = arguments.files.iter().chain(&arguments.smi);
    let found = named.filter(|path| snapshot::is_snapshot(path));
    let (snapshots, no_snapshot) =
        snapshot::read_all(&arguments.snapshot.iter().chain(found).collect::<Vec<_>>());
    let mut settings = Settings {
        snapshots,
        mapped: arguments.map.clone(),
        card_mib: arguments.model.gpu_mem,
        model: model(&arguments.model)?,
        ..Settings::default()
    };
    for threshold in &arguments.threshold {
        settings.thresholds.set(threshold)?;
    }
    Ok((settings, no_snapshot))
}

/// Analyses what was read and prints the report.
pub(super) fn conclude(
    mut readings: Vec<SourceReading>,
    unreadable: bool,
    target: Target,
    arguments: &ReportArguments,
    redactor: &mut Option<Redactor>,
) -> anyhow::Result<Exit> {
    let (settings, no_snapshot) = settings(arguments)?;
    let unreadable = unreadable || no_snapshot;
    if let Some(redactor) = redactor {
        redactor.readings(&mut readings);
    }
    let mut analysis = analyse(readings, &settings);
    if let Some(redactor) = redactor {
        redactor.analysis(&mut analysis);
    }
    warn_of_useless_sources(&analysis);
    if analysis.is_empty() {
        if !analysis.sources.is_empty() {
            complain(
                "nothing to report on; what is wanted: a server's log from its start, with lines such as `Load weight begin. avail mem=…`",
            );
        }
        return Ok(Exit::Unusable);
    }
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
        Format::Markdown => render::markdown(analysis, arguments.max_chars),
        Format::Html => render::html(analysis),
        Format::Csv => render::csv(analysis)?,
        Format::Svg => render::svg(analysis).ok_or_else(|| {
            anyhow::anyhow!("no launch printed a free-memory figure: there is nothing to draw")
        })?,
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
