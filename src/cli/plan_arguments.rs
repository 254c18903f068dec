//! The arguments of `vramledger plan`: SGLang's own flags by their own names, and goals.

use super::arguments::{AnswerFormat, ModelArguments};
use crate::budget::plan::FractionChoice;
use crate::quantity::Decimal;
use crate::thresholds::parse_size;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  vramledger plan server.log --mem-fraction-static 0.9       what another fraction gives
  vramledger plan server.log --kv-cache-dtype fp8_e5m2       what a smaller KV type gives
  vramledger plan server.log --concurrency 128 --context 8192
                                                             the fraction that so many requests need
  vramledger plan server.log --fit --headroom 6GiB           as many tokens as leave 6 GiB free

Everything is projected from what this launch measured. Graphs of other sizes and other numbers of ranks are
estimates, and said to be.";

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArguments {
    /// The log of the launch to start from, and dumps; `-` is standard input
    #[arg(value_name = "LOG")]
    pub files: Vec<PathBuf>,
    /// nvidia-smi output in any of its forms: tells the card's size, which defaults depend on
    #[arg(long, value_name = "FILE")]
    pub smi: Vec<PathBuf>,
    /// Which launch of the log, counted from 1; without it the last that has figures
    #[arg(long, value_name = "N")]
    pub launch: Option<usize>,
    /// The share of the memory free before the weights that weights and KV may take; `default` leaves it to SGLang
    #[arg(long, value_name = "F|default", value_parser = parse_fraction, help_heading = "Flags of SGLang")]
    pub mem_fraction_static: Option<FractionChoice>,
    /// Cap on the tokens of the KV pool; `none` drops it
    #[arg(long, value_name = "N|none", value_parser = parse_cap, help_heading = "Flags of SGLang")]
    pub max_total_tokens: Option<Cap>,
    /// Largest decode batch to capture graphs for
    #[arg(long, value_name = "N", alias = "cuda-graph-max-bs-decode", help_heading = "Flags of SGLang", value_parser = clap::value_parser!(u32).range(1..))]
    pub cuda_graph_max_bs: Option<u32>,
    /// Capture no graphs
    #[arg(long, conflicts_with = "cuda_graph_max_bs", help_heading = "Flags of SGLang")]
    pub disable_cuda_graph: bool,
    /// Tokens of one prefill step
    #[arg(long, value_name = "N", help_heading = "Flags of SGLang", allow_negative_numbers = true)]
    pub chunked_prefill_size: Option<i64>,
    /// How KV is stored
    #[arg(long, value_name = "TYPE", help_heading = "Flags of SGLang")]
    pub kv_cache_dtype: Option<String>,
    /// Tokens of a page
    #[arg(long, value_name = "N", help_heading = "Flags of SGLang", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub page_size: Option<u32>,
    /// Tensor-parallel ranks
    #[arg(long, value_name = "N", alias = "tp-size", help_heading = "Flags of SGLang", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub tp: Option<u32>,
    /// What to reach.
    #[command(flatten)]
    pub goal: GoalArguments,
    /// Tokens of a request for --concurrency, prompt and output; without it the model's context length
    #[arg(long, value_name = "L", requires = "concurrency", help_heading = "Goals", value_parser = clap::value_parser!(u32).range(1..))]
    pub context: Option<u32>,
    /// The model and the card.
    #[command(flatten)]
    pub model: ModelArguments,
    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = AnswerFormat::Table)]
    pub format: AnswerFormat,
    /// Write the answer to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A goal instead of a fraction.
#[derive(Debug, Args)]
pub struct GoalArguments {
    /// At least this many tokens
    #[arg(long, value_name = "N", help_heading = "Goals", conflicts_with_all = ["concurrency", "headroom", "fit", "mem_fraction_static"], value_parser = clap::value_parser!(u64).range(1..1 << 50))]
    pub tokens: Option<u64>,
    /// At least this many requests of --context tokens at once
    #[arg(long, value_name = "N", help_heading = "Goals", conflicts_with_all = ["headroom", "fit", "mem_fraction_static"], value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: Option<u32>,
    /// As many tokens as leave this much free after start-up
    #[arg(long, value_name = "SIZE", help_heading = "Goals", conflicts_with = "mem_fraction_static", value_parser = parse_headroom)]
    pub headroom: Option<i128>,
    /// As many tokens as leave what SGLang's guide wants free (or --headroom)
    #[arg(long, help_heading = "Goals", conflicts_with = "mem_fraction_static")]
    pub fit: bool,
}

/// `--max-total-tokens`: a cap, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap(pub Option<i128>);

fn parse_fraction(text: &str) -> Result<FractionChoice, String> {
    if text.eq_ignore_ascii_case("default") {
        return Ok(FractionChoice::Default);
    }
    let fraction = Decimal::parse(text).filter(|fraction| {
        let value = fraction.to_f64();
        value > 0.0 && value < 1.0
    });
    fraction
        .map(FractionChoice::Set)
        .ok_or_else(|| "give a fraction between 0 and 1, such as 0.85, or `default`".to_string())
}

fn parse_cap(text: &str) -> Result<Cap, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Cap(None));
    }
    let tokens = text.parse::<u64>().ok().filter(|tokens| *tokens > 0 && *tokens < 1 << 50);
    tokens
        .map(|tokens| Cap(Some(tokens.into())))
        .ok_or_else(|| "give a number of tokens, or `none`".to_string())
}

fn parse_headroom(text: &str) -> Result<i128, String> {
    parse_size(text).filter(|bytes| *bytes > 0).ok_or_else(|| "give a size, such as 6GiB".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_and_caps_are_read_or_refused() {
        assert_eq!(parse_fraction("0.85"), Ok(FractionChoice::Set(Decimal::new(85, 2))));
        assert_eq!(parse_fraction("default"), Ok(FractionChoice::Default));
        for text in ["0", "1", "1.5", "85%", ""] {
            assert!(parse_fraction(text).is_err(), "{text}");
        }
        assert_eq!(parse_cap("none"), Ok(Cap(None)));
        assert_eq!(parse_cap("300000"), Ok(Cap(Some(300_000))));
        assert!(parse_cap("0").is_err() && parse_cap("-1").is_err());
        assert!(parse_headroom("6").is_err() && parse_headroom("6GiB").is_ok());
    }
}
