//! The arguments, as clap reads them. Help, man page and completions are made of this file.

use super::plan_arguments::PlanArguments;
use crate::finding::Severity;
use crate::quantity::MIB;
use crate::thresholds::{Thresholds, parse_size};
use clap::{Args, Parser, Subcommand, ValueEnum};
use regex::Regex;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  vramledger server.log                        the ledger of every launch in a log
  vramledger server.log --smi nvidia-smi.txt   reconciled with what nvidia-smi said
  kubectl logs pod | vramledger                from a pipe; a dump pasted into it is found by itself
  vramledger server.log --format json          for the next program (see `vramledger schema`)
  vramledger plan server.log --mem-fraction-static 0.9
                                               what another flag would give (see `vramledger plan --help`)
  vramledger explain headroom-low              what a finding means and what to do

Exit status: 0 clean · 1 findings at or above --fail-on · 2 wrong usage or unreadable input";

/// Tells where the GPU memory of an SGLang server went.
///
/// Reads start-up logs (any release from 0.1.20 on, in any wrapping) and nvidia-smi dumps, rebuilds the memory ledger of
/// every rank stage by stage, proves that it balances, reconciles it with the driver's figures and says what does not fit.
#[derive(Debug, Parser)]
#[command(version, about, long_about, after_help = EXAMPLES, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub struct Arguments {
    /// What to do; without a command, `report`.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Arguments of `report`, which needs not be named.
    #[command(flatten)]
    pub report: ReportArguments,
    /// Whether to use colour.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto, global = true)]
    pub color: ColorWhen,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The ledger of each launch, reconciled and judged (the default)
    Report(ReportArguments),
    /// The same launch with other flags: what they give, or which flags a goal needs
    Plan(Box<PlanArguments>),
    /// What a finding or a figure means; all of them without a name
    Explain {
        /// A finding's code or name (VL013, headroom-low), or a figure (avail-mem, memory_reserved)
        code: Option<String>,
    },
    /// What PyTorch's allocator holds, by pool, from a memory snapshot; the pickle is read as data, never executed
    Snapshot(SnapshotArguments),
    /// The JSON Schema of `--format json`
    Schema {
        /// Whose: `report`'s or `snapshot`'s
        #[arg(value_enum, value_name = "COMMAND", default_value_t = SchemaOf::Report)]
        of: SchemaOf,
    },
    /// A completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The man page, in roff
    Man,
}

/// Arguments of `report`.
#[derive(Debug, Default, Args)]
pub struct ReportArguments {
    /// Logs and dumps, in any order and mixture; `-` is standard input. What a file is shows in its content
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// nvidia-smi output in any of its forms (table, -q, -x, CSV, pmon), or a relative's
    #[arg(long, value_name = "FILE")]
    pub smi: Vec<PathBuf>,
    /// A PyTorch memory snapshot (_dump_snapshot's pickle, or JSON) of a rank's process: splits memory by holder
    #[arg(long, value_name = "FILE")]
    pub snapshot: Vec<PathBuf>,
    /// Which device a rank ran on, as nvidia-smi numbers it, where the dump leaves it open
    #[arg(long, value_name = "RANK=DEVICE", value_parser = parse_map)]
    pub map: Vec<(String, u32)>,
    /// The model and the card.
    #[command(flatten)]
    pub model: ModelArguments,
    /// How to print the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,
    /// Write the report to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// One table a rank, even where ranks agree
    #[arg(long)]
    pub per_rank: bool,
    /// The least severity that makes the exit status 1
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Error)]
    pub fail_on: FailOn,
    /// Set a limit that is a judgement, such as gap=512MiB (see `vramledger explain thresholds`)
    #[arg(long, value_name = "NAME=SIZE", value_parser = parse_threshold)]
    pub threshold: Vec<String>,
    /// Replace secrets, names and addresses by pseudonyms; without it, done in every output but a table on standard output
    #[arg(long, overrides_with = "no_redact")]
    pub redact: bool,
    /// Show everything as it was read
    #[arg(long, overrides_with = "redact")]
    pub no_redact: bool,
    /// Redact what matches too (its first group, where it has one); turns redaction on
    #[arg(long, value_name = "REGEX", value_parser = Regex::new, conflicts_with = "no_redact")]
    pub redact_pattern: Vec<Regex>,
    /// Only the verdict lines
    #[arg(short, long)]
    pub quiet: bool,
}

/// What log and dumps may not tell of the model and the card.
#[derive(Debug, Default, Args)]
pub struct ModelArguments {
    /// The card's memory as nvidia-smi prints it, where no dump tells: SGLang's defaults depend on it
    #[arg(long, value_name = "SIZE", value_parser = parse_card)]
    pub gpu_mem: Option<u32>,
    /// The model's Hugging Face config.json: what weights and KV should take
    #[arg(long, value_name = "FILE")]
    pub model_config: Option<PathBuf>,
    /// The model's model.safetensors.index.json: what its weights weigh exactly
    #[arg(long, value_name = "FILE")]
    pub weights_index: Option<PathBuf>,
}

impl ReportArguments {
    /// Whether the report is to be redacted: by default, where it may travel.
    pub fn redacts(&self) -> bool {
        let travels = self.output.is_some() || self.format != Format::Table;
        self.redact || !self.redact_pattern.is_empty() || travels && !self.no_redact
    }
}

/// Arguments of `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArguments {
    /// Pickles of torch.cuda.memory._dump_snapshot or _snapshot, gzip-compressed or not, or JSON; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,
    /// How many allocation sites to show, largest first
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub sites: usize,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Which JSON format a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SchemaOf {
    /// `vramledger report --format json`.
    #[default]
    Report,
    /// `vramledger snapshot --format json`.
    Snapshot,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For a terminal.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// From which severity on a run fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum FailOn {
    /// Findings never fail a run.
    Never,
    /// Info and worse.
    Info,
    /// Warnings and worse.
    Warning,
    /// Errors only.
    #[default]
    Error,
}

impl FailOn {
    /// Whether a worst finding of this severity fails the run.
    pub fn fails(self, worst: Option<Severity>) -> bool {
        let least = match self {
            FailOn::Never => return false,
            FailOn::Info => Severity::Info,
            FailOn::Warning => Severity::Warning,
            FailOn::Error => Severity::Error,
        };
        worst.is_some_and(|worst| worst >= least)
    }
}

fn parse_map(text: &str) -> Result<(String, u32), String> {
    let (rank, device) = text.rsplit_once('=').ok_or("give RANK=DEVICE, such as TP0=3")?;
    let device = device.trim().parse().map_err(|_| format!("`{device}` is no device number"))?;
    Ok((rank.split_whitespace().collect::<Vec<_>>().join(" "), device))
}

fn parse_card(text: &str) -> Result<u32, String> {
    let mib =
        parse_size(text).and_then(|bytes| u32::try_from((bytes + MIB / 2) / MIB).ok()).filter(|mib| *mib > 0);
    mib.ok_or_else(|| "give a size, such as 143771MiB or 80GiB".to_string())
}

/// Checks a threshold at once, so that a mistyped name is a usage error and not a surprise at the end.
fn parse_threshold(text: &str) -> Result<String, String> {
    Thresholds::default().set(text).map_err(|error| error.to_string())?;
    Ok(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn report_needs_not_be_named() {
        let arguments =
            Arguments::try_parse_from(["vramledger", "a.log", "--smi", "b.txt", "--map", "DP0 TP1=3"])
                .unwrap();
        assert!(arguments.command.is_none());
        assert_eq!(arguments.report.map, [("DP0 TP1".to_string(), 3)]);
        let named = Arguments::try_parse_from(["vramledger", "report", "a.log"]).unwrap();
        assert!(matches!(named.command, Some(Command::Report(report)) if report.files.len() == 1));
    }

    #[test]
    fn fail_on_compares_severities() {
        assert!(FailOn::Error.fails(Some(Severity::Error)));
        assert!(!FailOn::Error.fails(Some(Severity::Warning)));
        assert!(FailOn::Info.fails(Some(Severity::Warning)));
        assert!(!FailOn::Never.fails(Some(Severity::Error)));
        assert!(!FailOn::Info.fails(None));
    }
}
