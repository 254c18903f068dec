//! Events: what one log line says, still free of any judgement.
//!
//! The grammar produces them, the launch builder consumes them. Fields keep the words they were printed with,
//! so that a line of tomorrow's SGLang loses nothing; the catalogue's [`Role`] says what the line is for.

use crate::grammar::sglang::catalogue::Template;
use crate::place::Place;
use crate::quantity::{Decimal, Quantity};
use crate::server_args::ServerArgs;
use crate::stage::{RankTag, Stage, Worker};
use crate::time::Stamp;
use crate::version::VersionRange;
use std::sync::Arc;

/// One parsed log line.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Where the message begins.
    pub place: Place,
    /// When it was printed.
    pub stamp: Option<Stamp>,
    /// Which stream of the file it came in (pod, container, unit and pid); empty where there is no envelope.
    pub stream: Arc<str>,
    /// From which rank, as the prefix says.
    pub rank: RankTag,
    /// The message without prefix, control characters replaced.
    pub text: Arc<str>,
    /// The catalogue entry that knows this line; `None` for unknown lines with memory in them.
    pub template: Option<&'static Template>,
    /// The releases that print exactly these words: the union over all rows with this wording, since the line
    /// could be any of theirs. Every release where the wording is no row's.
    pub wording_range: VersionRange,
    /// What the line is for.
    pub role: Role,
    /// The label: the words before the first field.
    pub label: Arc<str>,
    /// Everything of the form `key=value` or `key: value`, and the catalogue's holes, in printed order.
    pub fields: Vec<Field>,
}

impl Event {
    /// The first field of this name, letter case aside.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))
    }

    /// The memory in the first field of this name that holds any. `None` where it is absent or was cut.
    pub fn memory(&self, name: &str) -> Option<Quantity> {
        self.field(name).and_then(Field::memory)
    }

    /// The whole number in the field of this name.
    pub fn count(&self, name: &str) -> Option<i128> {
        match self.field(name)?.value {
            Value::Number(decimal) => decimal.to_integer(),
            _ => None,
        }
    }

    /// The number in the field of this name, as seconds, ratios and fractions are used.
    pub fn number(&self, name: &str) -> Option<Decimal> {
        match self.field(name)?.value {
            Value::Number(decimal) => Some(decimal),
            _ => None,
        }
    }
}

/// A named value in a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The name as printed (`avail mem`, `#tokens`, `K size`), or the catalogue's name of a hole.
    pub name: String,
    /// The value.
    pub value: Value,
    /// Where the value begins.
    pub place: Place,
    /// How many bytes it covers in the text, unit included.
    pub length: usize,
}

impl Field {
    /// The value as memory, where it is.
    pub fn memory(&self) -> Option<Quantity> {
        match self.value {
            Value::Memory(quantity) => Some(quantity),
            _ => None,
        }
    }
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number with a unit of memory.
    Memory(Quantity),
    /// A number without one (tokens, seconds, fractions).
    Number(Decimal),
    /// A Python list, its items as printed.
    List(Vec<String>),
    /// Anything else, as printed.
    Word(String),
    /// The line was cut inside the value: unknown, not a smaller number.
    Cut,
}

/// Which end of a stage a line stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// The stage begins: `avail mem` is its opening.
    Begin,
    /// The stage ends: `avail mem` is its closing, `mem usage` its claim.
    End,
    /// One line tells all of it: a claim without levels, or a level after the fact.
    Whole,
}

/// Which model's stage a line speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkerHint {
    /// The line names its worker.
    Known(Worker),
    /// Target and draft print the same words: order tells.
    ByOrder,
}

/// What a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A stage begins or ends.
    Stage(Stage, Edge, WorkerHint),
    /// Pool sizes inside the KV stage: parts of a posting, no posting of their own.
    Pool(PoolRole),
    /// A capture bar: free memory before a size is captured.
    Progress(Stage),
    /// `max_total_num_tokens=…`: the summary of a rank.
    Summary,
    /// The server takes requests.
    Ready,
    /// The launcher's arguments (see [`Parsed`]).
    ServerArgs,
    /// A fact that explains: disabled stage, adjusted fraction, cap, reservation.
    Note,
    /// Something went wrong.
    Failure(FailureKind),
    /// Traffic after ready that counts but carries no posting (retraction, served batches).
    Traffic,
    /// Looks like memory and fits nothing.
    Unrecognised,
}

/// How a pool line enters the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolRole {
    /// Physical memory of one pool: its sizes are parts of the KV stage.
    Part,
    /// A sum of pools already printed: evidence, never added.
    Sum,
    /// Address space only: not memory.
    AddressSpace,
    /// Host memory: not on the device.
    Host,
    /// Shapes and budget figures: evidence for the budget.
    Evidence,
}

/// The kinds of failure that a line can announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The device allocator refused: torch's out-of-memory sentence, in any wording.
    OutOfMemory,
    /// SGLang refused to start: nothing left for KV under the fraction.
    BudgetExhausted,
    /// The ranks' free memory differs too much.
    Unbalanced,
    /// Graph capture failed (with its own cause).
    CaptureFailed,
    /// KV or request slots ran out: not device memory.
    SlotsExhausted,
    /// Host memory ran out.
    HostMemory,
    /// State cache of hybrid models does not fit.
    StateCache,
    /// A watchdog fired.
    Watchdog,
    /// A scheduler died on an exception.
    SchedulerException,
    /// A child process died.
    ProcessDied,
    /// Some ranks never finished loading.
    LoadTimeout,
    /// A Python exception's last line, of no kind above.
    Exception,
}

impl FailureKind {
    /// The kind in words, for verdicts.
    pub const fn words(self) -> &'static str {
        match self {
            FailureKind::OutOfMemory => "device memory ran out",
            FailureKind::BudgetExhausted => "nothing left for the KV cache under mem_fraction_static",
            FailureKind::Unbalanced => "free memory differs too much between the ranks",
            FailureKind::CaptureFailed => "graph capture failed",
            FailureKind::SlotsExhausted => "KV or request slots ran out (not device memory)",
            FailureKind::HostMemory => "host memory ran out (not device memory)",
            FailureKind::StateCache => "the hybrid state cache does not fit",
            FailureKind::Watchdog => "a watchdog fired",
            FailureKind::SchedulerException => "a scheduler stopped on an exception",
            FailureKind::ProcessDied => "a process died",
            FailureKind::LoadTimeout => "some ranks never finished loading",
            FailureKind::Exception => "an exception was raised",
        }
    }
}

/// An event, or the server arguments that a line holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    /// A log line.
    Event(Event),
    /// A `server_args=` line: the event and its typed arguments.
    Arguments(Event, Arc<ServerArgs>),
}
