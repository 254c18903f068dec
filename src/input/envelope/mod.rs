//! Envelopes: what container runtimes, collectors, launchers and people put around a line, taken off.
//!
//! Separate from the grammar because an envelope may hold any line, and several may be nested in any order. Whose
//! line it is becomes the line's stream: with it, several servers in one file can be told apart. A stream is a
//! *writer*: a pod or a service holds all ranks of a server, a process id or a rank number only one of them.

mod json;
mod prefix;
#[cfg(test)]
mod tests;

use super::text::{Text, clean, clean_str};
use crate::time::Stamp;
pub(in crate::input) use prefix::log_stamp;
use std::collections::HashSet;

/// How many envelopes one inside another are taken off.
const DEEPEST: usize = 8;

/// How many names are remembered as envelopes.
const MOST_NAMES: usize = 4096;

/// Names that have proved to be envelopes.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashSet<String>,
}

impl Names {
    fn contains(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    fn learn(&mut self, name: &str) {
        if self.known.len() < MOST_NAMES {
            self.known.insert(name.to_owned());
        }
    }
}

/// A payload without its envelopes, and what they said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Letter {
    /// The payload.
    pub text: Text,
    /// The identities of its envelopes, outermost first; empty without any.
    pub stream: String,
    /// The time of the innermost envelope that has one.
    pub time: Option<Stamp>,
    /// Whether the payload goes on in the next letter of the stream.
    pub goes_on: bool,
    /// Whether it came by standard error, as far as the envelopes say: parts go on in letters of the same output.
    pub by_stderr: bool,
    /// Whether there was an envelope at all.
    pub enveloped: bool,
}

impl Letter {
    fn plain(text: Text) -> Letter {
        Letter { text, stream: String::new(), time: None, goes_on: false, by_stderr: false, enveloped: false }
    }

    fn note(&mut self, mark: prefix::Mark) {
        if let Some(identity) = mark.identity {
            if !self.stream.is_empty() {
                self.stream.push_str(" / ");
            }
            self.stream.push_str(&identity);
        }
        self.time = mark.time.or(self.time);
        self.goes_on |= mark.goes_on;
        self.by_stderr |= mark.by_stderr;
        self.enveloped = true;
    }
}

/// Opens the envelopes of one segment: one letter, or several where a line of JSON holds several records.
pub(super) fn open(bytes: &[u8], column: u64, names: &mut Names) -> Vec<Letter> {
    let mut letters = Vec::new();
    take_off(Letter::plain(clean(bytes, column)), 0, names, &mut letters);
    letters
}

/// What the envelopes at the beginning of a physical line say: they hold for its segments behind carriage returns too.
pub(super) fn open_head(line_head: &[u8], names: &mut Names) -> Letter {
    take_off_prefixes(Letter::plain(clean(line_head, 1)), 0, names).0
}

fn take_off(letter: Letter, depth: usize, names: &mut Names, letters: &mut Vec<Letter>) {
    let (letter, depth) = take_off_prefixes(letter, depth, names);
    let records = if depth < DEEPEST { json::records(letter.text.as_str()) } else { None };
    let Some(records) = records else {
        letters.push(letter);
        return;
    };
    let Letter { text, stream, time, goes_on, by_stderr, enveloped } = letter;
    for record in records {
        let payload = clean_str(&record.payload, text.column(record.start));
        let mut inner = Letter { text: payload, stream: stream.clone(), time, goes_on, by_stderr, enveloped };
        inner.note(record.mark);
        take_off(inner, depth + 1, names, letters);
    }
}

fn take_off_prefixes(mut letter: Letter, mut depth: usize, names: &mut Names) -> (Letter, usize) {
    let mut at = 0;
    let whole = letter.text.as_str().to_owned();
    while depth < DEEPEST {
        let Some((rest, mark)) = whole.get(at..).and_then(|rest| prefix::envelope(rest, names)) else {
            break;
        };
        at = whole.len() - rest.len();
        letter.note(mark);
        depth += 1;
    }
    if at > 0 {
        letter.text = letter.text.from(at);
    }
    (letter, depth)
}
