//! Where output goes: standard output or a file, with or without colour; complaints to standard error.

use super::arguments::ColorWhen;
use anstream::{AutoStream, ColorChoice};
use anyhow::Context;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Columns where no terminal says: fits a mail, a ticket and most windows.
const WIDTH_WITHOUT_TERMINAL: usize = 100;
/// No narrower than this: the ledger would not be readable.
const LEAST_WIDTH: usize = 60;

/// An opened target.
pub enum Target {
    /// Standard output.
    Stdout(ColorChoice),
    /// A file, and its path for complaints.
    File(File, String),
}

impl Target {
    /// Opens the target before the work is done: a path that can't be written should not cost a run.
    pub fn open(path: Option<&Path>, color: ColorWhen) -> anyhow::Result<Target> {
        match path {
            None => Ok(Target::Stdout(choice(color))),
            Some(path) => {
                let file =
                    File::create(path).with_context(|| format!("can't write to {}", path.display()))?;
                Ok(Target::File(file, path.display().to_string()))
            }
        }
    }

    /// Columns to lay the report out for.
    pub fn width(&self) -> usize {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let terminal = match self {
            Target::Stdout(_) if std::io::stdout().is_terminal() => {
                terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
            }
            _ => None,
        };
        terminal.or(columns).unwrap_or(WIDTH_WITHOUT_TERMINAL).max(LEAST_WIDTH)
    }

    /// Writes a report. Escape codes are taken out where colour is not wanted.
    pub fn write(self, text: &str) -> anyhow::Result<()> {
        match self {
            Target::Stdout(color) => {
                let mut stream = AutoStream::new(std::io::stdout().lock(), color);
                stream.write_all(text.as_bytes())?;
                stream.flush()?;
            }
            Target::File(file, path) => {
                let mut stream = AutoStream::new(file, ColorChoice::Never);
                stream
                    .write_all(text.as_bytes())
                    .and_then(|()| stream.flush())
                    .with_context(|| format!("can't write to {path}"))?;
            }
        }
        Ok(())
    }
}

fn choice(color: ColorWhen) -> ColorChoice {
    match color {
        // Looks at NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM and whether standard output is a terminal.
        ColorWhen::Auto => AutoStream::choice(&std::io::stdout()),
        ColorWhen::Always => ColorChoice::Always,
        ColorWhen::Never => ColorChoice::Never,
    }
}

/// One complaint on standard error, in the form of compilers and shells.
pub fn complain(message: &str) {
    let mut stream = anstream::stderr().lock();
    let style = anstyle::Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()));
    // Nothing is left to tell the user through if standard error is gone.
    let _ = writeln!(stream, "{style}vramledger:{style:#} {}", crate::text::clean(message, false));
}

/// Whether the reader of standard output went away: no error of ours.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(ErrorKind::BrokenPipe)
    })
}
