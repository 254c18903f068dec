//! `vramledger report`: the default, and the heart of the program.

use super::Exit;
use super::arguments::{ColorWhen, Format, ReportArguments};
use super::output::{Target, complain};
use crate::analysis::{Analysis, Settings, SourceReading, analyse};
use crate::input::Source;
use crate::read::read_source;
use crate::render::{self, TableOptions, terminal};
use std::io::IsTerminal;
use std::path::Path;

/// Reads everything that was named, and prints the report.
pub fn run(arguments: &ReportArguments, color: ColorWhen) -> anyhow::Result<Exit> {
    if arguments.max_chars.is_some() && arguments.format != Format::Markdown {
        anyhow::bail!("--max-chars goes with --format markdown only");
    }
    let sources = sources(arguments)?;
    let target = Target::open(arguments.output.as_deref(), color)?;
    let mut settings = Settings { mapped: arguments.map.clone(), ..Settings::default() };
    for threshold in &arguments.threshold {
        settings.thresholds.set(threshold)?;
    }
    let (readings, unreadable) = read_all(&sources);
    let analysis = analyse(readings, &settings);
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

/// What to read: files in the order given, then dumps; standard input where nothing is named and something is piped in.
fn sources(arguments: &ReportArguments) -> anyhow::Result<Vec<Source>> {
    let named = arguments.files.iter().chain(&arguments.smi);
    let sources: Vec<Source> = named
        .map(|path| if path == Path::new("-") { Source::Stdin } else { Source::Path(path.clone()) })
        .collect();
    if sources.iter().filter(|source| **source == Source::Stdin).count() > 1 {
        anyhow::bail!("standard input (`-`) can be read only once");
    }
    if !sources.is_empty() {
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

/// Sources that gave nothing while others did: said, or a mistyped file would go unnoticed.
fn warn_of_useless_sources(analysis: &Analysis) {
    for source in &analysis.sources {
        if let Some(instead) = &source.found_instead {
            complain(&format!("{}: {instead}", source.name));
        }
    }
}
