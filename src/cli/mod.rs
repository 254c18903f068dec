//! The command line: arguments, and one file a subcommand.
//!
//! Everything that talks to the user's terminal stands here; the library below it returns values and typed errors.

mod arguments;
mod explain;
mod inputs;
mod output;
mod plan;
mod plan_arguments;
mod report;
mod snapshot;

pub use arguments::Arguments;

use arguments::{Command, SchemaOf};
use clap::{CommandFactory, Parser};
use std::io::Write;
use std::process::ExitCode;

/// How a run ends: the contract with shells and CI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was read, and nothing found at or above `--fail-on`.
    Clean,
    /// Findings at or above `--fail-on`.
    Findings,
    /// Wrong usage, or input that could not be read.
    Unusable,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::Unusable => 2,
        })
    }
}

/// Parses the process's arguments and runs what they ask for. Clap prints its own usage errors and ends with 2.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Some(Command::Report(report)) => report::run(&report, arguments.color),
        Some(Command::Plan(plan)) => plan::run(&plan, arguments.color),
        Some(Command::Explain { code }) => explain::run(code.as_deref(), arguments.color),
        Some(Command::Snapshot(snapshot)) => snapshot::run(&snapshot, arguments.color),
        Some(Command::Schema { of }) => schema(of),
        Some(Command::Completions { shell }) => completions(shell),
        Some(Command::Man) => man(),
        None => report::run(&arguments.report, arguments.color),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) if output::is_broken_pipe(&error) => Exit::Clean.into(),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            Exit::Unusable.into()
        }
    }
}

fn schema(of: SchemaOf) -> anyhow::Result<Exit> {
    let schema = match of {
        SchemaOf::Report => crate::report::schema(),
        SchemaOf::Snapshot => crate::report::snapshot_schema(),
    };
    let mut stdout = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut stdout, &schema)?;
    writeln!(stdout)?;
    Ok(Exit::Clean)
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    // Into memory first: clap_complete panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), env!("CARGO_PKG_NAME"), &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Clean)
}

fn man() -> anyhow::Result<Exit> {
    clap_mangen::Man::new(Arguments::command()).render(&mut std::io::stdout().lock())?;
    Ok(Exit::Clean)
}
