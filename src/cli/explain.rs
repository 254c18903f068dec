//! `vramledger explain`: what a finding or a figure means.

use super::Exit;
use super::arguments::ColorWhen;
use super::output::Target;
use crate::glossary::{self, FIGURES, Figure};
use crate::quantity::{Quantity, mib_whole};
use crate::rules::{self, RULES, Rule};
use crate::text::wrap;
use crate::thresholds::LIMITS;
use std::fmt::Write;

/// Prints one page, the list of all findings, or the limits.
pub fn run(code: Option<&str>, color: ColorWhen) -> anyhow::Result<Exit> {
    let target = Target::open(None, color)?;
    let width = target.width().min(100);
    let text = match code {
        None => list(width),
        Some("thresholds") => thresholds(width),
        Some(code) => match (rules::find(code), glossary::find(code)) {
            (Some(rule), _) => page(rule, width),
            (None, Some(figure)) => figure_page(figure, width),
            (None, None) => {
                anyhow::bail!(
                    "there is no finding and no figure `{code}`{}; `vramledger explain` lists all",
                    nearest(code)
                )
            }
        },
    };
    target.write(&text)?;
    Ok(Exit::Clean)
}

fn page(rule: &Rule, width: usize) -> String {
    let mut text =
        format!("{} {} · usually {}\n{}\n", rule.code, rule.name, rule.severity.name(), rule.summary);
    for paragraph in rule.explanation.split('\n') {
        let body = paragraph.trim_start();
        let _ = write!(
            text,
            "\n{}{}",
            " ".repeat(paragraph.len() - body.len()),
            wrapped(body, width, paragraph.len() - body.len())
        );
    }
    text.push('\n');
    text
}

/// What a figure sees, and what it doesn't.
fn figure_page(figure: &Figure, width: usize) -> String {
    let mut text = format!("{} · {}\n\n", figure.names.join(", "), figure.printed_by);
    let rows = [
        ("sees", figure.sees),
        ("does not see", figure.misses),
        ("whose memory", figure.scope),
        ("allocator cache", figure.cache),
        ("unit", figure.unit),
        ("mind", figure.mind),
    ];
    for (label, words) in rows {
        let head = format!("{label:<17}");
        let _ = writeln!(text, "{head}{}", wrapped(words, width, head.len()));
    }
    text
}

fn list(width: usize) -> String {
    let longest = RULES.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let mut text = String::from("Findings; `vramledger explain NAME` tells more about one.\n\n");
    for rule in RULES {
        let head = format!("{}  {:<longest$}  {:<7}  ", rule.code, rule.name, rule.severity.name());
        let _ = writeln!(text, "{head}{}", wrapped(rule.summary, width, head.len()));
    }
    text.push_str("\nFigures of memory; `vramledger explain NAME` tells what one sees.\n\n");
    for figure in &FIGURES {
        let head = format!("{:<28}  ", figure.name());
        let _ = writeln!(text, "{head}{}", wrapped(figure.sees, width, head.len()));
    }
    text.push_str("\nLimits that are judgements: `vramledger explain thresholds`.\n");
    text
}

fn thresholds(width: usize) -> String {
    let mut text = String::from("Limits that are judgements. Set one with --threshold NAME=SIZE.\n\n");
    for limit in &LIMITS {
        let head = format!("{:<18} {:>6} MiB  ", limit.name, mib_whole(Quantity::exact(limit.default)));
        let _ = writeln!(text, "{head}{}", wrapped(limit.reason, width, head.len()));
    }
    text
}

/// A text that begins at column `behind`, its further lines indented to it.
fn wrapped(text: &str, width: usize, behind: usize) -> String {
    wrap(text, width.saturating_sub(behind)).join(&format!("\n{}", " ".repeat(behind)))
}

/// The name that a mistyped one is nearest to, as a hint.
fn nearest(wrong: &str) -> String {
    let distance = |name: &str| {
        let shared = name.split('-').filter(|word| wrong.to_ascii_lowercase().contains(word)).count();
        std::cmp::Reverse(shared)
    };
    let best = RULES.iter().min_by_key(|rule| distance(rule.name)).filter(|rule| distance(rule.name).0 > 0);
    best.map(|rule| format!(" (did you mean {}?)", rule.name)).unwrap_or_default()
}
