//! Wrapped and torn lines, put together before they are read.
//!
//! A terminal of 80 columns cuts a line anywhere, a mail program at a blank, and two processes that write one
//! stream tear each other's lines: half a line, another rank's whole line, then the rest. So a line that lacks
//! required fields, or ends in a cut value, waits; each of the next few lines without a prefix is tried as its
//! continuation, joined without and with a blank; a join that gains nothing is not made, and a line that is complete
//! by itself is never swallowed. What waits in vain is handed on as it is, its cut values marked.
//!
//! Events leave in the order in which their lines began.

use super::prefix::Prefix;
use super::read::{Reading, read};
use super::{Seam, event, message};
use crate::event::{Event, FailureKind, Role, Value};
use crate::input::LogicalLine;
use crate::stage::Stage;
use std::collections::VecDeque;

/// How long a line waits for its rest: every line of its own stream costs [`OWN_STREAM`], one of another 1.
const PATIENCE: usize = 64;
/// What a line of the same stream costs: four of them and the wait is over.
const OWN_STREAM: usize = 16;
/// Longer joins are not tried.
const LONGEST_JOIN: usize = 64 << 10;
/// Server arguments are long; beyond this they are taken as cut.
const LONGEST_ARGUMENTS: usize = 1 << 20;

/// Puts lines together and reads them. Fed logical lines in order, it yields events in order.
#[derive(Debug, Default)]
pub struct Assembler {
    slots: VecDeque<Slot>,
}

/// An event, or a line that waits.
#[derive(Debug)]
enum Slot {
    Done(Box<Event>),
    Waiting(Box<Waiting>),
}

/// A line that waits for its rest.
#[derive(Debug)]
struct Waiting {
    line: LogicalLine,
    prefix: Prefix,
    seams: Vec<Seam>,
    reading: Option<Reading>,
    /// How much of a known line's words it has, if it is the beginning of one.
    begins: usize,
    patience: usize,
    /// For server arguments: which brackets and quotes are open.
    brackets: Option<Brackets>,
}

impl Assembler {
    /// An assembler that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line; returns the events that are complete by now.
    pub fn push(&mut self, line: &LogicalLine) -> Vec<Event> {
        let prefix = Prefix::of(&line.text);
        let (reading, begins) = read(message(&line.text, &prefix));
        let fragment = !prefix.found && !stands_alone(reading.as_ref());
        if !(fragment && self.joined(line)) {
            self.grow_impatient(line);
            self.take(line, prefix, reading, begins);
        }
        self.ready()
    }

    /// The events of the lines that still wait: there is nothing more to come.
    pub fn finish(&mut self) -> Vec<Event> {
        for slot in &mut self.slots {
            if let Slot::Waiting(waiting) = slot {
                waiting.patience = 0;
            }
        }
        self.settle();
        self.ready()
    }

    /// Gives the line a place in the queue, if it says or begins anything.
    fn take(&mut self, line: &LogicalLine, prefix: Prefix, reading: Option<Reading>, begins: usize) {
        let open = begins > 0 || reading.as_ref().is_some_and(|reading| reading.open);
        let brackets = reading.as_ref().filter(|reading| reading.role == Role::ServerArgs).map(|_| {
            let mut brackets = Brackets::default();
            brackets.feed(message(&line.text, &prefix).trim_start_matches("server_args="));
            brackets
        });
        let unclosed = brackets.as_ref().is_some_and(|brackets| !brackets.closed()) && !line.cut;
        if unclosed || (open && brackets.is_none() && !is_told_bar(reading.as_ref())) {
            let (line, seams, patience) = (line.clone(), Vec::new(), PATIENCE);
            self.slots.push_back(Slot::Waiting(Box::new(Waiting {
                line,
                prefix,
                seams,
                reading,
                begins,
                patience,
                brackets,
            })));
        } else if let Some(reading) = reading {
            self.slots.push_back(Slot::Done(Box::new(event(reading, &prefix, line, &[]))));
        }
    }

    /// Tries the line as the rest of one that waits, the oldest first.
    fn joined(&mut self, line: &LogicalLine) -> bool {
        self.slots.iter_mut().any(|slot| match slot {
            Slot::Waiting(waiting) if waiting.line.stream == line.stream => {
                let joined = waiting.join(line);
                if joined && waiting.is_complete() {
                    waiting.patience = 0;
                }
                joined
            }
            _ => false,
        }) && {
            self.settle();
            true
        }
    }

    /// Lets a line that was no continuation count against the patience of those that wait.
    fn grow_impatient(&mut self, line: &LogicalLine) {
        for slot in &mut self.slots {
            if let Slot::Waiting(waiting) = slot {
                let cost = if waiting.line.stream == line.stream { OWN_STREAM } else { 1 };
                waiting.patience = waiting.patience.saturating_sub(cost);
            }
        }
        self.settle();
    }

    /// Turns the lines that wait no longer into events; a beginning that never went on says nothing.
    fn settle(&mut self) {
        let over = |slot: &Slot| matches!(slot, Slot::Waiting(waiting) if waiting.patience == 0);
        if !self.slots.iter().any(over) {
            return;
        }
        self.slots = std::mem::take(&mut self.slots)
            .into_iter()
            .filter_map(|slot| match slot {
                Slot::Waiting(waiting) if waiting.patience == 0 => {
                    waiting.event().map(|event| Slot::Done(Box::new(event)))
                }
                slot => Some(slot),
            })
            .collect();
    }

    /// Takes the finished events from the front of the queue.
    fn ready(&mut self) -> Vec<Event> {
        let mut ready = Vec::new();
        while matches!(self.slots.front(), Some(Slot::Done(_))) {
            if let Some(Slot::Done(event)) = self.slots.pop_front() {
                ready.push(*event);
            }
        }
        ready
    }
}

/// Whether a reading without a prefix is a line of its own: words of the catalogue, a traceback, a failure. Bare
/// figures may be the rest of another line.
fn stands_alone(reading: Option<&Reading>) -> bool {
    reading.is_some_and(|reading| {
        let bare = matches!(
            reading.role,
            Role::Unrecognised | Role::Stage(Stage::Other, ..) | Role::Progress(Stage::Other)
        );
        reading.template.is_some() || !(bare || reading.label.is_empty())
    })
}

/// Whether this is a capture bar with its figure: what may be missing of it is only the drawing, and a bar that waited
/// for it would take the rest of the line behind it.
fn is_told_bar(reading: Option<&Reading>) -> bool {
    reading.is_some_and(|reading| matches!(reading.role, Role::Progress(_)) && reading.met > 0)
}

impl Waiting {
    /// Appends the line if that gains something.
    fn join(&mut self, line: &LogicalLine) -> bool {
        if self.brackets.is_some() {
            return self.append_arguments(line);
        }
        if self.goes_on_in_list(line) {
            return self.append_items(line);
        }
        let joins = ["", " "].map(|glue| Join::new(self, glue, line));
        let best = joins
            .into_iter()
            .flatten()
            .filter(|join| self.gains(join))
            .reduce(|best, next| if next.merit() > best.merit() { next } else { best });
        let Some(best) = best else { return false };
        self.adopt(best.text, line);
        self.reading = best.reading;
        self.begins = best.begins;
        true
    }

    /// Whether the joined line says more than the line that waits: its exact wording, more of its figures, or more
    /// of a known line's words.
    fn gains(&self, join: &Join) -> bool {
        let longer = join.begins > self.begins && self.begins > 0;
        match (&self.reading, &join.reading) {
            (None, Some(new)) => new.template.is_some() || new.role != Role::Unrecognised && longer,
            (None, None) => longer,
            (Some(_), None) => false,
            (Some(old), Some(new)) => match (old.template, new.template) {
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some(_), Some(_)) => new.met > old.met,
                (None, None) => {
                    let explained = old.role == Role::Failure(FailureKind::Exception) && new.role != old.role;
                    explained || new.role == old.role && (new.met > old.met || longer)
                }
            },
        }
    }

    /// Whether the line breaks off inside a list, or before one that the next line begins with.
    fn goes_on_in_list(&self, line: &LogicalLine) -> bool {
        let text = message(&self.line.text, &self.prefix);
        // A list that is a line's only value belongs to no field while it is open: the words before it are known.
        let last = self.reading.as_ref().and_then(|reading| reading.fields.last());
        let value = match last.filter(|field| field.value == Value::Cut) {
            Some(field) => text.get(field.start..).unwrap_or_default(),
            None if self.begins > 0 => text.rfind('[').and_then(|at| text.get(at..)).unwrap_or(" "),
            None => " ",
        };
        let unclosed = value.starts_with('[') && !value.contains(']');
        unclosed || value.is_empty() && line.text.trim_start().starts_with('[')
    }

    /// Appends a piece of a wrapped list of numbers. Pieces that do not close it gain nothing yet, but without them
    /// the list would be another one.
    fn append_items(&mut self, line: &LogicalLine) -> bool {
        let items = line.text.trim_start().trim_start_matches('[').split(']').next().unwrap_or_default();
        let numbers = items.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | ' ' | '.' | '-'));
        let text = glued(&self.line.text, "", &line.text);
        if !numbers || text.len() > LONGEST_JOIN {
            return false;
        }
        self.adopt(text, line);
        (self.reading, self.begins) = read(message(&self.line.text, &self.prefix));
        self.patience = PATIENCE;
        true
    }

    /// Appends a piece of wrapped server arguments: anything is taken until the brackets close.
    fn append_arguments(&mut self, line: &LogicalLine) -> bool {
        let Some(brackets) = &mut self.brackets else { return false };
        if self.line.text.len() + line.text.len() > LONGEST_ARGUMENTS {
            return false;
        }
        // Mail programs wrap at the blank behind a comma and eat it; terminals wrap anywhere and eat nothing.
        let glue = if self.line.text.ends_with(',') { " " } else { "" };
        brackets.feed(glue);
        brackets.feed(line.text.trim_start());
        self.line.text.push_str(glue);
        self.seams.push(seam(self.line.text.len(), line));
        self.line.text.push_str(line.text.trim_start());
        self.line.cut |= line.cut;
        self.patience = PATIENCE;
        true
    }

    /// Makes the joined text the line's, and remembers where the later part stands.
    fn adopt(&mut self, text: String, line: &LogicalLine) {
        let at = text.len() - line.text.trim_start().len();
        self.seams.push(seam(at, line));
        self.line.text = text;
        self.line.cut |= line.cut;
    }

    /// Whether nothing is missing any more.
    fn is_complete(&self) -> bool {
        match &self.brackets {
            Some(brackets) => brackets.closed() || self.line.cut,
            None => self.reading.as_ref().is_some_and(|reading| !reading.open),
        }
    }

    /// The event of what has come together.
    fn event(self) -> Option<Event> {
        let reading = match self.brackets {
            Some(_) => read(message(&self.line.text, &self.prefix)).0,
            None => self.reading,
        };
        Some(event(reading?, &self.prefix, &self.line, &self.seams))
    }
}

/// A join that is tried.
struct Join {
    text: String,
    reading: Option<Reading>,
    begins: usize,
}

impl Join {
    fn new(waiting: &Waiting, glue: &str, line: &LogicalLine) -> Option<Join> {
        let text = glued(&waiting.line.text, glue, &line.text);
        if text.len() > LONGEST_JOIN {
            return None;
        }
        let (reading, begins) = read(message(&text, &waiting.prefix));
        Some(Join { text, reading, begins })
    }

    /// What makes one join better than another: exact wording, known figures, nothing missing, more known words.
    fn merit(&self) -> (bool, usize, bool, usize) {
        let reading = self.reading.as_ref();
        (
            reading.is_some_and(|reading| reading.template.is_some()),
            reading.map_or(0, |reading| reading.met),
            reading.is_some_and(|reading| !reading.open),
            self.begins,
        )
    }
}

/// Two parts of a line, joined with `glue` in place of the blanks that stand at the cut, or with none but these.
fn glued(front: &str, glue: &str, back: &str) -> String {
    let front = if glue.is_empty() { front } else { front.trim_end() };
    [front, glue, back.trim_start()].concat()
}

fn seam(at: usize, line: &LogicalLine) -> Seam {
    Seam { at, place: line.place.further(line.text.len() - line.text.trim_start().len()) }
}

/// Which brackets and quotes of a Python repr are open, kept up to date piece by piece.
#[derive(Debug, Default)]
struct Brackets {
    depth: usize,
    quote: Option<char>,
    escaped: bool,
    any: bool,
}

impl Brackets {
    fn feed(&mut self, text: &str) {
        for character in text.chars() {
            match (self.quote, character) {
                (Some(_), _) if self.escaped => self.escaped = false,
                (Some(_), '\\') => self.escaped = true,
                (Some(mark), _) if mark == character => self.quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => self.quote = Some(character),
                (None, '(' | '[' | '{') => {
                    self.depth += 1;
                    self.any = true;
                }
                (None, ')' | ']' | '}') => self.depth = self.depth.saturating_sub(1),
                (None, _) => {}
            }
        }
    }

    fn closed(&self) -> bool {
        self.any && self.depth == 0
    }
}
