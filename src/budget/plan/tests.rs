//! Properties of projections and solutions, on the figures of a recorded launch.

use super::*;
use crate::budget::audit::{Cell, FractionFact};
use crate::budget::cell::KvType;
use crate::budget::defaults::Settings;
use crate::place::Place;
use crate::quantity::{Decimal, GIB, MIB, Quantity};
use crate::version::Version;
use proptest::prelude::*;
use std::sync::Arc;

/// Llama 8B on an H200, SGLang 0.5.12, f 0.85: the recorded start, to the byte.
fn facts() -> Facts {
    let cell = 131_072;
    let tokens = 845_985;
    let mut settings = Settings::new(Version::new(5, 12), Some(143_771));
    settings.chunked_prefill_size = Some(8192);
    settings.graph_max_batch = Some(32);
    settings.prefill_graphs = false;
    Facts {
        version: Version::new(5, 12),
        fraction: FractionFact {
            value: Decimal::new(85, 2),
            place: Place::new(&Arc::from("log"), 1, 1),
            changed_later: false,
        },
        fraction_is_default: Some(false),
        baseline: Quantity::exact(149_458_059_264),
        weights: Some(Quantity::exact_mib(15_336)),
        available: Quantity::exact(133_303_697_408),
        reserved: Quantity::ZERO,
        rest: Quantity::between(tokens * cell, (tokens + 1) * cell - 1),
        cell: Cell { low: cell, high: cell, likely: Some(cell) },
        uncharged_cell: None,
        tokens: Some(tokens),
        user_cap: None,
        page_size: 1,
        overhead: Some(Quantity::exact_mib(238)),
        decode: GraphFacts { used: Some(Quantity::exact_mib(84)), ..GraphFacts::default() },
        prefill: GraphFacts::default(),
        other: Quantity::exact_mib(98),
        remaining: Some(Quantity::exact_mib(20_960)),
        several_ranks: false,
        settings,
        context_length: Some(8192),
        running: Some(4096),
        latent: false,
        kv_type: KvType::Half,
        model: None,
    }
}

fn at(thousandths: i128) -> Projection {
    project(&facts(), &Change::fraction(Decimal::new(thousandths, 3))).unwrap()
}

#[test]
fn no_change_gives_back_what_was_measured() {
    let same = project(&facts(), &Change::default()).unwrap();
    assert_eq!(same.tokens, (845_985, 845_985));
    assert_eq!(same.remaining, facts().remaining);
    assert_eq!(same.decode_graphs, facts().decode.used);
}

#[test]
fn a_defaulted_fraction_is_derived_again() {
    let defaulted = Facts { fraction_is_default: Some(true), ..facts() };
    let change = Change { chunk: Some(2048), ..Change::default() };
    let projection = project(&defaulted, &change).unwrap();
    assert_eq!(projection.fraction.to_f64(), 0.929, "as the recorded server with that chunk chose");
    assert!(projection.fraction_is_default);
    let kept = project(&facts(), &change).unwrap();
    assert_eq!(kept.fraction.to_f64(), 0.85, "a given fraction stays");
    let mut blind = defaulted;
    blind.settings.capacity_mib = None;
    assert_eq!(project(&blind, &change), Err(PlanError::NoCard));
}

#[test]
fn more_ranks_divide_weights_and_heads() {
    let change = Change { tp: Some(2), ..Change::default() };
    let divided = project(&facts(), &change).unwrap();
    assert_eq!(divided.cell.likely, Some(65_536));
    assert_eq!(divided.weights, Some(Quantity::exact_mib(7668)));
    // The recorded server on two ranks.
    assert!(divided.tokens.0 <= 1_803_122 && 1_803_122 <= divided.tokens.1, "{:?}", divided.tokens);
    let latent = project(&Facts { latent: true, ..facts() }, &change).unwrap();
    assert_eq!(latent.cell.likely, Some(131_072), "MLA keeps the same entry on every rank");
}

#[test]
fn types_without_a_plain_size_need_the_config() {
    let kv = KvChoice { name: "fp4_e2m1".into(), kv_type: KvType::Fp4 };
    let change = Change { kv: Some(kv), ..Change::default() };
    assert_eq!(project(&facts(), &change), Err(PlanError::KvType("fp4_e2m1".into())));
}

#[test]
fn goals_out_of_reach_say_by_how_much() {
    let error = solve(&facts(), &Change::default(), Goal::Tokens(2_000_000)).unwrap_err();
    assert!(error.to_string().contains("2,000,000 tokens are out of reach"), "{error}");
    let error = solve(&facts(), &Change::default(), Goal::Headroom(200 * GIB)).unwrap_err();
    assert!(error.to_string().contains("no mem_fraction_static leaves 204,800 MiB"), "{error}");
}

#[test]
fn a_cap_in_the_way_of_a_goal_is_dropped() {
    let remaining = Some(Quantity::exact_mib(89_300));
    let capped = Facts { user_cap: Some(300_000), tokens: Some(300_000), remaining, ..facts() };
    let (change, then) = solve(&capped, &Change::default(), Goal::Tokens(500_000)).unwrap();
    assert_eq!(change.max_total_tokens, Some(None));
    assert!(then.tokens.0 >= 500_000);
    let (change, _) = solve(&capped, &Change::default(), Goal::Tokens(100_000)).unwrap();
    assert_eq!(change.max_total_tokens, None, "it is not in the way");
}

#[test]
fn flags_are_named_as_the_release_names_them() {
    let change = Change {
        fraction: FractionChoice::Set(Decimal::new(900, 3)),
        max_total_tokens: Some(None),
        graphs: GraphChoice::MaxBatch(64),
        ..Change::default()
    };
    assert_eq!(
        change.flags(false),
        ["--mem-fraction-static 0.9", "(without --max-total-tokens)", "--cuda-graph-max-bs 64"]
    );
    assert!(change.flags(true).contains(&"--cuda-graph-max-bs-decode 64".to_string()));
}

proptest! {
    #[test]
    fn more_fraction_is_more_tokens_and_less_room(thousandths in 120i128..998) {
        let (less, more) = (at(thousandths), at(thousandths + 1));
        prop_assert!(less.tokens.0 < more.tokens.0 && less.tokens.1 < more.tokens.1);
        prop_assert!(less.remaining.unwrap().high() > more.remaining.unwrap().high());
    }

    #[test]
    fn what_is_solved_holds_and_a_step_further_does_not(mib in 0i128..100_000) {
        let (change, then) = solve(&facts(), &Change::default(), Goal::Headroom(mib * MIB)).unwrap();
        prop_assert!(then.remaining.unwrap().low() >= mib * MIB);
        let FractionChoice::Set(fraction) = change.fraction else { panic!("a fraction is solved for") };
        let further = at(fraction.mantissa() + 1);
        prop_assert!(further.remaining.unwrap().low() < mib * MIB);
    }

    #[test]
    fn tokens_that_were_asked_for_are_there(tokens in 1i128..1_000_000) {
        let (change, then) = solve(&facts(), &Change::default(), Goal::Tokens(tokens)).unwrap();
        prop_assert!(then.tokens.0 >= tokens);
        let FractionChoice::Set(fraction) = change.fraction else { panic!("a fraction is solved for") };
        prop_assert!(at(fraction.mantissa() - 1).tokens.0 < tokens, "no more than needed");
    }
}
