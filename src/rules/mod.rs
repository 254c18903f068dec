//! The rules: opinions on the facts, one file each.
//!
//! A rule looks at one launch and gives findings. It never changes facts, and no other module judges. The registry is what
//! `vramledger explain` and the README's table are made of.

mod budget_dead_zone;
mod budget_exceeded;
mod budget_exhausted;
mod budget_underused;
mod cell_mismatch;
mod claim_mismatch;
mod death;
mod device_saturated;
mod device_unclear;
mod foreign_process;
mod fragmentation;
mod headroom;
mod held_before_start;
mod kv_capped;
mod launch_failed;
mod memory_returned;
mod not_device_memory;
mod out_of_memory_capture;
mod out_of_memory_host;
mod out_of_memory_kv_pool;
mod out_of_memory_outside_torch;
mod out_of_memory_runtime;
mod out_of_memory_unplaced;
mod out_of_memory_weights;
mod pool_too_small;
mod rank_limits_kv;
mod ranks_unbalanced;
mod reconciliation_failed;
mod stage_missing;
mod stage_oversized;
mod stage_unfinished;
mod start_refused;
mod support;
mod unlogged_gap;
mod unrecognised_lines;
mod weights_expected;

use crate::analysis::Unrecognised;
use crate::budget::audit::{Audit, World};
use crate::budget::plan::{Facts, PlanError};
use crate::finding::{Finding, Severity};
use crate::launch::{Launch, Rank};
use crate::ledger::Ledger;
use crate::observe::Observation;
use crate::quantity::Quantity;
use crate::reconcile::{DeviceChoice, Reconciliation};
use crate::thresholds::Thresholds;
use crate::triage::Diagnosis;

/// What a rule may look at: one launch and everything known about it.
pub struct Context<'a> {
    /// The launch.
    pub launch: &'a Launch,
    /// One ledger a rank.
    pub ledgers: &'a [Ledger],
    /// The budget, where there are figures for one.
    pub audit: Option<&'a Audit>,
    /// What a what-if starts from, one entry a world of the audit.
    pub facts: &'a [Result<Facts, PlanError>],
    /// One device choice a rank.
    pub devices: &'a [DeviceChoice],
    /// All observations.
    pub observations: &'a [Observation],
    /// This launch's reconciliations.
    pub reconciliations: Vec<&'a Reconciliation>,
    /// All unrecognised lines.
    pub unrecognised: &'a [Unrecognised],
    /// What is known of the launch's death, where it died.
    pub diagnosis: Option<&'a Diagnosis<'a>>,
    /// The limits that are judgements.
    pub thresholds: &'a Thresholds,
}

impl<'a> Context<'a> {
    /// Ranks with their ledgers.
    pub fn books(&self) -> impl Iterator<Item = (usize, &'a Rank, &'a Ledger)> + use<'a> {
        let (ranks, ledgers) = (&self.launch.ranks, self.ledgers);
        ranks.iter().zip(ledgers).enumerate().map(|(index, (rank, ledger))| (index, rank, ledger))
    }

    /// The reconciliation of one rank.
    pub fn reconciliation(&self, rank: usize) -> Option<&'a Reconciliation> {
        self.reconciliations.iter().find(|one| one.rank == rank).copied()
    }

    /// The worlds of the audit.
    pub fn worlds(&self) -> &'a [World] {
        self.audit.map_or(&[], |audit| audit.worlds.as_slice())
    }

    /// The facts of the world that a rank belongs to.
    pub fn facts_of(&self, rank: usize) -> Option<&'a Facts> {
        let world = self.worlds().iter().position(|world| world.ranks.contains(&rank))?;
        self.facts.get(world)?.as_ref().ok()
    }

    /// The tag of a rank.
    pub fn tag(&self, rank: usize) -> &'a str {
        self.launch.ranks.get(rank).map_or("", |rank| rank.tag.text.as_str())
    }

    /// The size of the card that a rank runs on, from its sample.
    pub fn card(&self, rank: usize) -> Option<Quantity> {
        let observation = self.devices.get(rank)?.observation?;
        self.observations.get(observation)?.total
    }
}

/// One rule of the registry.
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// Stable name, as other programs know it.
    pub name: &'static str,
    /// The usual severity.
    pub severity: Severity,
    /// One line: when it is found.
    pub summary: &'static str,
    /// The page that `vramledger explain` prints: meaning, arithmetic, causes, remedies.
    pub explanation: &'static str,
    /// The check.
    pub check: fn(&Context<'_>) -> Vec<Finding>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.code, self.name)
    }
}

/// All rules, by code. Codes count up within blocks, so that a block can grow: from VL001 the ledger and its
/// reconciliation, from VL020 the budget, from VL030 what ended a launch.
pub static RULES: [&Rule; 35] = [
    &launch_failed::RULE,
    &stage_missing::RULE,
    &stage_unfinished::RULE,
    &stage_oversized::RULE,
    &ranks_unbalanced::RULE,
    &claim_mismatch::RULE,
    &unlogged_gap::RULE,
    &memory_returned::RULE,
    &held_before_start::RULE,
    &foreign_process::RULE,
    &reconciliation_failed::RULE,
    &device_saturated::RULE,
    &headroom::LOW,
    &headroom::GENEROUS,
    &unrecognised_lines::RULE,
    &device_unclear::RULE,
    &unrecognised_lines::CUT_SHORT,
    &budget_exhausted::RULE,
    &budget_dead_zone::RULE,
    &budget_underused::RULE,
    &budget_exceeded::RULE,
    &kv_capped::RULE,
    &rank_limits_kv::RULE,
    &pool_too_small::RULE,
    &cell_mismatch::RULE,
    &out_of_memory_weights::RULE,
    &out_of_memory_kv_pool::RULE,
    &out_of_memory_capture::RULE,
    &out_of_memory_runtime::RULE,
    &out_of_memory_outside_torch::RULE,
    &out_of_memory_host::RULE,
    &fragmentation::RULE,
    &not_device_memory::RULE,
    &start_refused::RULE,
    &out_of_memory_unplaced::RULE,
];

/// The rule of this code or name, letter case aside.
pub fn find(code_or_name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| {
        rule.code.eq_ignore_ascii_case(code_or_name) || rule.name.eq_ignore_ascii_case(code_or_name)
    })
}

/// Runs every rule on one launch: worst findings first, then by code and place.
pub fn check(context: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| (rule.check)(context)).collect();
    findings.sort_by(|one, other| {
        other
            .severity
            .cmp(&one.severity)
            .then_with(|| one.rule.code.cmp(other.rule.code))
            .then_with(|| one.places.cmp(&other.places))
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_unique_and_documented() {
        const BLOCKS: [u32; 3] = [1, 20, 30];
        let mut last = 0;
        for rule in RULES {
            let number: u32 = rule.code.strip_prefix("VL").unwrap().parse().unwrap();
            assert!(
                number == last + 1 || number > last && BLOCKS.contains(&number),
                "{} after {last}",
                rule.code
            );
            last = number;
            assert!(RULES.iter().filter(|other| other.name == rule.name).count() == 1, "{}", rule.name);
            assert!(rule.explanation.len() > 200, "{} wants a page that helps", rule.name);
        }
    }

    #[test]
    fn a_rule_is_found_by_code_and_by_name() {
        assert_eq!(find("vl014").map(|rule| rule.name), Some("headroom-generous"));
        assert_eq!(find("stage-missing").map(|rule| rule.code), Some("VL002"));
        assert!(find("VL999").is_none());
    }
}
