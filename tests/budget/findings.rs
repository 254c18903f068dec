//! Findings about the budget: where they belong, where not, and that advice removes what it is given for.

use super::support::{advised_fraction, altered, analysed, facts, finding, names, recorded};
use vramledger::analysis::Settings;
use vramledger::budget::plan::{Change, project};
use vramledger::finding::Severity;
use vramledger::launch::Outcome;
use vramledger::quantity::{Decimal, GIB, MIB};

fn at(fraction: f64) -> Change {
    Change::fraction(Decimal::parse(&fraction.to_string()).unwrap())
}

#[test]
fn recordings_get_the_findings_that_belong() {
    let expected: [(&str, &[&str]); 8] = [
        ("fraction-too-low-0.5.12", &["budget-exhausted"]),
        ("fraction-too-low-0.5.15", &["budget-exhausted"]),
        ("capture-oom-0.5.12", &[]),
        ("piecewise-oom-0.5.12", &[]),
        ("eagle-0.5.12", &["budget-exceeded"]),
        ("pair-cap300k-0.5.12", &["kv-capped"]),
        ("tp2-unbalanced-warns-0.5.12", &["rank-limits-kv"]),
        ("tp1-normal-0.5.12", &[]),
    ];
    for (name, wanted) in expected {
        let launch = &recorded(name).launches[0];
        let about_budget = |code: &str| ("VL020".."VL030").contains(&code);
        let found: Vec<&str> = launch
            .findings
            .iter()
            .filter(|finding| about_budget(finding.rule.code))
            .map(|finding| finding.rule.name)
            .collect();
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn advice_about_headroom_removes_the_finding() {
    let mut checked = 0;
    for name in names() {
        for launch in recorded(&name).launches {
            let Some(generous) = finding(&launch, "headroom-generous") else { continue };
            if finding(&launch, "kv-capped").is_some() {
                assert_eq!(advised_fraction(generous), None, "{name}: the cap holds it back");
                continue;
            }
            let fraction = advised_fraction(generous).expect(&name);
            let facts = facts(&launch);
            assert!(fraction > facts.fraction.value.to_f64(), "{name}");
            let left = project(facts, &at(fraction)).unwrap().remaining.unwrap();
            let card = facts.settings.capacity_mib.map(|mib| i128::from(mib) * MIB);
            let guide = card.map_or(8 * GIB, |card| 8 * GIB * card / (80 * GIB));
            assert!(!left.surely_above(guide), "{name}: {left:?} is still more than {guide}");
            assert!(left.low() > 5 * GIB, "{name}: the advice leaves too little");
            checked += 1;
        }
    }
    assert!(checked > 12);
}

#[test]
fn advice_after_a_refusal_starts() {
    for name in ["fraction-too-low-0.5.12", "fraction-too-low-0.5.15"] {
        let launch = &recorded(name).launches[0];
        let world = &launch.audit.as_ref().unwrap().worlds[0];
        let (least, most) = world.minimal_fraction.unwrap();
        assert!(least.to_f64() <= 0.109 && 0.109 <= most.to_f64(), "what 0.5.15 itself suggested");
        let advice = finding(launch, "budget-exhausted").unwrap().advice.join(" ");
        assert!(advice.contains("up, not down") && advice.contains("0.85"), "{advice}");
    }
}

#[test]
fn advice_after_a_capture_out_of_memory_makes_room() {
    for name in ["capture-oom-0.5.12", "capture-oom-0.5.15", "piecewise-oom-0.5.12"] {
        let launch = &recorded(name).launches[0];
        let died = finding(launch, "out-of-memory-capture").unwrap();
        let fraction = advised_fraction(died).unwrap();
        let facts = facts(launch);
        assert!(fraction < facts.fraction.value.to_f64());
        let then = project(facts, &at(fraction)).unwrap();
        let missing = died.amount.unwrap();
        let now = launch.audit.as_ref().unwrap().worlds[0].slack.unwrap();
        assert!(
            (then.slack - now).low() > missing.high() && then.remaining.unwrap().low() > 5 * GIB,
            "{name}"
        );
        assert!(then.starts());
    }
}

#[test]
fn one_poor_rank_is_named_with_its_price() {
    let launch = &recorded("tp2-unbalanced-warns-0.5.12").launches[0];
    let limits = finding(launch, "rank-limits-kv").unwrap();
    assert_eq!((limits.rank.as_deref(), limits.severity), (Some("TP1"), Severity::Warning));
    // tp2-normal at the same fraction would hold (130.80 − 0.2 × 138.28) GiB ÷ 64 KiB = 1,689,8.. tokens a rank.
    let (low, high) = launch.audit.as_ref().unwrap().worlds[0].limit.as_ref().unwrap().tokens.unwrap();
    assert!(low <= 1_689_850 - 1_157_680 && 1_689_850 - 1_157_680 <= high + 200, "{low} to {high}");
    let stages = &recorded("pp2-0.5.12").launches[0];
    assert_eq!(
        finding(stages, "rank-limits-kv").unwrap().severity,
        Severity::Info,
        "stages differ by design"
    );
    assert!(finding(&recorded("tp2-normal-0.5.12").launches[0], "rank-limits-kv").is_none());
}

fn with_pool(tokens: &str, size: &str) -> String {
    altered("pair-base-0.5.12", &[("845985", tokens), ("51.63 GB", size)])
}

#[test]
fn a_pool_of_another_size_than_the_budget_is_found() {
    let fewer = analysed(&with_pool("800000", "48.83 GB"), &Settings::default());
    let underused = finding(&fewer.launches[0], "budget-underused").unwrap();
    assert!(underused.title.contains("at least 45,7"), "{}", underused.title);
    let more = analysed(&with_pool("900000", "54.93 GB"), &Settings::default());
    assert!(finding(&more.launches[0], "budget-exceeded").is_some());
    assert!(finding(&more.launches[0], "budget-underused").is_none());
}

#[test]
fn a_context_or_requests_beyond_the_pool_are_found() {
    let log = altered("pair-base-0.5.12", &[("context_len=8192", "context_len=900000")]);
    let analysis = analysed(&log, &Settings::default());
    let launch = &analysis.launches[0];
    let small = finding(launch, "pool-too-small").unwrap();
    let fraction = advised_fraction(small).unwrap();
    assert!(project(facts(launch), &at(fraction)).unwrap().tokens.0 >= 900_000, "{:?}", small.advice);
    let log = altered("pair-base-0.5.12", &[("max_running_requests=None", "max_running_requests=8000")]);
    let analysis = analysed(&log, &Settings::default());
    assert!(finding(&analysis.launches[0], "pool-too-small").unwrap().title.contains("8,000"));
}

#[test]
fn the_dead_zone_is_only_claimed_where_it_is_certain() {
    let certain =
        altered("capture-oom-0.5.12", &[("Tried to allocate 28.00 MiB", "Tried to allocate 126.00 GiB")]);
    let analysis = analysed(&certain, &Settings::default());
    let dead = finding(&analysis.launches[0], "budget-dead-zone").unwrap();
    assert!(dead.amount.unwrap().low() > 0, "{:?}", dead.arithmetic);
    let room =
        altered("capture-oom-0.5.12", &[("Tried to allocate 28.00 MiB", "Tried to allocate 100.00 GiB")]);
    assert!(finding(&analysed(&room, &Settings::default()).launches[0], "budget-dead-zone").is_none());
}

#[test]
fn failed_launches_are_never_told_of_generous_headroom() {
    for name in names() {
        for launch in recorded(&name).launches {
            if launch.launch.outcome == Outcome::Failed {
                assert!(finding(&launch, "headroom-generous").is_none(), "{name}");
            }
        }
    }
}
