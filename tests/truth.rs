//! Holds every figure of a ledger against what was really there: `truth.json` has the bytes behind each printed line.
//!
//! Truth points are matched to log lines by their text, in order, one process to one rank.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use serde::Deserialize;
use std::collections::HashMap;
use support::{Case, cases};
use vramledger::analysis::{Analysis, Settings, analyse};
use vramledger::event::{Event, Role};
use vramledger::input::Source;
use vramledger::launch::Rank;
use vramledger::ledger::{Ledger, Posting, PostingKind};
use vramledger::quantity::{MIB, Quantity};
use vramledger::read::read_source;
use vramledger::reconcile::Verdict;

/// More than this may not stay unexplained between a ledger and the driver.
const UNEXPLAINED: i128 = 64 * MIB;

#[derive(Debug, Deserialize)]
struct Truth {
    visible_gpu: Option<u32>,
    starts: Vec<Start>,
}

#[derive(Debug, Deserialize)]
struct Start {
    nvml_when_ready: Option<Vec<Device>>,
    processes: Vec<Process>,
}

#[derive(Debug, Deserialize)]
struct Device {
    gpu: u32,
    total: i128,
    reserved: i128,
    used: i128,
}

#[derive(Debug, Deserialize)]
struct Process {
    gpu: Option<u32>,
    rank: Option<String>,
    name: Option<String>,
    points: Vec<Point>,
}

#[derive(Debug, Deserialize)]
struct Point {
    line: Option<String>,
    free: i128,
}

/// What was checked.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Counted {
    ranks: usize,
    levels: usize,
    postings: usize,
    claims: usize,
    closings: usize,
}

#[test]
fn recordings_hold_against_the_truth() {
    let counted = check_all(is_recording);
    // A change of these numbers means that lines were lost or found: look before you change them.
    assert_eq!(counted, Counted { ranks: 36, levels: 364, postings: 134, claims: 106, closings: 27 });
}

#[test]
fn made_up_cases_hold_against_their_true_values() {
    let counted = check_all(|case| !is_recording(case));
    assert_eq!(counted, Counted { ranks: 68, levels: 644, postings: 241, claims: 174, closings: 0 });
}

/// Recordings of real servers, as their READMEs say; the other cases are made up.
fn is_recording(case: &Case) -> bool {
    let readme = std::fs::read_to_string(case.folder.join("README.md")).unwrap_or_default();
    readme.contains("A real start of SGLang")
}

fn check_all(wanted: impl Fn(&Case) -> bool) -> Counted {
    let mut counted = Counted::default();
    for case in cases().iter().filter(|case| wanted(case)) {
        let Ok(text) = std::fs::read_to_string(case.folder.join("truth.json")) else { continue };
        let truth: Truth =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        check_case(case, &truth, &mut counted);
    }
    counted
}

fn check_case(case: &Case, truth: &Truth, counted: &mut Counted) {
    let analysis = analysis_of(case);
    assert_eq!(analysis.launches.len(), truth.starts.len(), "{}: launches", case.name);
    for (index, (launch, start)) in analysis.launches.iter().zip(&truth.starts).enumerate() {
        let ranks = &launch.launch.ranks;
        assert_eq!(ranks.len(), start.processes.len(), "{}: ranks of launch {index}", case.name);
        for (position, (rank, ledger)) in ranks.iter().zip(&launch.ledgers).enumerate() {
            let process = process_of(rank, position, &start.processes);
            let at = format!("{} launch {index} rank {:?}", case.name, rank.tag.text);
            let truth = TrueFree::of(rank, process, &at);
            check_ledger(ledger, &truth, &at, counted);
            counted.ranks += 1;
        }
        check_closings(case, &analysis, index, truth, start, counted);
    }
}

/// The analysis of the files that the case names.
fn analysis_of(case: &Case) -> Analysis {
    let files = case
        .file
        .arguments
        .iter()
        .chain(&case.file.stdin)
        .filter(|argument| case.folder.join(argument).is_file());
    let readings = files.map(|file| read_source(&Source::Path(case.folder.join(file))).unwrap()).collect();
    analyse(readings, &Settings::default())
}

/// A process is a rank's by the tag in its name (`sglang::scheduler_TP1`), else by order: both are sorted.
fn process_of<'a>(rank: &Rank, position: usize, processes: &'a [Process]) -> &'a Process {
    let named = processes.iter().find(|process| {
        process.rank.as_deref() == Some(&rank.tag.text)
            || process.name.as_deref().is_some_and(|name| {
                !rank.tag.text.is_empty() && name.ends_with(&format!("_{}", rank.tag.text))
            })
    });
    named.unwrap_or(&processes[position])
}

/// True free bytes of one process, by physical line of its rank.
struct TrueFree {
    /// When the line was printed.
    at: HashMap<u64, i128>,
    /// At the point recorded before that line: what a claim without levels is measured from.
    before: HashMap<u64, i128>,
}

impl TrueFree {
    /// Matches the points of a process to the lines of its rank by their words, in order.
    fn of(rank: &Rank, process: &Process, at: &str) -> TrueFree {
        let mut events = rank.events.iter().map(|event| &event.event);
        let mut truth = TrueFree { at: HashMap::new(), before: HashMap::new() };
        let mut previous = None;
        for point in process.points.iter().filter(|point| point.line.as_deref().is_none_or(is_start_up)) {
            if let Some(line) = point.line.as_deref() {
                let event = events
                    .by_ref()
                    .find(|event| event.text.starts_with(line))
                    .unwrap_or_else(|| panic!("{at}: the reading lost {line:?}"));
                // A wrapped or torn line's figures stand in later physical lines.
                let figures = event.fields.iter().map(|field| field.place.line);
                for line in std::iter::once(event.place.line).chain(figures) {
                    truth.at.insert(line, point.free);
                    truth.before.extend(previous.map(|bytes| (line, bytes)));
                }
            }
            previous = Some(point.free);
        }
        truth
    }
}

/// Points are also recorded at traffic and at failures, which post nothing.
fn is_start_up(line: &str) -> bool {
    !["Prefill batch", "The memory capacity", "Scheduler hit", "Traceback"]
        .iter()
        .any(|other| line.starts_with(other))
}

fn check_ledger(ledger: &Ledger, truth: &TrueFree, at: &str, counted: &mut Counted) {
    let levels = [
        (ledger.opening, &ledger.opening_place),
        (ledger.closing, &ledger.closing_place),
        (ledger.headroom, &ledger.headroom_place),
    ];
    for (level, place) in levels {
        if let (Some(level), Some(place)) = (level, place) {
            holds(level, truth.at.get(&place.line).copied(), &format!("{at} line {}", place.line));
            counted.levels += 1;
        }
    }
    assert_ne!(ledger.balance.holds, Some(false), "{at}: {:?}", ledger.balance);
    if ledger.opening.is_some() {
        assert_eq!(ledger.balance.holds, Some(true), "{at}");
    }
    let mut previous_line = None;
    for posting in &ledger.postings {
        check_posting(posting, truth, &mut previous_line, at, counted);
    }
}

/// Before, after, used and claimed of one posting. `previous_line` is where the last level was printed.
fn check_posting(
    posting: &Posting,
    truth: &TrueFree,
    previous_line: &mut Option<u64>,
    at: &str,
    counted: &mut Counted,
) {
    let at = format!("{at} {:?} {:?}", posting.kind, posting.label);
    // Pool lines and a second handler's copies are evidence too, but no recorded points.
    let lines = posting.places.iter().map(|place| place.line).filter(|line| truth.at.contains_key(line));
    let lines: Vec<u64> = lines.collect();
    if posting.before.is_none() && posting.used.is_none() {
        return;
    }
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { panic!("{at}: no evidence") };
    let begin = match (posting.kind, posting.before) {
        (PostingKind::Stage, Some(_)) if posting.state == vramledger::ledger::PostingState::Inferred => {
            *previous_line
        }
        (_, Some(_)) => Some(*first),
        (_, None) => None,
    };
    let before = begin.and_then(|line| truth.at.get(&line).copied());
    let after = posting.after.and_then(|_| truth.at.get(last).copied());
    if let Some(level) = posting.before {
        holds(level, before, &format!("{at} before"));
        counted.levels += 1;
    }
    if let Some(level) = posting.after {
        holds(level, after, &format!("{at} after"));
        counted.levels += 1;
        *previous_line = Some(*last);
    }
    if let (Some(used), Some(before), Some(after)) = (posting.used, before, after) {
        holds(used, Some(before - after), &format!("{at} used"));
        counted.postings += 1;
        if let Some(claimed) = posting.claimed {
            holds(claimed, Some(before - after), &format!("{at} claimed"));
            counted.claims += 1;
        }
    } else if let Some(claimed) = posting.claimed {
        // A claim without levels: from the point before its line to the line.
        let moved = truth.before.get(last).zip(truth.at.get(last)).map(|(before, after)| before - after);
        holds(claimed, moved, &format!("{at} claimed"));
        counted.claims += 1;
    }
}

fn holds(quantity: Quantity, bytes: Option<i128>, at: &str) {
    let bytes = bytes.unwrap_or_else(|| panic!("{at}: no true value is known for {quantity:?}"));
    assert!(quantity.contains(bytes), "{at}: {quantity:?} does not hold the true {bytes}");
}

/// Where NVML was read when the server was ready: the bridge closes, and the driver's own bytes agree with the closing.
fn check_closings(
    case: &Case,
    analysis: &Analysis,
    launch: usize,
    truth: &Truth,
    start: &Start,
    counted: &mut Counted,
) {
    let Some(devices) = &start.nvml_when_ready else { return };
    let analysed = &analysis.launches[launch];
    for (position, (rank, ledger)) in analysed.launch.ranks.iter().zip(&analysed.ledgers).enumerate() {
        let at = format!("{} rank {:?}", case.name, rank.tag.text);
        let process = process_of(rank, position, &start.processes);
        let gpu = truth.visible_gpu.or(process.gpu).unwrap();
        let device = devices.iter().find(|device| device.gpu == gpu).unwrap();
        let free_by_log = ledger.final_free().unwrap();
        let used_by_log = Quantity::exact(device.total - device.reserved) - free_by_log;
        let apart = Quantity::exact(device.used) - used_by_log;
        assert!(apart.low() <= UNEXPLAINED && apart.high() >= -UNEXPLAINED, "{at}: {apart:?}");
        counted.closings += 1;
        // Of several starts in one log, a dump speaks of the last.
        if launch + 1 == analysis.launches.len() && !analysis.observations.is_empty() {
            assert_eq!(analysed.devices[position].device, Some(gpu), "{at}: the wrong device");
            let bridge =
                analysis.reconciliation(launch, position).unwrap_or_else(|| panic!("{at}: no bridge"));
            assert_eq!(bridge.verdict, Verdict::Holds, "{at}");
            assert!(bridge.unexplained.magnitude().low() < UNEXPLAINED, "{at}: {:?}", bridge.unexplained);
        }
    }
}

/// Every start-up line of memory in a recording reaches a ledger: none is lost between reading and books.
#[test]
fn no_memory_line_of_a_recording_is_lost() {
    let mut lines = 0;
    for case in cases().iter().filter(|case| is_recording(case)) {
        let analysis = analysis_of(case);
        assert!(analysis.unrecognised.is_empty(), "{}: {:?}", case.name, analysis.unrecognised);
        let events: Vec<&Event> = analysis
            .launches
            .iter()
            .flat_map(|launch| &launch.launch.ranks)
            .flat_map(|rank| rank.events.iter().map(|event| event.event.as_ref()))
            .filter(|event| !matches!(event.role, Role::Progress(_)))
            .collect();
        let log = std::fs::read_to_string(case.folder.join("server.log")).unwrap();
        for (index, line) in log.lines().enumerate() {
            let last = line.rsplit('\r').next().unwrap_or_default();
            let is_level = last.starts_with('[')
                && (last.contains(" avail mem=")
                    || last.contains("mem usage=")
                    || last.contains("available_gpu_mem="));
            if !is_level {
                continue;
            }
            lines += 1;
            let number = index as u64 + 1;
            assert!(
                events.iter().any(|event| event.place.line == number),
                "{} line {number}: {last}",
                case.name
            );
        }
    }
    assert_eq!(lines, 237, "lines of memory in all recordings");
}
