//! `unrecognised-lines` and `input-cut-short`: what the report could not take in.

use super::{Context, Rule};
use crate::finding::{Finding, Severity};

/// How many lines a finding quotes; all are in the JSON report.
const QUOTED: usize = 5;

pub(super) static RULE: Rule = Rule {
    code: "VL015",
    name: "unrecognised-lines",
    severity: Severity::Info,
    summary: "lines that look like memory figures and that no rule of the grammar knows",
    explanation: "Nothing is dropped silently: a line that carries a memory figure is a posting, evidence for one, or listed here with its place.\n\n\
Lines of forks and of releases newer than the catalogue are read as far as their fields go: a label with `avail mem=` or `mem usage=` becomes a \
posting of stage `other` under its own words. What stands here has figures in a form that fits nothing.\n\n\
It matters where the ledger has a gap at the same point: then this line probably explains it.\n\n\
Remedy: look at the lines; if SGLang printed them, a report with the line and the SGLang version makes the next version of vramledger read it.",
    check,
};

pub(super) static CUT_SHORT: Rule = Rule {
    code: "VL017",
    name: "input-cut-short",
    severity: Severity::Warning,
    summary: "a log held more start-up lines than are kept, or a rank's lines were left out",
    explanation: "Memory use is bounded whatever the file: of one source at most 20,000 start-up, failure and note lines are kept, which is hundreds of starts of a \
large server. This source held more, and what came after the limit is not in the report.\n\n\
Usual cause: a crash loop that ran for days into one file, or lines that were repeated by a broken collector.\n\n\
Remedy: cut the file to the part that matters (for example `tail -n 100000 server.log | vramledger`), or split it at the `server_args=` lines.",
    check: check_cut_short,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let launch = context.launch;
    let mine: Vec<_> = context
        .unrecognised
        .iter()
        .filter(|line| {
            line.place.source == launch.source
                && (launch.first_line..=launch.last_line).contains(&line.place.line)
        })
        .collect();
    if mine.is_empty() {
        return Vec::new();
    }
    let mut finding = Finding::new(
        &RULE,
        format!(
            "{} line{} with memory in {} not understood",
            mine.len(),
            if mine.len() == 1 { "" } else { "s" },
            if mine.len() == 1 { "it was" } else { "them were" }
        ),
    )
    .explain("They are in no posting. If the ledger has a gap there, they probably explain it.")
    .at(mine.iter().take(QUOTED).map(|line| line.place.clone()));
    for line in mine.iter().take(QUOTED) {
        finding = finding.sum(format!("line {}: {}", line.place.line, line.text));
    }
    vec![finding]
}

fn check_cut_short(context: &Context<'_>) -> Vec<Finding> {
    let left_out = context.launch.left_out;
    if left_out == 0 {
        return Vec::new();
    }
    vec![
        Finding::new(&CUT_SHORT, format!("{left_out} lines were left out of this report"))
            .explain("More start-up lines than are kept of one source.")
            .advise("cut the file to the part that matters, or split it at its server_args lines"),
    ]
}
