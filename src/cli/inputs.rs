//! What the subcommands read alike: logs and dumps, and the files that describe a model.

use super::arguments::ModelArguments;
use super::output::complain;
use super::snapshot;
use crate::analysis::{Analysis, SourceReading};
use crate::budget::audit::ModelFacts;
use crate::budget::model::{Model, index_total_size};
use crate::input::Source;
use crate::read::read_source;
use crate::redact::Redactor;
use anyhow::Context;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// What to read: files in the order given, then dumps; standard input where nothing is named and something is piped in.
pub(super) fn sources(files: &[PathBuf], dumps: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let named: Vec<&PathBuf> = files.iter().chain(dumps).collect();
    let sources: Vec<Source> = named
        .iter()
        .filter(|path| !snapshot::is_snapshot(path))
        .map(|path| if *path == Path::new("-") { Source::Stdin } else { Source::Path(path.to_path_buf()) })
        .collect();
    if sources.iter().filter(|source| **source == Source::Stdin).count() > 1 {
        anyhow::bail!("standard input (`-`) can be read only once");
    }
    if sources.is_empty() && !named.is_empty() {
        anyhow::bail!(
            "only memory snapshots are named: `vramledger snapshot FILE` shows one; a report wants the server's log too"
        );
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

/// Reads all sources. A bad one is complained of, redacted where the report is, and never stops the others.
pub(super) fn read_all(sources: &[Source], redactor: &mut Option<Redactor>) -> (Vec<SourceReading>, bool) {
    let mut readings = Vec::new();
    let mut unreadable = false;
    for source in sources {
        match read_source(source) {
            Ok(reading) => readings.push(reading),
            Err(error) => {
                unreadable = true;
                let message = error.to_string();
                match redactor {
                    Some(redactor) => complain(&redactor.text(&message)),
                    None => complain(&message),
                }
            }
        }
    }
    (readings, unreadable)
}

/// Sources that gave nothing while others did: said, or a mistyped file would go unnoticed.
pub(super) fn warn_of_useless_sources(analysis: &Analysis) {
    for source in &analysis.sources {
        if let Some(instead) = &source.found_instead {
            complain(&format!("{}: {instead}", source.name));
        }
    }
    for snapshot in &analysis.unmatched_snapshots {
        let (name, device, why) = (&snapshot.name, snapshot.device, snapshot.why);
        complain(&format!("{name}, GPU {device}: {why}; not part of the report"));
    }
}

/// The model's files, where they were given.
pub(super) fn model(arguments: &ModelArguments) -> anyhow::Result<Option<ModelFacts>> {
    let Some(path) = &arguments.model_config else {
        anyhow::ensure!(
            arguments.weights_index.is_none(),
            "--weights-index needs --model-config as well: the config says how weights are divided"
        );
        return Ok(None);
    };
    let config = json(path)?;
    let model = Model::from_config(&config).with_context(|| path.display().to_string())?;
    let checkpoint_bytes = match &arguments.weights_index {
        Some(path) => Some(index_total_size(&json(path)?).with_context(|| {
            format!("{}: no metadata.total_size: is it a model.safetensors.index.json?", path.display())
        })?),
        None => None,
    };
    Ok(Some(ModelFacts { model, checkpoint_bytes }))
}

/// A model's files are small; more than this is something else.
const LARGEST_JSON: u64 = 256 << 20;

fn json(path: &Path) -> anyhow::Result<serde_json::Value> {
    let name = || path.display().to_string();
    let size = std::fs::metadata(path).with_context(name)?.len();
    anyhow::ensure!(size <= LARGEST_JSON, "{}: too large for a model's config or index", path.display());
    let bytes = std::fs::read(path).with_context(name)?;
    serde_json::from_slice(&bytes).with_context(name)
}
