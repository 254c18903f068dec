//! `claim-mismatch`: the log's own usage figure contradicts its own levels.

use super::support::{difference_sum, posting_words, rank_words};
use super::{Context, Rule};
use crate::finding::{Finding, Severity};
use crate::quantity::mib_text;

pub(super) static RULE: Rule = Rule {
    code: "VL006",
    name: "claim-mismatch",
    severity: Severity::Error,
    summary: "a stage's printed usage cannot be the difference of the free figures around it",
    explanation: "SGLang prints a stage's `mem usage` from unrounded readings, and `avail mem` before and after it. Both are rounded to \
0.01 GiB, so usage and difference may disagree by up to 0.015 GiB (some 15 MiB) and still be true.\n\n\
This finding means that they disagree by more: no true values could lie behind the three prints, and the ledger does not balance.\n\n\
Causes, likeliest first: lines of two servers or two ranks taken for one (check the rank tags and whether two logs were mixed); a log \
edited by hand or wrapped inside a number; a branch of SGLang that measures the two differently.\n\n\
Remedy: look at the quoted lines. If the file mixes servers, split it by pod or process and run vramledger on each.",
    check,
};

fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, rank, ledger) in context.books() {
        let contradicts = |index: usize| {
            let posting = ledger.postings.get(index)?;
            let apart = posting
                .difference()
                .zip(posting.claimed)
                .is_some_and(|(difference, claimed)| !difference.meets(claimed));
            (apart || ledger.balance.broken_at == Some(index)).then_some(posting)
        };
        for posting in (0..ledger.postings.len()).filter_map(contradicts) {
            let Some((difference, claimed)) = posting.difference().zip(posting.claimed) else { continue };
            findings.push(
                Finding::new(
                    &RULE,
                    format!("{} claims {} MiB, but free memory fell by {}", posting_words(posting), mib_text(claimed), mib_text(difference)),
                )
                .rank(&rank.tag.text)
                .stage(posting.stage)
                .explain(format!("No values that print like this can all be true for {}: the ledger does not balance here.", rank_words(&rank.tag.text)))
                .sum(difference_sum(posting).unwrap_or_default())
                .sum(format!("printed usage {} MiB, {} apart", mib_text(claimed), mib_text((difference - claimed).magnitude())))
                .advise("check that the quoted lines belong to one rank of one server, and that none was cut or edited")
                .amount(difference - claimed)
                .at(posting.places.clone()),
            );
        }
    }
    findings
}
