//! `device-saturated`: the driver reports no free memory at all.

use super::support::{posting_words, rank_words};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::quantity::{MIB, Quantity};

/// A print of `0.00 GB` stands for at most this.
const NOTHING: i128 = 6 * MIB;

pub(super) static RULE: Rule = Rule {
    code: "VL012",
    name: "device-saturated",
    severity: Severity::Warning,
    summary: "a free figure of 0.00 GB: the device is full, or the driver spills to host memory",
    explanation: "The log prints `avail mem=0.00 GB` (or `available_gpu_mem=0.00 GB`): the driver had less than 6 MiB left.\n\n\
On WSL and Windows the driver moves GPU memory to host memory instead of refusing, so start-up may go on, and everything becomes slow: \
tokens per second fall by an order of magnitude without an error. On Linux the next allocation fails.\n\n\
A full device is not by itself an out-of-memory error: the differences of the ledger are still true, but stages that spilled look smaller \
than they are.\n\n\
Remedy: lower --mem-fraction-static so that some GiB stay free after start-up (SGLang's guide: 5 to 8 GB), or free the card of other \
processes first.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let full =
        |level: Option<Quantity>| level.is_some_and(|level| level.contains(0) && level.high() <= NOTHING);
    let mut findings = Vec::new();
    for (_, rank, ledger) in context.books() {
        let posting = ledger.postings.iter().find(|posting| full(posting.after) || full(posting.before));
        let place = posting
            .and_then(|posting| posting.places.last().cloned())
            .or_else(|| ledger.headroom_place.clone());
        if posting.is_none() && !full(ledger.headroom) {
            continue;
        }
        let when = posting.map_or_else(
            || "at the ready line".to_string(),
            |posting| format!("at {}", posting_words(posting)),
        );
        findings.push(
            Finding::new(&RULE, format!("no free memory left on the device {when}"))
                .rank(&rank.tag.text)
                .explain(format!(
                    "The driver reported 0.00 GB free to {}. On WSL and Windows it spills to host memory and goes on slowly; on Linux the next allocation fails.",
                    rank_words(&rank.tag.text)
                ))
                .advise("lower --mem-fraction-static until some GiB stay free after start-up")
                .amount(Quantity::between(0, NOTHING))
                .at(place),
        );
    }
    findings
}
