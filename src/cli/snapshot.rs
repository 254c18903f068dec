//! `vramledger snapshot`: PyTorch's memory snapshots by pool; and how snapshots are read for `report --snapshot`.

use super::Exit;
use super::arguments::{ColorWhen, Format, SnapshotArguments};
use super::output::{Target, complain};
use crate::holders::SnapshotSource;
use crate::render::{SnapshotView, snapshot as table};
use crate::report::snapshot_report;
use crate::snapshot::{self, DeviceSummary, Form, LARGEST};
use anyhow::Context;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a file that tell what it is.
const HEAD: u64 = 4096;

/// A snapshot that was read.
struct SnapshotFile {
    name: String,
    form: Form,
    devices: Vec<DeviceSummary>,
}

/// Prints each snapshot's sums. A bad file never stops the others.
pub fn run(arguments: &SnapshotArguments, color: ColorWhen) -> anyhow::Result<Exit> {
    if arguments.files.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        anyhow::bail!("standard input (`-`) can be read only once");
    }
    let target = Target::open(arguments.output.as_deref(), color)?;
    let mut files = Vec::new();
    for path in &arguments.files {
        match read(path) {
            Ok(file) => files.push(file),
            Err(error) => complain(&format!("{error:#}")),
        }
    }
    let unreadable = files.len() < arguments.files.len();
    if files.is_empty() {
        return Ok(Exit::Unusable);
    }
    let text = match arguments.format {
        Format::Json => {
            let facts = files.iter().map(|file| (file.name.as_str(), file.form, file.devices.as_slice()));
            let mut json = serde_json::to_string_pretty(&snapshot_report(facts))?;
            json.push('\n');
            json
        }
        Format::Table => {
            let width = target.width();
            let view = |file: &SnapshotFile| {
                let view = SnapshotView {
                    name: &file.name,
                    form: file.form,
                    devices: &file.devices,
                    most_sites: arguments.sites,
                };
                table(&view, width, true)
            };
            files.iter().map(view).collect::<Vec<_>>().join("\n")
        }
    };
    target.write(&text)?;
    Ok(if unreadable { Exit::Unusable } else { Exit::Clean })
}

/// Reads snapshots for a report. The flag says whether one could not be read.
pub fn read_all(paths: &[impl AsRef<Path>]) -> (Vec<SnapshotSource>, bool) {
    let mut sources = Vec::new();
    for path in paths {
        match read(path.as_ref()) {
            Ok(file) => {
                sources.push(SnapshotSource { name: file.name.as_str().into(), devices: file.devices });
            }
            Err(error) => complain(&format!("{error:#}")),
        }
    }
    let unreadable = sources.len() < paths.len();
    (sources, unreadable)
}

/// Whether a named file is a pickle: then it is a snapshot, however it was named. Pipes are not looked into, since what is
/// read from them is gone.
pub fn is_snapshot(path: &Path) -> bool {
    let head = || -> std::io::Result<Vec<u8>> {
        let mut head = Vec::new();
        if std::fs::metadata(path)?.is_file() {
            File::open(path)?.take(HEAD).read_to_end(&mut head)?;
        }
        Ok(head)
    };
    // A file that can't be read is complained of where it is read.
    head().is_ok_and(|head| snapshot::is_pickle(&head))
}

fn read(path: &Path) -> anyhow::Result<SnapshotFile> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    // One byte more than is read, so that the reader can say that it is too much.
    let limit = LARGEST as u64 + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).context("standard input")?;
    } else {
        let file = File::open(path).with_context(|| name.clone())?;
        file.take(limit).read_to_end(&mut bytes).with_context(|| name.clone())?;
    }
    let snapshot = snapshot::read(bytes).map_err(|error| anyhow::anyhow!("{name} {error}"))?;
    Ok(SnapshotFile { form: snapshot.form, devices: snapshot::summarise(&snapshot), name })
}
