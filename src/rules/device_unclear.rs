//! `device-unclear`: several devices fit a rank equally well.

use super::support::rank_words;
use super::{Context, Rule};
use crate::finding::{Finding, Severity};

pub(super) static RULE: Rule = Rule {
    code: "VL016",
    name: "device-unclear",
    severity: Severity::Info,
    summary: "the dump has several devices that match a rank, and nothing tells which is its own",
    explanation: "A log does not say which card of nvidia-smi's list a rank ran on: CUDA_VISIBLE_DEVICES renumbers them. vramledger compares the \
free memory that the log prints with each device of the dump and takes the one that fits, with the launcher's arguments (base_gpu_id, \
gpu_id_step) to break ties.\n\n\
Here several devices fit within 1 GiB and the log holds no arguments to choose by, so nothing was reconciled for this rank rather than \
guessed.\n\n\
Remedy: say it with --map, for example `--map TP0=3` (rank tag as printed, device as nvidia-smi numbers it), or give the log from its \
server_args line on.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((_, rank, ledger), choice) in context.books().zip(context.devices) {
        let Some(tie) = &choice.tie else { continue };
        let devices = tie.devices.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let tag = if rank.tag.text.is_empty() { "=" } else { &rank.tag.text };
        findings.push(
            Finding::new(&RULE, format!("devices {devices} fit {} equally well: not reconciled", rank_words(&rank.tag.text)))
                .rank(&rank.tag.text)
                .explain("Their used memory is within 1 GiB of what the log leads to expect, and no argument tells which one it is.")
                .advise(format!("name the device: --map {}{}", tag.trim_end_matches('='), format_args!("={}", tie.devices.first().copied().unwrap_or(0))))
                .at(ledger.closing_place.clone()),
        );
    }
    findings
}
