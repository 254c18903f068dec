//! The cases under `fixtures/`: how they are found and run. Shared by the harness and the truth check.

#![allow(dead_code, reason = "each test program uses its part")]

use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One folder under `fixtures/`.
#[derive(Debug)]
pub struct Case {
    /// The folder's name.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// Its `case.json`.
    pub file: CaseFile,
}

/// `case.json`, as CONTRIBUTING.md describes it. An unknown key is an error: a mistyped check would check nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Arguments of `vramledger`, without `--format`.
    pub arguments: Vec<String>,
    /// A file of the folder that is piped in.
    #[serde(default)]
    pub stdin: Option<String>,
    /// The exit status.
    pub exit: i32,
    /// Facts that must hold.
    #[serde(default)]
    pub checks: Checks,
}

/// Facts of the JSON report, and of standard error. What is absent is not checked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checks {
    /// How many launches.
    pub launches: Option<usize>,
    /// The outcome of each launch.
    pub outcomes: Option<Vec<String>>,
    /// The failed stage of each launch.
    pub failed_stages: Option<Vec<Option<String>>>,
    /// The release of each launch: `0.5.12`, or `0.5.6.post2 - 0.5.9` where it is left open.
    pub versions: Option<Vec<String>>,
    /// How many ranks, over all launches.
    pub ranks: Option<usize>,
    /// The tags of each launch's ranks.
    pub tags: Option<Vec<Vec<String>>>,
    /// The device of each rank, over all launches.
    pub devices: Option<Vec<Option<u32>>>,
    /// The class names of the first launch's models.
    pub models: Option<Vec<String>>,
    /// `stage` or `stage/draft` of each stage posting of the first launch's first rank, in order.
    pub stages: Option<Vec<String>>,
    /// Whether every rank's ledger balances (`true`), or none could be balanced (`null` in the report: `false` here).
    pub balances: Option<bool>,
    /// How many lines no grammar knew.
    pub unrecognised: Option<usize>,
    /// How many samples of devices.
    pub observations: Option<usize>,
    /// How many ranks were held against a sample.
    pub reconciliations: Option<usize>,
    /// Every reconciliation leaves less than this.
    pub unexplained_below_mib: Option<f64>,
    /// Names of findings that must be there.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Names of findings that must not be there.
    #[serde(default)]
    pub no_findings: Vec<String>,
    /// What each source is: `log`, `smi`, `mixed`, `unknown`.
    pub kinds: Option<Vec<String>>,
    /// Words that the report must not hold: secrets of the log.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Words that standard error must hold.
    #[serde(default)]
    pub stderr: Vec<String>,
}

/// All cases, by name.
pub fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap_or_else(|error| panic!("{}: {error}", root.display()))
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
        .into_iter()
        .map(|folder| {
            let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
            let path = folder.join("case.json");
            let text =
                std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}/case.json: {error}"));
            let file =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}/case.json: {error}"));
            Case { name, folder, file }
        })
        .collect()
}

/// What one run gave.
pub struct Run {
    /// Exit status.
    pub exit: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Case {
    /// Runs the binary in the case's folder, so that paths in its output are relative.
    pub fn run(&self, format: &str) -> Run {
        let mut command = assert_cmd::Command::cargo_bin("vramledger").expect("the binary is built");
        command
            .current_dir(&self.folder)
            .env("COLUMNS", "100")
            .env("NO_COLOR", "1")
            .env_remove("CLICOLOR_FORCE")
            .args(&self.file.arguments)
            .args(["--format", format]);
        if let Some(stdin) = &self.file.stdin {
            command
                .pipe_stdin(self.folder.join(stdin))
                .unwrap_or_else(|error| panic!("{}: {stdin}: {error}", self.name));
        }
        let output = command.output().expect("the binary runs");
        Run {
            exit: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The JSON report. `Null` where none was printed.
    pub fn json(run: &Run) -> Value {
        serde_json::from_str(&run.stdout).unwrap_or(Value::Null)
    }
}
