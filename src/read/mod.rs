//! From sources to launches and observations: where input and grammars meet.
//!
//! Separate from the analysis, which starts from what is read here and does not know files.

mod instead;

use crate::analysis::{SourceFacts, SourceKind, SourceReading, Unrecognised};
use crate::event::{Event, Role};
use crate::grammar::nvidia_smi::{self, DumpReader};
use crate::grammar::sglang::{self, Assembler};
use crate::input::{InputError, LogicalLine, NeedleClass, Needles, Source, read_lines};
use crate::launch::LaunchBuilder;
use crate::observe::Observation;
use crate::probe::{SAMPLE_SCHEMA, read_sample};
use crate::server_args;
use instead::found_instead;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

/// Context around a line of SGLang: what a wrapped or torn line needs.
const AROUND_LOG_LINES: (usize, usize) = (3, 4);
/// Context around the ready line: whether requests follow shows soon.
const AFTER_READY: usize = 60;
/// Context around a dump's line: rows and keys without any literal belong to it.
const AROUND_DUMP_LINES: (usize, usize) = (6, 200);
/// How many unrecognised lines of a source are kept; more tell nothing new.
const MOST_UNRECOGNISED: usize = 1000;
/// How many observations of a source are kept: a day of `nvidia-smi -l 10` on one device.
const MOST_OBSERVATIONS: usize = 10_000;

/// Words of lines that only a serving server prints.
const SERVING: [&str; 4] = ["Decode batch", "Prefill batch", "\"POST /", "\"GET /v1/"];
/// The ready line's words, for the wider context behind it.
const READY: [&str; 1] = ["fired up and ready"];
/// The name of the format that `probe --record` writes.
const SAMPLES: [&str; 1] = [SAMPLE_SCHEMA];

/// Context behind a dump's line where the whole file is a dump: a loop of `nounits` rows has a literal in its header only.
const ALL_THAT_FOLLOWS: usize = 1 << 30;
/// How much of a file's beginning tells whether it is a dump.
const HEAD: u64 = 16 << 10;

/// The search for everything that either grammar reads, made of the grammars' own tables.
static NEEDLES: LazyLock<Result<Needles, regex::Error>> = LazyLock::new(|| compiled(AROUND_DUMP_LINES.1));

/// The same for a file that is a dump from its beginning.
static DUMP_NEEDLES: LazyLock<Result<Needles, regex::Error>> = LazyLock::new(|| compiled(ALL_THAT_FOLLOWS));

fn compiled(after_dump_lines: usize) -> Result<Needles, regex::Error> {
    let log = sglang::needles();
    let dump: Vec<&str> = nvidia_smi::hints().collect();
    Needles::new(&[
        NeedleClass { literals: &log, before: AROUND_LOG_LINES.0, after: AROUND_LOG_LINES.1 },
        NeedleClass { literals: &READY, before: 0, after: AFTER_READY },
        NeedleClass { literals: &SAMPLES, before: 0, after: 0 },
        NeedleClass { literals: &dump, before: AROUND_DUMP_LINES.0, after: after_dump_lines },
    ])
}

/// Whether a file, or bytes at hand, begin as a dump does. Of a stream that can't be told before it is read.
fn begins_as_dump(source: &Source) -> bool {
    let mut head = Vec::new();
    match source {
        // Only regular files: opening a pipe to look would take its bytes.
        Source::Path(path) if std::fs::metadata(path).is_ok_and(|facts| facts.is_file()) => {
            let read = std::fs::File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
            if read.is_err() {
                return false;
            }
        }
        Source::Memory { bytes, .. } => head.extend(bytes.iter().take(HEAD as usize)),
        Source::Path(_) | Source::Stdin => return false,
    }
    nvidia_smi::looks_like_dump(&String::from_utf8_lossy(&head))
}

/// The literals that the scanner searches for: with them `rg -c -F -f` does the search alone.
pub fn needles() -> Vec<&'static str> {
    sglang::needles().into_iter().chain(READY).chain(SAMPLES).chain(nvidia_smi::hints()).collect()
}

/// Reads one source: its launches, its observations, and what neither grammar understood.
///
/// # Errors
/// Where the source cannot be opened or read, is empty, compressed or binary.
pub fn read_source(source: &Source) -> Result<SourceReading, InputError> {
    let compiled = if begins_as_dump(source) { &DUMP_NEEDLES } else { &NEEDLES };
    let needles = match &**compiled {
        Ok(needles) => needles,
        // The literals are constants of this program: a test compiles them.
        Err(error) => {
            return Err(InputError::Io { name: source.name(), error: std::io::Error::other(error.clone()) });
        }
    };
    let mut reader = Reader::new(source.name());
    let summary = read_lines(source, needles, |line| {
        reader.take(&line);
        ControlFlow::Continue(())
    })?;
    Ok(reader.finish(summary.bytes, summary.lines, &summary.head))
}

/// Sorts a source's lines between the two grammars.
struct Reader {
    name: Arc<str>,
    assembler: Assembler,
    launches: LaunchBuilder,
    dumps: DumpReader,
    dump_lines: u64,
    samples: Vec<Observation>,
    events: u64,
    unrecognised: Vec<Unrecognised>,
    ready: bool,
    /// The words of the last line of traffic: its like are counted without reading them again.
    traffic: Option<Arc<str>>,
}

impl Reader {
    fn new(name: Arc<str>) -> Self {
        Reader {
            launches: LaunchBuilder::new(Arc::clone(&name)),
            name,
            assembler: Assembler::new(),
            dumps: DumpReader::default(),
            dump_lines: 0,
            samples: Vec::new(),
            events: 0,
            unrecognised: Vec::new(),
            ready: false,
            traffic: None,
        }
    }

    /// A line that a dump's form takes is no log line; every other is offered to SGLang's grammar.
    fn take(&mut self, line: &LogicalLine) {
        if let Some(sample) = read_sample(line) {
            if self.samples.len() < MOST_OBSERVATIONS {
                self.samples.push(sample);
            }
            return;
        }
        if self.dumps.take(line) {
            self.dump_lines += 1;
            return;
        }
        if self.traffic.as_ref().is_some_and(|words| line.text.contains(&**words)) {
            self.launches.traffic(&line.stream, line.place.line);
            return;
        }
        if self.ready && SERVING.iter().any(|words| line.text.contains(words)) {
            self.launches.served(&line.stream, line.place.line);
        }
        for event in self.assembler.push(line) {
            self.post(event);
        }
    }

    fn post(&mut self, event: Event) {
        match event.role {
            Role::Unrecognised => {
                if self.unrecognised.len() < MOST_UNRECOGNISED {
                    self.unrecognised.push(Unrecognised { place: event.place, text: event.text });
                }
                return;
            }
            Role::Ready => self.ready = true,
            Role::Traffic => self.traffic = Some(Arc::clone(&event.label)).filter(|words| words.len() > 8),
            _ => {}
        }
        self.events += 1;
        let arguments =
            (event.role == Role::ServerArgs).then(|| arguments_of(&event.text)).flatten().map(Arc::new);
        self.launches.push(event, arguments);
    }

    fn finish(mut self, bytes: u64, lines: u64, head: &[u8]) -> SourceReading {
        for event in self.assembler.finish() {
            self.post(event);
        }
        let mut dump = self.dumps.finish();
        dump.observations.append(&mut self.samples);
        let over = dump.observations.len().saturating_sub(MOST_OBSERVATIONS);
        dump.observations.truncate(MOST_OBSERVATIONS);
        let left_out = self.launches.left_out() + over as u64;
        let launches = self.launches.finish();
        let kind = match (launches.is_empty(), dump.observations.is_empty() && dump.notes.is_empty()) {
            (false, true) => SourceKind::Log,
            (true, false) => SourceKind::Smi,
            (false, false) => SourceKind::Mixed,
            (true, true) => SourceKind::Unknown,
        };
        SourceReading {
            facts: SourceFacts {
                name: self.name,
                kind,
                bytes,
                lines,
                found_instead: (kind == SourceKind::Unknown).then(|| found_instead(head)),
                left_out,
            },
            launches,
            observations: dump.observations,
            notes: dump.notes,
            unrecognised: self.unrecognised,
        }
    }
}

/// The typed arguments in a `server_args=` line's message.
fn arguments_of(message: &str) -> Option<server_args::ServerArgs> {
    let after = |sign: &str| message.find(sign).and_then(|at| message.get(at + sign.len()..));
    server_args::parse(after("server_args=").or_else(|| after("server_args: "))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRACTION: &str = "[2026-11-29 13:52:07 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1, \
                              #new_tokens_gained: 33, #new_token_ratio: 0.5000 -> 0.6000\n";

    #[test]
    fn the_needles_compile() {
        assert!(NEEDLES.is_ok());
    }

    #[test]
    fn a_loop_of_rows_without_units_keeps_every_sample() {
        let rows = (0..600).map(|second| {
            format!(
                "2026/11/29 13:{:02}:{:02}.000, 0, NVIDIA H200, 143771, {}\n",
                second / 60,
                second % 60,
                1000 + second
            )
        });
        let dump =
            "timestamp, index, name, memory.total, memory.used\n".to_string() + &rows.collect::<String>();
        let reading = read_source(&Source::memory("loop.csv", dump.as_bytes())).unwrap();
        assert_eq!(reading.observations.len(), 600);
    }

    #[test]
    fn retractions_are_counted_and_crowd_nothing_out() {
        let start = "[2026-11-29 13:51:42 TP0] Load weight begin. avail mem=139.13 GB\n";
        let restart = "[2026-11-29 14:51:42 TP0] Load weight begin. avail mem=139.13 GB\n";
        let log = format!("{start}{}{restart}", RETRACTION.repeat(crate::launch::MOST_EVENTS + 10));
        let reading = read_source(&Source::memory("log", log.as_bytes())).unwrap();
        assert_eq!(reading.launches.len(), 2);
        assert_eq!(reading.launches[0].retractions, crate::launch::MOST_EVENTS as u64 + 10);
        assert_eq!(reading.facts.left_out, 0);
    }
}
