//! The report as a whole: what a reader sees, at several widths, and what no input may do to it.

use super::testing::{ONE_RANK, UNBALANCED, analysed, arguments, launches, sample};
use super::{TableOptions, csv, html, markdown, svg, terminal};
use crate::analysis::{Analysis, SourceFacts, SourceKind, Unrecognised};
use crate::place::Place;
use crate::text;
use crate::version::{Version, VersionRange};
use html5ever::tendril::TendrilSink;
use proptest::prelude::*;
use std::sync::Arc;

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
fn many_odd_ranks_are_a_row_each() {
    let mut log = String::new();
    for rank in 0..8 {
        let after = 130 - rank;
        log.push_str(&format!("[2026-11-29 13:50:06 TP{rank}] Load weight begin. avail mem=138.00 GB\n"));
        log.push_str(&format!("[2026-11-29 13:50:06 TP{rank}] Load weight end. avail mem={after}.00 GB\n"));
    }
    let report = terminal(&analysed(launches("server.log", &log, None), Vec::new()), &plain(80));
    assert_eq!(report.matches("✔ proved").count(), 4, "{report}");
    let further = report.split("further ranks").nth(1).unwrap();
    assert!(further.contains("TP7") && further.contains("15,360") && further.contains("125,952"), "{report}");
}

#[test]
fn a_bridge_that_fails_says_by_how_much() {
    let mut one = launches("server.log", ONE_RANK, Some(arguments(1, 0.85)));
    one[0].retractions = 2;
    let late = sample(0, 123_384 + 5_000, "Sun Nov 29 13:53:06 2026", &[]);
    let report = terminal(&analysed(one, vec![late]), &plain(100));
    assert!(report.contains("MiB that the log does not account for"), "{report}");
    assert!(report.contains("taken 61 s after ready · device by the arguments"), "{report}");
    assert!(report.contains("2 retractions"), "{report}");
}

#[test]
fn a_device_that_could_be_two_is_said() {
    let log: String = ONE_RANK.lines().skip(1).fold(String::new(), |log, line| log + line + "\n");
    let moment = "Sun Nov 29 13:52:06 2026";
    let twins = vec![sample(0, 123_384, moment, &[]), sample(1, 123_384, moment, &[])];
    let report = terminal(&analysed(launches("server.log", &log, None), twins), &plain(80));
    assert!(report.contains("device unclear: GPU 0, 1 fit equally well"), "{report}");
    assert!(report.contains("no sample of a device could be matched with this launch"), "{report}");
}

#[test]
fn a_draft_model_gives_memory_back() {
    let log = "\
[2026-11-29 13:50:06] Load weight begin. avail mem=138.28 GB
[2026-11-29 13:50:06] Load weight end. avail mem=123.30 GB, mem usage=14.98 GB.
[2026-11-29 13:50:06] Memory pool end. avail mem=35.00 GB
[2026-11-29 13:50:07] Load weight begin. avail mem=35.00 GB
[2026-11-29 13:50:07] Load weight end. avail mem=33.00 GB, mem usage=2.00 GB.
[2026-11-29 13:50:08] Capture cuda graph begin. avail mem=34.96 GB
[2026-11-29 13:50:09] Capture cuda graph end. mem usage=0.10 GB. avail mem=34.86 GB.
";
    shot!("draft_80", terminal(&analysed(launches("server.log", log, None), Vec::new()), &plain(80)));
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

    #[test]
    fn words_of_the_input_never_break_a_page_a_picture_or_a_table(
        words in prop_oneof![any::<String>(), "[<>&\"'`|#@=\\-\u{1b}\u{202e}\u{fffe}a-z ]{0,120}", "(</?(script|pre|style|svg|td)>){1,4}"],
        size in -(1i128 << 60)..(1i128 << 60),
        most in 0usize..20_000,
    ) {
        let analysis = hostile(&words, size);
        let page = html(&analysis);
        let dom = html5ever::parse_document(markup5ever_rcdom::RcDom::default(), Default::default()).one(page.as_str());
        prop_assert!(dom.errors.borrow().is_empty(), "{:?}", dom.errors.borrow());
        let obeyed = page.contains("<script") || page.contains('\u{202e}');
        prop_assert!(!obeyed, "{}", page);
        if let Some(picture) = svg(&analysis) {
            let mut reader = quick_xml::Reader::from_str(&picture);
            while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
        }
        let ticket = markdown(&analysis, Some(most));
        prop_assert!(ticket.chars().count() <= most);
        prop_assert!(!ticket.chars().any(|character| character.is_control() && character != '\n'));
        let rows = csv(&analysis).unwrap();
        let mut reader = ::csv::Reader::from_reader(rows.as_bytes());
        prop_assert!(reader.records().all(|row| row.is_ok_and(|row| row.len() == 26)));
    }
}
