//! Logs with any numbers in them: no panic, and no projection that contradicts itself.

use super::support::analysed;
use proptest::prelude::*;
use vramledger::analysis::Settings;
use vramledger::budget::plan::{Change, Goal, GraphChoice, answer};
use vramledger::render::plan;
use vramledger::report::report;

/// A number as a log may hold it, sane or not.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u64..2_000_000).prop_map(|number| number.to_string()),
        "[0-9]{1,24}",
        Just("-1".to_string()),
        Just("None".to_string()),
    ]
}

/// An amount in GB.
fn amount() -> impl Strategy<Value = String> {
    prop_oneof![(0.0f64..200.0).prop_map(|gib| format!("{gib:.2}")), "-?[0-9]{1,15}\\.[0-9]{2}"]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn any_numbers_are_audited_and_planned_with(
        (fraction, tp, page, cap, chunk) in (0.0f64..1.1, number(), number(), number(), number()),
        levels in prop::collection::vec(amount(), 5),
        (tokens, context, running) in (number(), number(), number()),
        card in prop::option::of(0u32..u32::MAX),
    ) {
        let [begin, loaded, pool, kv, left] = &levels[..] else { unreachable!("five amounts") };
        let log = format!(
            "[2026-11-29 13:51:20] server_args=ServerArgs(mem_fraction_static={fraction}, tp_size={tp}, pp_size=1, page_size={page}, \
             max_total_tokens={cap}, chunked_prefill_size={chunk}, kv_cache_dtype='auto', max_running_requests={running})\n\
             [2026-11-29 13:51:21] Load weight begin. avail mem={begin} GB\n\
             [2026-11-29 13:51:22] Load weight end. type=A, avail mem={loaded} GB, mem usage=1.00 GB.\n\
             [2026-11-29 13:51:23] KV Cache is allocated. #tokens: {tokens}, K size: {kv} GB, V size: {kv} GB\n\
             [2026-11-29 13:51:24] Memory pool end. avail mem={pool} GB\n\
             [2026-11-29 13:51:25] Capture cuda graph begin. This can take up to several minutes. avail mem={pool} GB\n\
             [2026-11-29 13:51:26] Capture cuda graph end. Time elapsed: 2.25 s. mem usage=0.08 GB. avail mem={left} GB.\n\
             [2026-11-29 13:51:27] max_total_num_tokens={tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, \
             max_running_requests={running}, context_len={context}, available_gpu_mem={left} GB\n\
             [2026-11-29 13:51:28] The server is fired up and ready to roll!\n"
        );
        let analysis = analysed(&log, &Settings { card_mib: card, ..Settings::default() });
        serde_json::to_string(&report(&analysis)).unwrap();
        for launch in &analysis.launches {
            for facts in launch.facts.iter().flatten() {
                let change = Change { graphs: GraphChoice::Off, chunk: Some(2048), page_size: Some(64), ..Change::default() };
                for goal in [None, Some(Goal::Tokens(100_000)), Some(Goal::Headroom(6 << 30))] {
                    let Ok(found) = answer(facts, &change, goal) else { continue };
                    prop_assert!(found.after.tokens.0 <= found.after.tokens.1);
                    match goal {
                        Some(Goal::Tokens(wanted)) => prop_assert!(found.after.tokens.0 >= wanted),
                        Some(Goal::Headroom(wanted)) => prop_assert!(found.after.remaining.unwrap().low() >= wanted),
                        None => {}
                    }
                    plan(launch, &found, 100, false);
                }
            }
        }
    }
}
