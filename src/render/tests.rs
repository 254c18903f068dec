//! The report as a whole: what a reader sees, at several widths, and what no input may do to it.

use super::testing::{analysed, arguments, launches, sample};
use super::{TableOptions, terminal, text};
use crate::analysis::{Analysis, SourceFacts, SourceKind, Unrecognised};
use crate::place::Place;
use crate::version::{Version, VersionRange};
use proptest::prelude::*;
use std::sync::Arc;

/// SGLang 0.5.12 on one H200, as recorded (bars shortened).
const ONE_RANK: &str = "\
[2026-11-29 13:51:21] server_args=ServerArgs(...)
[2026-11-29 13:51:41] Init torch distributed ends. elapsed=0.23 s, mem usage=0.09 GB
[2026-11-29 13:51:42] Load weight begin. avail mem=139.13 GB
[2026-11-29 13:51:43] Load weight end. elapsed=0.13 s, type=LlamaForCausalLM, avail mem=124.15 GB, mem usage=14.98 GB.
[2026-11-29 13:51:43] KV Cache is allocated. #tokens: 845985, K size: 51.63 GB, V size: 51.63 GB
[2026-11-29 13:51:43] Memory pool end. avail mem=20.65 GB
[2026-11-29 13:51:43] Capture cuda graph begin. This can take up to several minutes. avail mem=20.55 GB
Capturing batches (bs=32 avail_mem=20.54 GB)
Capturing batches (bs=24 avail_mem=20.48 GB)
[2026-11-29 13:51:45] Capture cuda graph end. Time elapsed: 2.25 s. mem usage=0.08 GB. avail mem=20.47 GB.
[2026-11-29 13:51:45] Capture piecewise CUDA graph begin. avail mem=20.47 GB
Capturing num tokens (num_tokens=8192 avail_mem=19.49 GB)
[2026-11-29 13:52:05] Capture piecewise CUDA graph end. Time elapsed: 20.27 s. mem usage=1.16 GB. avail mem=19.31 GB.
[2026-11-29 13:52:05] max_total_num_tokens=845985, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=8192, available_gpu_mem=19.31 GB
[2026-11-29 13:52:05] The server is fired up and ready to roll!
";

/// Two ranks, 40 GiB of the second card taken by another process, as recorded.
const UNBALANCED: &str = "\
[2026-11-29 13:49:45] server_args=ServerArgs(...)
[2026-11-29 13:50:05 TP1] Init torch distributed ends. elapsed=2.48 s, mem usage=1.01 GB
[2026-11-29 13:50:05 TP0] Init torch distributed ends. elapsed=0.98 s, mem usage=1.01 GB
[2026-11-29 13:50:06 TP0] Load weight begin. avail mem=138.28 GB
[2026-11-29 13:50:06 TP0] Load weight end. elapsed=0.12 s, type=LlamaForCausalLM, avail mem=130.80 GB, mem usage=7.48 GB.
[2026-11-29 13:50:06 TP1] Load weight begin. avail mem=97.67 GB
[2026-11-29 13:50:06 TP1] Load weight end. elapsed=0.16 s, type=LlamaForCausalLM, avail mem=90.19 GB, mem usage=7.48 GB.
[2026-11-29 13:50:06 TP1] KV Cache is allocated. #tokens: 1157680, K size: 35.33 GB, V size: 35.33 GB
[2026-11-29 13:50:06 TP1] Memory pool end. avail mem=19.30 GB
[2026-11-29 13:50:06 TP0] KV Cache is allocated. #tokens: 1157680, K size: 35.33 GB, V size: 35.33 GB
[2026-11-29 13:50:06 TP0] Memory pool end. avail mem=59.90 GB
[2026-11-29 13:50:06 TP1] Capture cuda graph begin. This can take up to several minutes. avail mem=19.20 GB
[2026-11-29 13:50:06 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=59.80 GB
Capturing batches (bs=32 avail_mem=59.79 GB)
[2026-11-29 13:50:11 TP0] Capture cuda graph end. Time elapsed: 4.62 s. mem usage=0.08 GB. avail mem=59.72 GB.
[2026-11-29 13:50:11 TP1] Capture cuda graph end. Time elapsed: 4.75 s. mem usage=0.08 GB. avail mem=19.12 GB.
[2026-11-29 13:50:11 TP0] max_total_num_tokens=1157680, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=8192, available_gpu_mem=59.72 GB
[2026-11-29 13:50:11] The server is fired up and ready to roll!
";

fn one_rank() -> Analysis {
    let mut one = launches("server.log", ONE_RANK, Some(arguments(1, 0.85)));
    one[0].versions = VersionRange { first: Version::new(5, 12), last: Version::new(5, 12) };
    analysed(
        one,
        vec![
            sample(0, 123_384, "Sun Nov 29 13:52:06 2026", &[(4711, "sglang::scheduler", None)]),
            sample(1, 0, "Sun Nov 29 13:52:06 2026", &[]),
        ],
    )
}

fn unbalanced() -> Analysis {
    let moment = "Sun Nov 29 13:50:12 2026";
    analysed(
        launches("server.log", UNBALANCED, Some(arguments(2, 0.8))),
        vec![
            sample(0, 82_002, moment, &[(3705, "sglang::scheduler_TP0", Some(81_992))]),
            sample(
                1,
                123_578,
                moment,
                &[(3584, "/usr/bin/python3", Some(41_570)), (3706, "sglang::scheduler_TP1", Some(81_992))],
            ),
        ],
    )
}

/// Eight ranks that agree, or all but the last of them.
fn eight(odd: bool) -> Analysis {
    let mut log = String::from("[2026-11-29 13:50:00] server_args=ServerArgs(...)\n");
    for rank in 0..8 {
        let (after, used) = if odd && rank == 7 { ("129.30", "8.98") } else { ("130.80", "7.48") };
        log.push_str(&format!("[2026-11-29 13:50:06 TP{rank}] Load weight begin. avail mem=138.28 GB\n"));
        log.push_str(&format!(
            "[2026-11-29 13:50:06 TP{rank}] Load weight end. avail mem={after} GB, mem usage={used} GB.\n"
        ));
    }
    analysed(launches("server.log", &log, Some(arguments(8, 0.8))), Vec::new())
}

fn plain(width: usize) -> TableOptions {
    TableOptions { width, colour: false, per_rank: false, quiet: false, ascii: false }
}

macro_rules! shot {
    ($name:expr, $text:expr) => {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!($name, $text)
        })
    };
}

#[test]
fn one_rank_reads_well_at_three_widths() {
    for width in [80, 100, 200] {
        shot!(format!("one_rank_{width}"), terminal(&one_rank(), &plain(width)));
    }
}

#[test]
fn unbalanced_ranks_are_spelt_out() {
    for width in [80, 100, 200] {
        shot!(format!("unbalanced_{width}"), terminal(&unbalanced(), &plain(width)));
    }
}

#[test]
fn ranks_that_agree_are_one_table_and_the_odd_one_follows() {
    shot!("eight_ranks_80", terminal(&eight(false), &plain(80)));
    shot!("eight_ranks_one_odd_80", terminal(&eight(true), &plain(80)));
    let unfolded = terminal(&eight(false), &TableOptions { per_rank: true, ..plain(80) });
    assert_eq!(unfolded.matches("✔ proved").count(), 8);
}

#[test]
fn a_failed_capture_says_so_first() {
    let log: String = ONE_RANK.lines().take(9).fold(String::new(), |log, line| log + line + "\n")
        + "[2026-11-29 13:51:44] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB.\n";
    let analysis = analysed(launches("-", &log, Some(arguments(1, 0.995))), Vec::new());
    shot!("failed_capture_80", terminal(&analysis, &plain(80)));
}

#[test]
fn several_launches_have_a_verdict_line_each() {
    let mut both = launches("server.log", ONE_RANK, Some(arguments(1, 0.85)));
    both.extend(launches("other.log", UNBALANCED, Some(arguments(2, 0.8))));
    let report = terminal(&analysed(both, Vec::new()), &TableOptions { quiet: true, ..plain(100) });
    shot!("two_launches_quiet_100", report);
}

#[test]
fn a_dump_alone_is_a_table_of_devices() {
    let mut analysis = one_rank();
    analysis.launches.clear();
    analysis.reconciliations.clear();
    analysis.observations[0].processes[0].used = None;
    shot!("dump_alone_80", terminal(&analysis, &plain(80)));
}

#[test]
fn sources_without_anything_say_what_they_are() {
    let mut analysis = analysed(Vec::new(), Vec::new());
    let source = |name: &str, instead: Option<&str>| SourceFacts {
        name: name.into(),
        kind: SourceKind::Unknown,
        bytes: 400,
        lines: 12,
        found_instead: instead.map(str::to_string),
        left_out: 0,
    };
    analysis.sources = vec![source("page.html", Some("an HTML page")), source("-", None)];
    analysis.unrecognised = vec![Unrecognised {
        place: Place::new(&"page.html".into(), 7, 1),
        text: "GPU memory: 12 GB of 80 GB".into(),
    }];
    shot!("nothing_80", terminal(&analysis, &plain(80)));
}

#[test]
fn colour_only_adds_escape_codes() {
    let coloured = terminal(&unbalanced(), &TableOptions { colour: true, ..plain(80) });
    let stripped = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap().replace_all(&coloured, "").into_owned();
    assert_ne!(coloured, stripped);
    let kept = |text: &str| text.lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>();
    assert_eq!(kept(&stripped), kept(&terminal(&unbalanced(), &plain(80))));
}

#[test]
fn ascii_is_ascii() {
    let report = terminal(&unbalanced(), &TableOptions { ascii: true, ..plain(80) });
    assert!(report.is_ascii());
    shot!("unbalanced_ascii_80", report);
}

/// An analysis with hostile words wherever the input has a say.
fn hostile(words: &str, size: i128) -> Analysis {
    let mut analysis = unbalanced();
    let words: Arc<str> = words.into();
    for source in &mut analysis.sources {
        source.name = Arc::clone(&words);
        source.kind = SourceKind::Unknown;
        source.found_instead = Some(words.to_string());
    }
    for sample in &mut analysis.observations {
        sample.name = Some(words.to_string());
        sample.place.source = Arc::clone(&words);
    }
    for reconciliation in &mut analysis.reconciliations {
        for owner in &mut reconciliation.owners {
            owner.process.name = words.to_string();
            owner.process.used = Some(crate::quantity::Quantity::exact_mib(size));
        }
    }
    for launch in &mut analysis.launches {
        launch.launch.source = Arc::clone(&words);
        launch.launch.stream = Arc::clone(&words);
        for rank in &mut launch.launch.ranks {
            rank.tag.text = words.to_string();
            for event in &mut rank.events {
                Arc::make_mut(&mut event.event).text = Arc::clone(&words);
            }
        }
        for posting in launch.ledgers.iter_mut().flat_map(|ledger| &mut ledger.postings) {
            posting.label = words.to_string();
            posting.stage = crate::stage::Stage::Other;
            posting.used = Some(crate::quantity::Quantity::exact_mib(size));
            for part in &mut posting.parts {
                part.label = words.to_string();
            }
        }
        for finding in &mut launch.findings {
            finding.title = words.to_string();
            finding.explanation = words.to_string();
            finding.arithmetic.push(words.to_string());
            finding.advice.push(words.to_string());
        }
    }
    analysis.unrecognised.push(Unrecognised { place: Place::new(&words, 1, 1), text: Arc::clone(&words) });
    analysis
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_line_is_wider_than_the_page_and_nothing_controls_the_terminal(
        words in prop_oneof![any::<String>(), "[\u{0}-\u{2ff}模型 ]{0,200}", "[a-z\u{1b}\u{202e}]{80,300}"],
        size in -(1i128 << 60)..(1i128 << 60),
        width in 60usize..220,
        per_rank: bool,
        quiet: bool,
        ascii: bool,
    ) {
        let report = terminal(&hostile(&words, size), &TableOptions { width, colour: false, per_rank, quiet, ascii });
        for line in report.lines() {
            prop_assert!(text::width(line) <= width, "{} > {width}: {line}", text::width(line));
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            prop_assert!(!line.contains('\u{202E}'), "{line:?}");
        }
    }
}
