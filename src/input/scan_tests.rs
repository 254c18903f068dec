//! The scan against a plain reading of the same rules, however the source is read.

use super::needles::{Context, NeedleClass, Needles};
use super::scan::{Limits, RawLine};
use super::source::{ReadPlan, ScanSummary, Source, scan_as_planned};
use super::survey::Plan;
use proptest::prelude::*;
use std::io::Write;
use std::ops::ControlFlow;

/// A line as handed on, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    text: String,
    line: u64,
    column: u64,
    head: String,
    hit: bool,
    cut: bool,
}

fn owned(line: RawLine<'_>) -> Line {
    Line {
        text: String::from_utf8_lossy(line.bytes).into_owned(),
        line: line.line,
        column: line.column,
        head: String::from_utf8_lossy(line.line_head).into_owned(),
        hit: line.hit,
        cut: line.cut,
    }
}

fn needles() -> Needles {
    Needles::new(&[
        NeedleClass { literals: &["mem", "KV Cache"], before: 2, after: 1 },
        NeedleClass { literals: &["SMI"], before: 1, after: 5 },
    ])
    .unwrap()
}

fn small_plan(block: usize, threads: usize, large: u64, limits: Limits) -> ReadPlan {
    let survey = Plan { threads, block, blocks_per_read: 2, reads_per_span: 2, limits };
    ReadPlan { stream_block: block, large, survey }
}

fn collect(source: &Source, plan: ReadPlan) -> (Vec<Line>, ScanSummary) {
    let mut lines = Vec::new();
    let summary = scan_as_planned(source, &needles(), plan, &mut |line| {
        lines.push(owned(line));
        ControlFlow::Continue(())
    });
    (lines, summary.unwrap())
}

/// The segments of a text: from, to, where the next begins.
fn segments(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => {}
            b'\n' => {
                let to = if at > from && bytes[at - 1] == b'\r' { at - 1 } else { at };
                found.push((from, to));
                from = at + 1;
            }
            b'\r' => {
                found.push((from, at));
                from = at + 1;
            }
            _ => {}
        }
    }
    if from < bytes.len() {
        found.push((from, bytes.len()));
    }
    found
}

/// The rules without buffers.
fn plainly(text: &str, limits: Limits) -> Vec<Line> {
    let (needles, limit) = (needles(), limits.segment as usize);
    let segments = segments(text);
    let mut lines = Vec::new();
    let mut next = 0;
    let mut due = 0_usize;
    for (index, (from, to)) in segments.iter().copied().enumerate() {
        let kept = &text.as_bytes()[from..to.min(from + limit)];
        let hit = needles.classify(kept);
        if hit.is_none() && due == 0 {
            // A needle behind the cut is not kept, but what lies before its line is no longer context.
            if needles.classify(&text.as_bytes()[from..to]).is_some() {
                next = index + 1;
            }
            continue;
        }
        let mut push = |from: usize, to: usize, hit: bool| {
            if from == to && text[to..].starts_with('\r') && !text[to..].starts_with("\r\n") {
                return;
            }
            let start = text[..from].rfind('\n').map_or(0, |at| at + 1);
            lines.push(Line {
                text: text[from..to.min(from + limit)].to_owned(),
                line: text[..from].matches('\n').count() as u64 + 1,
                column: (from - start) as u64 + 1,
                head: text[start..from.min(start + 512)].to_owned(),
                hit,
                cut: to > from + limit,
            });
        };
        let Context { before, after } = hit.unwrap_or_default();
        if due == 0 {
            let lowest = from.saturating_sub(limits.look_back as usize);
            let first = (next..index).rev().take(before).take_while(|at| {
                let start = segments[*at].0;
                start > lowest || (start == lowest && (start == 0 || *at == next))
            });
            for at in first.collect::<Vec<_>>().into_iter().rev() {
                push(segments[at].0, segments[at].1, false);
            }
        }
        push(from, to, hit.is_some());
        due = due.saturating_sub(1).max(after);
        next = index + 1;
    }
    lines
}

const TINY: Limits = Limits { segment: 24, look_back: 16 };
const ROOMY: Limits = Limits { segment: 400, look_back: 100 };

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("\n".to_owned()),
        2 => Just("\r".to_owned()),
        1 => Just("\r\n".to_owned()),
        2 => Just("mem".to_owned()),
        1 => Just("KV Cache".to_owned()),
        1 => Just("SMI".to_owned()),
        4 => "[a-mK ]{0,12}",
        1 => "[a-e]{0,60}",
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_way_of_reading_gives_the_same_lines(text in texts(), block in 1usize..40, threads in 1usize..4, tiny: bool) {
        prop_assume!(!text.is_empty());
        let limits = if tiny { TINY } else { ROOMY };
        let expected = plainly(&text, limits);
        let memory = Source::memory("m", text.as_bytes());
        let (whole, summary) = collect(&memory, small_plan(1 << 16, 1, u64::MAX, limits));
        prop_assert_eq!(&whole, &expected);
        prop_assert_eq!(summary.lines, text.split_inclusive('\n').count() as u64);
        prop_assert_eq!(summary.bytes, text.len() as u64);
        let (streamed, again) = collect(&memory, small_plan(block, 1, u64::MAX, limits));
        prop_assert_eq!(&streamed, &expected);
        prop_assert_eq!(&again, &summary);

        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let path = Source::Path(file.path().to_owned());
        let (surveyed, again) = collect(&path, small_plan(block, threads, 0, limits));
        prop_assert_eq!(&surveyed, &expected);
        prop_assert_eq!(&again, &summary);
    }

    #[test]
    fn arbitrary_bytes_are_scanned_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let source = Source::memory("m", bytes);
        let _ = scan_as_planned(&source, &needles(), small_plan(8, 1, u64::MAX, TINY), &mut |_| ControlFlow::Continue(()));
    }
}

#[test]
fn context_carries_line_numbers_and_columns() {
    let text = "one\ntwo\nthree\nmem\rmem bar\rlast\nafter\nfar\n";
    let (lines, _) = collect(&Source::memory("m", text.as_bytes()), ReadPlan::default());
    let shown: Vec<_> = lines
        .iter()
        .map(|line| format!("{}:{} {} {}", line.line, line.column, line.text, line.hit))
        .collect();
    assert_eq!(
        shown,
        ["2:1 two false", "3:1 three false", "4:1 mem true", "4:5 mem bar true", "4:13 last false"]
    );
    assert_eq!(lines[3].head, "mem\r");
}

#[test]
fn the_sink_can_stop_a_large_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all("mem\n".repeat(50_000).as_bytes()).unwrap();
    let mut count = 0;
    let source = Source::Path(file.path().to_owned());
    let plan = small_plan(64, 3, 0, Limits::default());
    scan_as_planned(&source, &needles(), plan, &mut |_| {
        count += 1;
        if count < 10 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .unwrap();
    assert_eq!(count, 10);
}

#[test]
fn a_line_without_an_end_is_cut_and_never_held_whole() {
    // 64 MiB of one line, made as it is read: the needle at its front is found, the one behind the cut is not.
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = buffer.len().min(usize::try_from(self.0).unwrap()).min(4096);
            buffer[..length].fill(b'x');
            if self.0 == 64 << 20 || self.0 <= 4096 {
                buffer[..3].copy_from_slice(b"mem");
            }
            self.0 -= length as u64;
            Ok(length)
        }
    }
    let needles = needles();
    let mut lines = Vec::new();
    let mut sink = |line: RawLine<'_>| {
        lines.push((line.bytes.len() as u64, line.cut));
        ControlFlow::Continue(())
    };
    let feed = super::window::Feed::Stream(Box::new(Endless(64 << 20)));
    let window = super::window::Window::new(feed, 1 << 16);
    let mut scanner = super::scan::Scanner::new(&needles, Limits::default(), window, &mut sink);
    let end = scanner.run_to_end().unwrap();
    let held = scanner.held();
    assert_eq!(end.offset, 64 << 20);
    assert!(held < 3 << 19, "{held} bytes held");
    assert_eq!(lines, [(super::scan::LONGEST_SEGMENT, true)]);
}
