//! `vramledger report`: the default, and the heart of the program.

use super::Exit;
use super::arguments::{ColorWhen, Format, ReportArguments};
use super::inputs::{model, read_all, sources, warn_of_useless_sources};
use super::output::{Target, complain, is_broken_pipe};
use super::snapshot;
use crate::analysis::{Analysis, Settings, analyse};
use crate::redact::Redactor;
use crate::render::{TableOptions, terminal};

/// Reads everything that was named, and prints the report.
pub fn run(arguments: &ReportArguments, color: ColorWhen) -> anyhow::Result<Exit> {
    let mut redactor =
        arguments.redacts().then(|| Redactor::new(arguments.redact_pattern.clone())).transpose()?;
    let result = report(arguments, color, &mut redactor);
    match (result, redactor) {
        // Messages quote names of files: they travel with the report into tickets and logs of CI.
        (Err(error), Some(mut redactor)) if !is_broken_pipe(&error) => {
            Err(anyhow::anyhow!("{}", redactor.text(&format!("{error:#}"))))
        }
        (result, _) => result,
    }
}

fn report(
    arguments: &ReportArguments,
    color: ColorWhen,
    redactor: &mut Option<Redactor>,
) -> anyhow::Result<Exit> {
    let sources = sources(&arguments.files, &arguments.smi)?;
    let target = Target::open(arguments.output.as_deref(), color)?;
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
    let (mut readings, unreadable) = read_all(&sources, redactor);
    let unreadable = unreadable || no_snapshot;
    if let Some(redactor) = redactor {
        redactor.readings(&mut readings);
    }
    let mut analysis = analyse(readings, &settings);
    if let Some(redactor) = redactor {
        redactor.analysis(&mut analysis);
    }
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
