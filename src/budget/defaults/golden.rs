//! Worked examples of the default rules.

use super::*;
use crate::quantity::MIB;
use crate::version::{KNOWN, Version};
use proptest::prelude::*;

const T4: u32 = 15360;
const RTX_4090: u32 = 24564;
const L40: u32 = 46068;
const H100: u32 = 81559;
const H200: u32 = 143_771;
const B200: u32 = 183_359;

fn settings(version: Version, capacity: u32, tp: u32) -> Settings {
    Settings { tp, ..Settings::new(version, Some(capacity)) }
}

fn fraction(settings: &Settings) -> f64 {
    default_fraction(settings).fraction
}

/// The reservation in MiB, which must be the sum of its terms.
fn reserved(settings: &Settings) -> f64 {
    let default = default_fraction(settings);
    let reserved = default.reserved.unwrap();
    assert_eq!(reserved, default.terms.iter().map(|term| term.amount).sum());
    reserved.mib()
}

/// Fractions for 1, 2, 4 and 8 tensor-parallel ranks.
fn row(version: Version, capacity: u32) -> [f64; 4] {
    [1, 2, 4, 8].map(|tp| fraction(&settings(version, capacity, tp)))
}

#[test]
fn tables_by_parallel_size() {
    let sizes = |version| [1, 2, 4, 8, 16].map(|tp| fraction(&settings(version, H100, tp)));
    assert_eq!(sizes(Version::new(1, 20)), [0.88, 0.85, 0.80, 0.78, 0.78]);
    assert_eq!(sizes(Version::new(2, 15)), [0.88, 0.87, 0.85, 0.83, 0.79]);
    assert_eq!(sizes(Version::post(3, 6, 3)), [0.88, 0.87, 0.85, 0.82, 0.79]);
    assert_eq!(sizes(Version::post(4, 3, 4)), [0.88, 0.87, 0.85, 0.81, 0.79]);
    assert_eq!(sizes(Version::post(4, 6, 5)), [0.88, 0.87, 0.85, 0.81, 0.79]);
}

#[test]
fn large_cards_of_0_4_6() {
    let version = Version::post(4, 6, 5);
    for tp in [1, 2, 4, 8] {
        assert!((fraction(&settings(version, H200, tp)) - 0.871_796).abs() < 1e-6);
        assert!((fraction(&settings(version, B200, tp)) - 0.899_476).abs() < 1e-6);
    }
    for capacity in [T4, RTX_4090, L40, H100] {
        assert_eq!(row(version, capacity), [0.88, 0.87, 0.85, 0.81]);
    }
    assert_eq!(fraction(&settings(version, 90_000, 8)), 0.88, "between 80 and 96 GiB the table is not asked");
    let pipelined = Settings { pp: 2, ..settings(version, H100, 4) };
    assert_eq!(fraction(&pipelined), 0.81);
}

#[test]
fn size_classes_of_0_4_8_to_0_5_1() {
    for version in [Version::post(4, 8, 1), Version::post(4, 10, 2), Version::post(5, 1, 3)] {
        assert_eq!(row(version, T4), [0.807, 0.800, 0.787, 0.760]);
        assert_eq!(row(version, RTX_4090), [0.879, 0.875, 0.867, 0.850]);
        assert_eq!(row(version, L40), [0.778, 0.767, 0.744, 0.700]);
        assert_eq!(row(version, H100), [0.874, 0.868, 0.856, 0.831]);
        assert_eq!(row(version, H200), [0.911, 0.907, 0.900, 0.886]);
        assert_eq!(row(version, B200), [0.821; 4]);
    }
    let mut both = settings(Version::post(4, 10, 2), H100, 1);
    both.speculation = Speculation::Ngram;
    both.dp_attention = true;
    assert_eq!(reserved(&both), 10.0 * 1024.0 + 2048.0 + 4096.0, "any algorithm counts");
}

#[test]
fn formula_of_0_5_3_to_0_5_9() {
    let version = Version::new(5, 3);
    assert_eq!(row(version, T4), [0.757, 0.749, 0.732, 0.699]);
    assert_eq!(row(version, RTX_4090), [0.848, 0.842, 0.827, 0.806]);
    assert_eq!(row(version, L40), [0.851, 0.849, 0.837, 0.826]);
    assert_eq!(row(version, H100), [0.835, 0.834, 0.824, 0.818]);
    assert_eq!(row(version, H200), [0.907, 0.906, 0.900, 0.897]);
    assert_eq!(row(version, B200), [0.857, 0.856, 0.855, 0.852]);
    for version in [Version::post(5, 6, 2), Version::new(5, 9)] {
        assert_eq!(row(version, RTX_4090), [0.847, 0.842, 0.827, 0.806]);
        assert_eq!(row(version, T4), [0.757, 0.749, 0.732, 0.699]);
        assert_eq!(row(version, H100), [0.835, 0.834, 0.824, 0.818]);
    }
    assert_eq!(reserved(&settings(Version::post(5, 6, 2), H100, 1)), 13440.0);
}

#[test]
fn piecewise_by_default_in_0_5_10_to_0_5_12() {
    for version in [Version::new(5, 10), Version::new(5, 12)] {
        assert_eq!(row(version, T4), [0.735, 0.727, 0.710, 0.677]);
        assert_eq!(row(version, RTX_4090), [0.833, 0.828, 0.813, 0.792]);
        assert_eq!(row(version, L40), [0.843, 0.840, 0.829, 0.818]);
        assert_eq!(row(version, H100), [0.830, 0.828, 0.819, 0.812]);
        assert_eq!(row(version, H200), [0.903, 0.902, 0.897, 0.893]);
        assert_eq!(row(version, B200), [0.854, 0.853, 0.852, 0.849]);
    }
    let mla = Settings { mla: true, ..settings(Version::new(5, 12), H100, 1) };
    assert_eq!(reserved(&mla), 13440.0 + 1536.0);
}

#[test]
fn piecewise_where_it_is_asked_for() {
    let mut quarter = settings(Version::post(5, 6, 2), H100, 1);
    quarter.prefill_graphs = true;
    assert_eq!((reserved(&quarter), fraction(&quarter)), (14464.0, 0.823));
    let mut counted = settings(Version::new(5, 9), H100, 1);
    counted.prefill_graphs = true;
    assert_eq!(reserved(&counted), 13440.0 + 8.0 * 58.0);
    counted.max_total_tokens = Some(4096);
    assert_eq!(reserved(&counted), 13440.0 + 8.0 * 50.0);
}

#[test]
fn dp_attention() {
    let dp =
        |capacity| Settings { dp: 8, dp_attention: true, ..settings(Version::post(5, 6, 2), capacity, 8) };
    assert_eq!((reserved(&dp(H100)), fraction(&dp(H100))), (33280.0, 0.592));
    assert_eq!(fraction(&dp(H200)), 0.769);
    let small = Settings { graph_max_batch: Some(300), ..dp(H100) };
    assert_eq!(reserved(&small), 512.0 + 12288.0 + 600.0 + 1024.0 + 7200.0, "no surcharge up to 300");
}

#[test]
fn speculative_decoding() {
    let spec = |version, speculation| Settings { speculation, ..settings(version, H100, 1) };
    let version = Version::post(5, 6, 2);
    let eagle = spec(version, Speculation::Eagle);
    assert_eq!((reserved(&eagle), fraction(&eagle)), (15488.0, 0.810));
    let standalone = spec(version, Speculation::Standalone);
    assert_eq!((reserved(&standalone), fraction(&standalone)), (19584.0, 0.760));
    assert_eq!(fraction(&spec(version, Speculation::Ngram)), 0.835);
    assert_eq!(reserved(&spec(Version::new(5, 12), Speculation::Eagle)), 13440.0 + 464.0 + 4096.0);
    assert_eq!(reserved(&spec(Version::new(5, 15), Speculation::Eagle)), 13440.0 + 464.0);
    assert_eq!(Speculation::named(Some("eagle3")), Speculation::Eagle);
    assert_eq!(Speculation::named(None), Speculation::None);
}

#[test]
fn the_floor_of_large_cards() {
    let chunk = |capacity| Settings {
        chunked_prefill_size: Some(2048),
        graph_max_batch: Some(32),
        prefill_graphs: false,
        ..settings(Version::new(5, 12), capacity, 1)
    };
    assert_eq!(
        (reserved(&chunk(H200)), fraction(&chunk(H200))),
        (10240.0, 0.929),
        "as a recorded server prints"
    );
    assert_eq!(reserved(&chunk(L40)), 512.0 + 3072.0 + 64.0 + 128.0, "not on smaller cards");
    let unchunked = Settings { chunked_prefill_size: Some(-1), ..chunk(H200) };
    assert_eq!(reserved(&unchunked), 512.0 + 24576.0 + 64.0 + 128.0, "max_prefill_tokens takes its place");
}

#[test]
fn graphs_off_still_counts_their_size_up_to_0_5_12() {
    let off =
        |version| Settings { decode_graphs: false, prefill_graphs: false, ..settings(version, H200, 1) };
    assert_eq!(fraction(&off(Version::new(5, 12))), 0.907, "as a recorded server prints");
    assert_eq!(reserved(&off(Version::new(5, 15))), 13440.0 - 512.0);
}

#[test]
fn roles_of_a_disaggregated_deployment() {
    let base = |disaggregation| Settings { disaggregation, ..settings(Version::new(5, 15), H100, 1) };
    assert_eq!(reserved(&base(Disaggregation::Prefill)), 512.0 + 12288.0 + 128.0 + 464.0);
    let decode = base(Disaggregation::Decode);
    assert_eq!(reserved(&decode), 10240.0, "512 + 3072 + 512 + 128, raised to the floor");
    let busy = Settings { max_running_requests: Some(2048), draft_tokens: Some(4), ..decode };
    assert_eq!(reserved(&busy), 512.0 + 12288.0 + 512.0 + 128.0);
    let dp = Settings { dp: 8, dp_attention: true, ..base(Disaggregation::Prefill) };
    assert_eq!(reserved(&dp), 512.0 + 12288.0 + 128.0 + 464.0, "no DP term on prefill nodes");
}

#[test]
fn deepep_buffers() {
    let deepep = |version| Settings { deepep: true, breakable_prefill: true, ..settings(version, H100, 1) };
    assert_eq!(reserved(&deepep(Version::new(5, 12))), 13904.0);
    assert_eq!(reserved(&deepep(Version::new(5, 15))), 13904.0 + 2048.0);
    assert_eq!(reserved(&deepep(Version::new(5, 18))), 13904.0 + 2048.0 + 1024.0);
    let prefill = Settings { disaggregation: Disaggregation::Prefill, ..deepep(Version::new(5, 18)) };
    assert_eq!(reserved(&prefill), 13904.0 - 512.0 + 1024.0);
}

#[test]
fn newest_releases_without_post_capture() {
    for version in [Version::new(5, 20), Version::new(5, 23)] {
        let of = |capacity, tp| {
            let settings = settings(version, capacity, tp);
            (reserved(&settings), fraction(&settings))
        };
        assert_eq!(of(H100, 1), (13904.0, 0.830));
        assert_eq!(of(H100, 8), (15312.0, 0.812));
        assert_eq!(of(RTX_4090, 1), (7280.0, 0.704));
        assert_eq!(of(RTX_4090, 8), (8400.0, 0.658));
    }
    let xpu = Settings { xpu: true, ..settings(Version::new(5, 20), RTX_4090, 1) };
    assert_eq!(reserved(&xpu), 7280.0 + 2048.0);
}

#[test]
fn post_capture_sizing() {
    let of = |capacity, tp| Settings { post_capture: true, ..settings(Version::new(5, 20), capacity, tp) };
    let both = |capacity| (fraction(&of(capacity, 1)), fraction(&of(capacity, 8)));
    assert_eq!((reserved(&of(H100, 1)), reserved(&of(H100, 8))), (1664.0, 2560.0));
    assert_eq!(both(H100), (0.980, 0.969));
    assert_eq!(both(H200), (0.988, 0.982));
    assert_eq!(both(B200), (0.991, 0.986));
    assert_eq!(both(RTX_4090), (0.932, 0.896));
    let image = Settings { multimodal: true, ..of(H100, 1) };
    assert!((fraction(&image) - 0.879_557).abs() < 1e-6);
    let early = Settings { post_capture: true, ..settings(Version::new(5, 15), H100, 1) };
    assert_eq!(reserved(&early), 13904.0, "not before 0.5.18");
}

#[test]
fn multimodal_models() {
    let image =
        |version, vision| Settings { multimodal: true, vision: Some(vision), ..settings(version, H100, 1) };
    let tower = Vision { layers: 32, hidden_size: 1280 };
    for (version, factor) in
        [(Version::new(2, 15), 0.95), (Version::post(4, 3, 4), 0.95), (Version::post(4, 6, 5), 0.90)]
    {
        let default = default_fraction(&image(version, tower));
        assert_eq!((default.printed, default.fraction), (0.88, 0.88 * factor), "{version}");
    }
    assert_eq!(default_fraction(&image(Version::new(1, 20), tower)).fraction, 0.88);
    let default = default_fraction(&image(Version::post(4, 10, 2), tower));
    assert!((default.fraction - 0.740_351).abs() < 1e-6);
    assert_eq!(default.printed, default.fraction);
    let text = Settings { language_only: true, ..image(Version::new(5, 12), tower) };
    assert_eq!(fraction(&text), 0.830);
    let decode = Settings { disaggregation: Disaggregation::Decode, ..image(Version::new(5, 18), tower) };
    assert!(default_fraction(&decode).factors.is_empty());
    let no_tower = Settings { vision: None, ..image(Version::new(5, 12), tower) };
    assert_eq!(fraction(&no_tower), 0.830);
}

#[test]
fn aiter_with_long_contexts() {
    let aiter =
        |version| default_fraction(&Settings { aiter_long_context: true, ..settings(version, H100, 1) });
    let old = aiter(Version::post(4, 10, 2));
    assert_eq!((old.printed, old.fraction), (0.874, 0.874 * 0.85));
    let new = aiter(Version::new(5, 12));
    assert_eq!((new.printed, new.fraction), (0.830 * 0.85, 0.830 * 0.85));
    assert_eq!(aiter(Version::post(4, 6, 5)).fraction, 0.88);
}

#[test]
fn unknown_capacity() {
    for version in KNOWN {
        let default = default_fraction(&Settings::new(version, None));
        let expected = if version >= Version::new(5, 20) { 0.95 } else { 0.88 };
        assert_eq!((default.fraction, default.reserved), (expected, None), "{version}");
        assert!(default.terms.is_empty());
    }
}

#[test]
fn every_reservation_explains_the_fraction() {
    for version in KNOWN {
        for capacity in [T4, RTX_4090, L40, H100, H200, B200] {
            let default = default_fraction(&settings(version, capacity, 2));
            let implied = f64::from(capacity) * (1.0 - default.fraction);
            let reserved = default.reserved.unwrap().midpoint() as f64 / MIB as f64;
            assert!(
                (implied - reserved).abs() <= f64::from(capacity) * 0.000_501,
                "{version} on {capacity} MiB"
            );
            assert!(default.decimal().is_some_and(|decimal| decimal.to_f64() == default.fraction));
        }
    }
}

proptest! {
    #[test]
    fn no_settings_panic(
        capacity in prop::option::of(any::<u32>()), tp in any::<u32>(), pp in any::<u32>(), dp in any::<u32>(),
        tokens in any::<[i64; 3]>(), counts in any::<[u32; 3]>(), flags in any::<[bool; 8]>(),
        sizes in prop::option::of(any::<usize>()), hidden_size in any::<u64>(),
    ) {
        let [chunk, max_prefill_tokens, most] = tokens;
        let [batch, draft_tokens, requests] = counts;
        for version in KNOWN {
            for disaggregation in [Disaggregation::None, Disaggregation::Decode] {
                let default = default_fraction(&Settings {
                    tp, pp, dp, dp_attention: flags[0], max_prefill_tokens, disaggregation,
                    chunked_prefill_size: Some(chunk), max_total_tokens: flags[1].then_some(most),
                    max_running_requests: flags[2].then_some(requests), graph_max_batch: flags[3].then_some(batch),
                    prefill_graphs: true, prefill_graph_sizes: sizes, mla: flags[4], draft_tokens: Some(draft_tokens),
                    multimodal: true, vision: Some(Vision { layers: 1 << 24, hidden_size }),
                    post_capture: flags[5], aiter_long_context: flags[6], deepep: flags[7],
                    ..Settings::new(version, capacity)
                });
                prop_assert_eq!(default.reserved.is_some(), capacity.is_some());
            }
        }
    }
}
