//! Recorded launches, analysed.

use std::path::{Path, PathBuf};
use vramledger::analysis::{Analysis, LaunchAnalysis, Settings, analyse};
use vramledger::budget::plan::Facts;
use vramledger::finding::Finding;
use vramledger::input::Source;
use vramledger::read::read_source;

pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A recording with its dump, where it has one.
pub fn recorded(name: &str) -> Analysis {
    let files = ["server.log", "nvidia-smi.txt"].map(|file| folder(name).join(file));
    let readings = files.into_iter().filter(|file| file.exists());
    analyse(readings.map(|file| read_source(&Source::Path(file)).unwrap()).collect(), &Settings::default())
}

/// A log in memory.
pub fn analysed(log: &str, settings: &Settings) -> Analysis {
    analyse(vec![read_source(&Source::memory("log", log.as_bytes())).unwrap()], settings)
}

/// The log of a recording, each text replaced, which must be there.
pub fn altered(name: &str, replacements: &[(&str, &str)]) -> String {
    let log = std::fs::read_to_string(folder(name).join("server.log")).unwrap();
    replacements.iter().fold(log, |log, (from, to)| {
        assert!(log.contains(from), "{name} does not say {from}");
        log.replace(from, to)
    })
}

/// The recordings of real servers: named for what was tried and the release, unlike the cases that were written.
pub fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap());
    let recorded = |name: &String| {
        (name.ends_with("-0.5.12") || name.ends_with("-0.5.15")) && !name.starts_with("second-node")
    };
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).filter(recorded).collect();
    names.sort();
    assert!(names.len() > 20, "the recordings are there");
    names
}

pub fn facts(launch: &LaunchAnalysis) -> &Facts {
    launch.facts[0].as_ref().unwrap()
}

pub fn finding<'a>(launch: &'a LaunchAnalysis, name: &str) -> Option<&'a Finding> {
    launch.findings.iter().find(|finding| finding.rule.name == name)
}

/// The fraction that a piece of advice names.
pub fn advised_fraction(finding: &Finding) -> Option<f64> {
    finding.advice.iter().find_map(|advice| {
        let (_, rest) = advice.split_once("--mem-fraction-static ")?;
        rest.split([' ', ':']).next()?.parse().ok()
    })
}
