//! Worked examples, recorded servers, and the containment of the float reading in the interval reading.

use super::*;
use crate::quantity::Unit;
use crate::version::KNOWN;
use proptest::prelude::*;

fn final_tokens(version: Version, tokens: i128, caps: &Caps) -> i128 {
    capped(version, tokens, caps).last().map_or(tokens, |step| step.tokens)
}

fn paged(page_size: i128) -> Caps {
    Caps { page_size, ..Caps::NONE }
}

#[test]
fn worked_examples() {
    let rest = rest_gib(63.45, 78.50, 0.837, 0.0);
    assert!((rest - 50.6545).abs() < 1e-9);
    for version in KNOWN {
        assert_eq!(tokens(version, rest, 131_072), Some(414_961), "8B, {version}");
        let rest = rest_gib(42.11, 78.62, 0.85, 0.0);
        assert_eq!(tokens(version, rest, 81_920), Some(397_370), "70B, tp 4");
        let rest = rest_gib(55.02, 138.90, 0.893, 0.0);
        assert_eq!(tokens(version, rest, 70_272), Some(613_601), "V3, tp 8");
        let rest = rest_gib(62.90, 78.50, 0.837, 0.0);
        assert_eq!(tokens(version, rest, 135_168), Some(398_018), "EAGLE, one draft layer in the cell");
        let rest = rest_gib(15.20, 78.50, 0.80, 0.0);
        assert!((rest + 0.5).abs() < 1e-9 && tokens(version, rest, 131_072).is_some_and(|tokens| tokens < 0));
    }
    let version = Version::new(5, 12);
    assert_eq!(final_tokens(version, 414_961, &paged(16)), 414_960);
    assert_eq!(final_tokens(version, 414_961, &paged(64)), 414_912);
    assert_eq!(final_tokens(version, 613_601, &paged(64)), 613_568);
    assert_eq!(tokens(version, 1.0, 0), None);
}

#[test]
fn buffers_hold_the_padding_slots() {
    let gib = |tokens: i128, bytes: i128| (tokens * bytes) as f64 / GIB as f64;
    assert!((gib(414_961 + 1, 8 * 128 * 32 * 2) - 25.327_27).abs() < 1e-5);
    assert!((gib(414_912 + 64, 8 * 128 * 32 * 2) - 25.328_125).abs() < 1e-9);
    assert!((gib(397_370 + 1, 2 * 128 * 80 * 2) - 15.16).abs() < 5e-3);
    assert!((gib(613_568 + 64, 70_272) - 40.159_70).abs() < 1e-5);
}

/// What recorded H200 servers had free, to the byte, and printed: baseline, free after weights, fraction, cell, tokens.
const RECORDED: [(i128, i128, &str, i128, i128); 5] = [
    (149_458_059_264, 133_303_697_408, "0.85", 131_072, 845_985),
    (149_458_059_264, 133_303_697_408, "0.7", 131_072, 674_944),
    (149_458_059_264, 133_303_697_408, "0.85", 65_536, 1_691_970),
    (149_458_059_264, 133_303_697_408, "0.75", 131_072, 731_957),
    (149_458_059_264, 117_656_846_336, "0.8", 31_104, 2_821_670),
];

#[test]
fn recorded_servers_are_met_to_the_token() {
    for (baseline, free, fraction, cell, printed) in RECORDED {
        let gib = |bytes: i128| bytes as f64 / GIB as f64;
        let rest = rest_gib(gib(free), gib(baseline), fraction.parse().unwrap(), 0.0);
        assert_eq!(tokens(Version::new(5, 12), rest, cell), Some(printed));
        let budget = exact(baseline, free, fraction);
        assert_eq!(budget.tokens(cell), Some((printed, printed)), "one value only");
        assert!(budget.baseline_from_tokens(printed, cell).unwrap().contains(baseline));
    }
}

#[test]
fn two_recorded_ranks_are_met_to_the_token() {
    let readings = [148_472_397_824f64 / GIB as f64; 2];
    let free = [140_440_305_664f64 / GIB as f64; 2];
    let (baseline, free) = (least_over_ranks(&readings).unwrap(), least_over_ranks(&free).unwrap());
    assert_eq!(tokens(Version::new(5, 12), rest_gib(free, baseline, 0.85, 0.0), 65_536), Some(1_803_122));
    let mut budget = exact(148_472_397_824, 140_440_305_664, "0.85");
    budget.several_ranks = true;
    let (low, high) = budget.tokens(65_536).unwrap();
    assert!(low <= 1_803_122 && 1_803_122 <= high && high - low <= 1);
    assert_eq!(least_over_ranks(&[]), None);
}

#[test]
fn the_baseline_is_not_what_load_weight_begin_prints() {
    // 70 MiB are allocated in between on one GPU; the printed tokens prove the true baseline.
    let print = |text: &str| Quantity::from_print(&Decimal::parse(text).unwrap(), Unit::Gib).unwrap();
    let budget = Budget { free: print("124.15"), baseline: print("139.13"), ..exact(0, 0, "0.85") };
    let (_, high) = budget.tokens(131_072).unwrap();
    let proved = budget.baseline_from_tokens(845_985, 131_072).unwrap();
    assert!(proved.contains(149_458_059_264));
    assert!(high > 845_985);
}

#[test]
fn slack_and_budget_share_the_baseline() {
    let budget = exact(149_458_059_264, 133_303_697_408, "0.85");
    assert!((budget.slack().unwrap() + budget.static_budget().unwrap()).contains(149_458_059_264));
    let whole = exact(149_458_059_264, 133_303_697_408, "1");
    assert_eq!(whole.baseline_from_tokens(1, 1), None);
    assert_eq!(budget.tokens(0), None);
}

fn exact(baseline: i128, free: i128, fraction: &str) -> Budget {
    Budget {
        free: Quantity::exact(free),
        baseline: Quantity::exact(baseline),
        fraction: Decimal::parse(fraction).unwrap(),
        extras: Quantity::ZERO,
        several_ranks: false,
    }
}

#[test]
fn headroom_of_speculative_decoding() {
    let headroom = |version| speculative_headroom(version, 48, 5, 4, 8);
    assert_eq!(headroom(Version::post(4, 3, 4)), 960 + 384 + 100);
    assert_eq!((headroom(Version::post(3, 6, 3)), headroom(Version::new(5, 9))), (0, 0));
    let version = Version::post(4, 3, 4);
    let caps = Caps { speculative_headroom: headroom(version), ..Caps::NONE };
    assert_eq!(final_tokens(version, 414_961, &caps), 416_405);
    assert_eq!(final_tokens(Version::new(5, 9), 414_961, &caps), 414_961);
}

#[test]
fn caps_follow_the_order_of_the_release() {
    let caps = Caps {
        max_total_tokens: Some(1000),
        page_size: 64,
        pipeline_minimum: Some(900),
        speculative_headroom: 0,
    };
    let labels = |version| capped(version, 2000, &caps).iter().map(|step| step.label).collect::<Vec<_>>();
    assert_eq!(labels(Version::new(1, 20)), Vec::<&str>::new());
    assert_eq!(labels(Version::new(2, 15)), [USER_CAP]);
    assert_eq!(labels(Version::post(4, 6, 5)), [USER_CAP, PAGES]);
    for version in [Version::new(5, 3), Version::new(5, 9), Version::new(5, 10)] {
        assert_eq!(labels(version), [USER_CAP, PAGES, STAGES]);
    }
    assert_eq!(final_tokens(Version::new(5, 9), 2000, &caps), 900, "stages are not rounded again");
    assert_eq!(labels(Version::new(5, 12)), [PAGES, USER_CAP, STAGES, PAGES]);
    assert_eq!(final_tokens(Version::new(5, 12), 2000, &caps), 896);
}

proptest! {
    #[test]
    fn the_interval_holds_what_the_floats_compute(
        baseline in 1i128..(200 * GIB), used in 0i128..(100 * GIB), thousandths in 1i128..1000,
        cell in 1i128..1_000_000, width in 0i128..10_000_000, newer in any::<bool>(),
    ) {
        let free = (baseline - used).max(0);
        let gib = |bytes: i128| bytes as f64 / GIB as f64;
        let version = if newer { Version::new(5, 12) } else { Version::post(4, 6, 5) };
        let fraction = Decimal::new(thousandths, 3);
        let computed = tokens(version, rest_gib(gib(free), gib(baseline), fraction.to_f64(), 0.0), cell).unwrap();
        let around = |bytes: i128| Quantity::between(bytes - width, bytes + width);
        let budget = Budget {
            free: around(free), baseline: around(baseline), fraction, extras: Quantity::ZERO, several_ranks: false,
        };
        let (low, high) = budget.tokens(cell).unwrap();
        prop_assert!(low <= computed && computed <= high, "{} <= {} <= {}", low, computed, high);
        if computed > 0 {
            prop_assert!(budget.baseline_from_tokens(computed, cell).unwrap().meets(around(baseline)));
        }
    }

    #[test]
    fn a_cap_never_adds_tokens(tokens in 0i128..10_000_000, cap in 0i128..10_000_000, page in 1i128..512) {
        let caps = Caps { max_total_tokens: Some(cap), ..paged(page) };
        for version in KNOWN {
            prop_assert!(final_tokens(version, tokens, &caps) <= tokens);
        }
    }
}
