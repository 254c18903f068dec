//! Properties that must hold for any start-up: the ledger of a log printed from true byte counts balances, and every
//! interval in it contains the truth; no input makes the program panic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use proptest::prelude::*;
use vramledger::analysis::{Analysis, Settings, analyse};
use vramledger::input::Source;
use vramledger::ledger::{Ledger, PostingKind};
use vramledger::read::read_source;
use vramledger::stage::Stage;

const GIB: f64 = (1u64 << 30) as f64;

/// True free bytes of one rank at each point where SGLang prints.
#[derive(Debug, Clone)]
struct Truth {
    init: i64,
    levels: Vec<i64>,
}

/// One rank's start: 0.5.12's order, with unlogged steps between stages, gains among them.
fn truth() -> impl Strategy<Value = Truth> {
    (60i64..180, 0i64..2_000, 0i64..60_000, 0i64..20_000, -900i64..2_000, 0i64..4_000, -300i64..300).prop_map(
        |(card, init, weights, pool, gap, capture, odd)| {
            let mib = 1i64 << 20;
            let mut free = card * 1024 * mib + 12_345;
            let mut levels = vec![free];
            for step in [weights * mib + odd, pool * mib + 7, gap * mib - odd * 1000, capture * mib + 3] {
                free = (free - step).max(0);
                levels.push(free);
            }
            Truth { init: init * mib + odd * 11, levels }
        },
    )
}

fn gb(bytes: i64) -> String {
    format!("{:.2}", bytes as f64 / GIB)
}

/// The lines that SGLang 0.5.12 prints for these true values.
fn print(truth: &Truth, tag: &str) -> String {
    let [begin, loaded, pool, capture, end] = truth.levels[..] else { unreachable!("five levels") };
    let at = |second: u32| format!("[2026-11-29 13:51:{second:02}{tag}]");
    format!(
        "{} Init torch distributed ends. elapsed=0.23 s, mem usage={} GB\n\
         {} Load weight begin. avail mem={} GB\n\
         {} Load weight end. elapsed=0.13 s, type=LlamaForCausalLM, avail mem={} GB, mem usage={} GB.\n\
         {} KV Cache is allocated. #tokens: 845985, K size: 1.00 GB, V size: 1.00 GB\n\
         {} Memory pool end. avail mem={} GB\n\
         {} Capture cuda graph begin. This can take up to several minutes. avail mem={} GB\n\
         {} Capture cuda graph end. Time elapsed: 2.25 s. mem usage={} GB. avail mem={} GB.\n",
        at(1),
        gb(truth.init),
        at(2),
        gb(begin),
        at(3),
        gb(loaded),
        gb(begin - loaded),
        at(4),
        at(5),
        gb(pool),
        at(6),
        gb(capture),
        at(7),
        gb(capture - end),
        gb(end),
    )
}

fn analysed(text: &str) -> Analysis {
    let reading = read_source(&Source::memory("log", text.as_bytes())).expect("a log in memory can be read");
    analyse(vec![reading], &Settings::default())
}

/// Checks a ledger against the truth it was printed from.
fn check(ledger: &Ledger, truth: &Truth) -> Result<(), TestCaseError> {
    let [begin, loaded, pool, capture, end] = truth.levels[..] else { unreachable!("five levels") };
    prop_assert_eq!(ledger.balance.holds, Some(true), "{:#?}", ledger);
    prop_assert!(ledger.balance.residual.unwrap().contains(0));
    prop_assert!(ledger.opening.unwrap().contains(begin.into()));
    prop_assert!(ledger.closing.unwrap().contains(end.into()));
    let used = |stage: Stage| ledger.stages(stage).next().and_then(|posting| posting.used).unwrap();
    prop_assert!(used(Stage::Weights).contains((begin - loaded).into()));
    prop_assert!(used(Stage::KvCache).contains((loaded - pool).into()));
    prop_assert!(used(Stage::GraphDecode).contains((capture - end).into()));
    for gap in ledger.postings.iter().filter(|posting| posting.kind == PostingKind::Gap) {
        prop_assert!(gap.used.unwrap().contains((pool - capture).into()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn a_ledger_balances_by_construction(one in truth(), other in truth()) {
        let analysis = analysed(&(print(&one, " TP0") + &print(&other, " TP1")));
        prop_assert_eq!(analysis.launches.len(), 1);
        let launch = &analysis.launches[0];
        prop_assert_eq!(launch.ledgers.len(), 2);
        check(&launch.ledgers[0], &one)?;
        check(&launch.ledgers[1], &other)?;
        prop_assert!(analysis.unrecognised.is_empty());
    }

    #[test]
    fn a_false_claim_breaks_the_balance(one in truth(), error in 30i64..4_000) {
        let [begin, loaded, ..] = one.levels[..] else { unreachable!("five levels") };
        let honest = format!("mem usage={} GB.", gb(begin - loaded));
        let false_claim = format!("mem usage={} GB.", gb(begin - loaded + error * (1 << 20)));
        let analysis = analysed(&print(&one, "").replacen(&honest, &false_claim, 1));
        let launch = &analysis.launches[0];
        prop_assert_eq!(launch.ledgers[0].balance.holds, Some(false));
        prop_assert!(launch.findings.iter().any(|finding| finding.rule.name == "claim-mismatch"));
    }

    #[test]
    fn no_text_makes_it_panic(text in "(\\[[0-9: -]{0,20}(TP|DP)?[0-9]{0,2}\\] )?(Load weight (begin|end)|Memory pool end|Capture cuda graph (begin|end)|\\PC{0,10})\\. ?(avail mem=|mem usage=|avail_mem)?[0-9.eE-]{0,12}( GB)?\\PC{0,40}") {
        analysed(&format!("{text}\n{text}"));
    }
}

/// Any start, cut anywhere, still gives true levels: a cut figure is unknown, never smaller.
#[test]
fn a_log_cut_anywhere_tells_no_lies() {
    let truth = Truth {
        init: 94 << 20,
        levels: vec![149_384_658_944, 133_303_697_408, 22_169_321_472, 22_066_561_024, 21_978_480_640],
    };
    let text = print(&truth, "");
    for end in 1..text.len() {
        let analysis = analysed(&text[..end]);
        for ledger in analysis.launches.iter().flat_map(|launch| &launch.ledgers) {
            for posting in &ledger.postings {
                for level in [posting.before, posting.after].into_iter().flatten() {
                    assert!(
                        truth.levels.iter().any(|bytes| level.contains((*bytes).into())),
                        "cut at {end}: a level of {level:?} was never printed: …{}",
                        &text[end.saturating_sub(40)..end]
                    );
                }
            }
        }
    }
}
