//! From raw segments to logical lines: envelopes opened, parts joined, payloads cut apart.
//!
//! Separate because it holds what must be remembered from one segment to the next: which names are envelopes, which
//! streams there are, and which letters still wait for their end.

use super::envelope::{Letter, Names, open, open_head};
use super::line::LogicalLine;
use super::needles::Needles;
use super::scan::{LONGEST_SEGMENT, RawLine};
use super::segment::cut_apart;
use super::source::{InputError, ScanSummary, Source, scan};
use crate::place::Place;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Reads the logical lines around the needles' hits, in order, until `sink` breaks.
///
/// # Errors
/// Where the source cannot be opened or read, is empty, compressed or binary.
pub fn read_lines(
    source: &Source,
    needles: &Needles,
    mut sink: impl FnMut(LogicalLine) -> ControlFlow<()>,
) -> Result<ScanSummary, InputError> {
    let mut reader = LineReader::new(source.name());
    let mut broken = false;
    let summary = scan(source, needles, &mut |raw| {
        let flow = reader.read(raw, &mut sink);
        broken = flow.is_break();
        flow
    })?;
    if !broken {
        // The last parts: a sink that breaks here has nothing more to miss.
        let _ = reader.finish(&mut sink);
    }
    Ok(summary)
}

/// A part may wait for its end this many physical lines: then something between them is missing.
const PATIENCE: u64 = 64;

/// How many letters may wait at once, one a stream.
const MOST_WAITING: usize = 64;

/// How many streams share their name's memory.
const MOST_STREAMS: usize = 4096;

/// A letter with its place.
struct Placed {
    letter: Letter,
    line: u64,
    hit: bool,
    cut: bool,
}

struct LineReader {
    source: Arc<str>,
    names: Names,
    streams: HashMap<String, Arc<str>>,
    waiting: Vec<Placed>,
    /// The number of the physical line of which segments come, and what its envelopes say.
    head: Option<(u64, Letter)>,
}

impl LineReader {
    fn new(source: Arc<str>) -> Self {
        LineReader {
            source,
            names: Names::default(),
            streams: HashMap::new(),
            waiting: Vec::new(),
            head: None,
        }
    }

    fn read(
        &mut self,
        raw: RawLine<'_>,
        sink: &mut impl FnMut(LogicalLine) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while self
            .waiting
            .first()
            .is_some_and(|first| first.line + PATIENCE < raw.line || self.waiting.len() >= MOST_WAITING)
        {
            let mut torn = self.waiting.remove(0);
            torn.cut = true;
            self.hand_on(torn, sink)?;
        }
        for mut letter in open(raw.bytes, raw.column, &mut self.names) {
            if raw.column > 1 {
                if letter.text.as_str().trim().is_empty() {
                    continue; // What wiped a bar out.
                }
                self.inherit(&mut letter, &raw);
            }
            let placed = Placed { letter, line: raw.line, hit: raw.hit, cut: raw.cut };
            if let Some(whole) = self.joined(placed) {
                self.hand_on(whole, sink)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Gives a segment behind a carriage return the envelopes of its line, unless it has its own.
    fn inherit(&mut self, letter: &mut Letter, raw: &RawLine<'_>) {
        if self.head.as_ref().is_none_or(|(line, _)| *line != raw.line) {
            self.head = Some((raw.line, open_head(raw.line_head, &mut self.names)));
        }
        if let (false, Some((_, head))) = (letter.enveloped, &self.head) {
            (letter.stream, letter.time) = (head.stream.clone(), head.time);
        }
    }

    /// The letter joined to the part that waits for it; nothing where it is a part itself.
    fn joined(&mut self, placed: Placed) -> Option<Placed> {
        let same = |Placed { letter, .. }: &Placed| {
            let other = &placed.letter;
            other.enveloped && other.stream == letter.stream && other.by_stderr == letter.by_stderr
        };
        let mut whole = match self.waiting.iter().position(same) {
            None => placed,
            Some(at) => {
                let mut whole = self.waiting.remove(at);
                whole.letter.text.append(placed.letter.text.as_str());
                whole.letter.goes_on = placed.letter.goes_on;
                whole.hit |= placed.hit;
                whole.cut |= placed.cut;
                whole
            }
        };
        if !whole.letter.goes_on {
            return Some(whole);
        }
        if whole.letter.text.as_str().len() as u64 > LONGEST_SEGMENT {
            whole.cut = true;
            return Some(whole);
        }
        self.waiting.push(whole);
        None
    }

    fn finish(&mut self, sink: &mut impl FnMut(LogicalLine) -> ControlFlow<()>) -> ControlFlow<()> {
        for mut torn in std::mem::take(&mut self.waiting) {
            torn.cut = true;
            self.hand_on(torn, sink)?;
        }
        ControlFlow::Continue(())
    }

    fn hand_on(
        &mut self,
        placed: Placed,
        sink: &mut impl FnMut(LogicalLine) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Placed { letter, line, hit, cut } = placed;
        let stream = self.stream(letter.stream);
        let texts = cut_apart(letter.text);
        let last = texts.len();
        for (index, text) in texts.into_iter().enumerate() {
            sink(LogicalLine {
                place: Place::new(&self.source, line, text.column(0)),
                text: text.into_string().replace(['\r', '\n'], ""),
                stream: Arc::clone(&stream),
                envelope_time: letter.time,
                hit,
                cut: cut && index + 1 == last,
            })?;
        }
        ControlFlow::Continue(())
    }

    /// The stream's name, shared by all its lines.
    fn stream(&mut self, name: String) -> Arc<str> {
        if let Some(known) = self.streams.get(&name) {
            return Arc::clone(known);
        }
        let stream: Arc<str> = name.as_str().into();
        if self.streams.len() < MOST_STREAMS {
            self.streams.insert(name, Arc::clone(&stream));
        }
        stream
    }
}

#[cfg(test)]
mod tests {
    use super::super::needles::NeedleClass;
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Vec<LogicalLine> {
        let needles = Needles::new(&[
            NeedleClass {
                literals: &["avail mem", "avail_mem", "server_args", "KV Cache"],
                before: 3,
                after: 4,
            },
            NeedleClass { literals: &["NVIDIA-SMI"], before: 6, after: 200 },
        ])
        .unwrap();
        let mut lines = Vec::new();
        read_lines(&Source::memory("log", bytes), &needles, |line| {
            lines.push(line);
            ControlFlow::Continue(())
        })
        .unwrap();
        lines
    }

    fn shown(text: &str) -> Vec<String> {
        let show = |line: LogicalLine| {
            let (hit, cut) = (if line.hit { "" } else { " context" }, if line.cut { " cut" } else { "" });
            format!("{}:{} <{}> {}{hit}{cut}", line.place.line, line.place.column, line.stream, line.text)
        };
        read(text.as_bytes()).into_iter().map(show).collect()
    }

    #[test]
    fn bars_between_log_lines_keep_their_columns_and_their_stream() {
        let text = "s-1  | noise\ns-1  |   0%|   | 0/2 [00:00<?, ?it/s]\rCapturing batches (bs=2 avail_mem=1.50 GB):   0%|   | 0/2 [00:00<?, ?it/s][2026-11-29 13:49:13 TP1] Load weight begin. avail mem=1.00 GB\r\n";
        let bar = text.find("Capturing").unwrap() - 12;
        let glued = text.find("[2026").unwrap() - 12;
        assert_eq!(
            shown(text),
            [
                "1:8 <s-1> noise context".to_owned(),
                "2:8 <s-1>   0%|   | 0/2 [00:00<?, ?it/s] context".to_owned(),
                format!(
                    "2:{bar} <s-1> Capturing batches (bs=2 avail_mem=1.50 GB):   0%|   | 0/2 [00:00<?, ?it/s]"
                ),
                format!("2:{glued} <s-1> [2026-11-29 13:49:13 TP1] Load weight begin. avail mem=1.00 GB"),
            ]
        );
    }

    #[test]
    fn parts_of_a_container_runtime_are_joined_until_the_last() {
        let text = "2026-11-29T13:51:19.1Z stderr P server_args=Server\n\
                    2026-11-29T13:51:19.15Z stdout F other\n\
                    2026-11-29T13:51:19.2Z stderr P Args(tp_size=8,\n\
                    2026-11-29T13:51:19.3Z stderr F  dp_size=1)\n\
                    2026-11-29T13:51:19.4Z stderr F next\n";
        assert_eq!(
            shown(text),
            [
                "2:34 <> other context",
                "1:33 <> server_args=ServerArgs(tp_size=8, dp_size=1)",
                "5:33 <> next context"
            ]
        );
        let torn = "2026-11-29T13:51:19.1Z stderr P server_args=Server\n";
        assert_eq!(shown(torn), ["1:33 <> server_args=Server cut"]);
    }

    #[test]
    fn docker_records_cut_at_16_kib_are_joined() {
        let long = format!("server_args=ServerArgs({}", "a=1, ".repeat(3276));
        let text = format!(
            "{{\"log\":\"{long}\",\"stream\":\"stderr\"}}\n{{\"log\":\"b=2)\\n\",\"stream\":\"stderr\"}}\n"
        );
        let lines = read(text.as_bytes());
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].text, format!("{long}b=2)"));
    }

    #[test]
    fn what_is_empty_between_carriage_returns_is_no_line() {
        let text = "\n\r  0%|   | 0/2\r\r\u{1b}[K\rCapturing batches (bs=2 avail_mem=1.50 GB):\r\r\n";
        let texts: Vec<String> = read(text.as_bytes()).into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["  0%|   | 0/2", "Capturing batches (bs=2 avail_mem=1.50 GB):"]);
    }

    #[test]
    fn lines_of_one_stream_share_its_name() {
        let lines = read(b"[pod/a/b] KV Cache 1\n[pod/c/d] KV Cache 2\n[pod/a/b] KV Cache 3\n");
        assert!(Arc::ptr_eq(&lines[0].stream, &lines[2].stream));
        assert_eq!(&*lines[1].stream, "pod/c/d");
    }

    #[test]
    fn a_paste_with_a_dump_in_a_fence_gives_its_rows() {
        let text = "Hello, it fails:\n\n```text\n| NVIDIA-SMI 570.86 |\n|   0  NVIDIA H200 |\n```\nThanks";
        let texts: Vec<String> = read(text.as_bytes()).into_iter().map(|line| line.text).collect();
        assert_eq!(
            texts,
            ["Hello, it fails:", "", "| NVIDIA-SMI 570.86 |", "|   0  NVIDIA H200 |", "Thanks"]
        );
    }

    #[test]
    fn utf16_is_read_like_utf8() {
        let text = "\u{feff}[2026-11-29 13:49:13 TP1] avail mem=1.00 GB\r\n 50%|█ | 1/2\r\n";
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let texts: Vec<String> = read(&bytes).into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["[2026-11-29 13:49:13 TP1] avail mem=1.00 GB", " 50%|█ | 1/2"]);
    }

    #[test]
    fn nul_bytes_and_invalid_utf8_are_tolerated() {
        let texts: Vec<String> =
            read(b"\0\0\0avail mem=1.00 GB caf\xe9\n").into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["avail mem=1.00 GB caf\u{fffd}"]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_give_clean_lines(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
            let mut bytes = bytes;
            bytes.extend_from_slice(b" the rest is text, so that it is no binary file".repeat(20).as_slice());
            bytes.extend_from_slice(b"\navail mem");
            prop_assume!(!bytes.starts_with(b"\x1f\x8b") && !bytes.starts_with(b"\xff\xfe") && !bytes.starts_with(b"\xfe\xff"));
            let needles = Needles::new(&[NeedleClass { literals: &["avail mem"], before: 9, after: 1 }]).unwrap();
            let mut clean = true;
            let outcome = read_lines(&Source::memory("log", bytes), &needles, |line| {
                clean &= !line.text.contains(|c: char| c.is_control() && c != '\t');
                ControlFlow::Continue(())
            });
            prop_assert!(clean && (outcome.is_ok() || matches!(outcome, Err(InputError::Binary(_)))));
        }
    }
}
