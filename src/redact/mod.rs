//! Redaction: what names people, machines and credentials is replaced by stable pseudonyms before a report leaves.
//!
//! Separate from the reports, because it must come before them: texts are redacted as they were read, before a rule or a
//! renderer cuts or wraps them, so that no format can show half a secret. Numbers, keys and places never change.

mod arguments;
mod detect;
mod edit;
mod hosts;
mod keyed;
mod keys;
mod kind;
#[cfg(test)]
mod tests;
mod value;
mod walk;

pub use edit::{Edit, moved};
pub use kind::Kind;

use crate::place::Place;
use detect::Detectors;
use edit::{Span, merge};
use memchr::memmem::Finder;
use regex::Regex;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// So many values of the arguments are looked for in all other texts; each is replaced where it stands in any case.
const MOST_LITERALS: usize = 256;
/// Longer values are not repeated in other lines.
const LONGEST_LITERAL: usize = 4096;

/// Replaces what should not leave the house, one pseudonym a value. Pseudonyms count from 1 for each kind, in the order in
/// which the values are met, so the same input always gives the same output.
pub struct Redactor {
    detectors: Detectors,
    own: Vec<Regex>,
    literals: Vec<Literal>,
    learned: HashSet<(Kind, String)>,
    numbers: HashMap<(Kind, String), usize>,
    counts: BTreeMap<Kind, usize>,
    shared: HashMap<Arc<str>, Arc<str>>,
    edits: HashMap<Place, Vec<Edit>>,
}

/// A value that the arguments or an envelope named, to be found wherever else it stands.
struct Literal {
    finder: Finder<'static>,
    kind: Kind,
}

/// What a redaction did: part of the analysis, so that every report can say so.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Redaction {
    /// How many different values of each kind were replaced; kinds without any are absent.
    pub counts: BTreeMap<Kind, usize>,
    /// What changed in quoted lines, by the place of the message: keeps carets below their figures.
    edits: HashMap<Place, Vec<Edit>>,
}

impl Redaction {
    /// What changed in the message at this place, in order.
    pub fn edits(&self, message: &Place) -> &[Edit] {
        self.edits.get(message).map(Vec::as_slice).unwrap_or_default()
    }

    /// The counts in words: `2 secrets, 1 host name`.
    pub fn words(&self) -> String {
        let counts: Vec<String> = self.counts.iter().map(|(kind, count)| kind.counted(*count)).collect();
        if counts.is_empty() { "nothing was found that had to be".to_string() } else { counts.join(", ") }
    }
}

impl Redactor {
    /// A redactor that also replaces what `own` patterns match: their first group, or all where they have none.
    ///
    /// # Errors
    /// Where a pattern of the built-in table does not compile, which a test rules out.
    pub fn new(own: Vec<Regex>) -> Result<Redactor, regex::Error> {
        Ok(Redactor {
            detectors: Detectors::new()?,
            own,
            literals: Vec::new(),
            learned: HashSet::new(),
            numbers: HashMap::new(),
            counts: BTreeMap::new(),
            shared: HashMap::new(),
            edits: HashMap::new(),
        })
    }

    /// A text of any origin, redacted.
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        match self.edited(text) {
            Some((redacted, _)) => Cow::Owned(redacted),
            None => Cow::Borrowed(text),
        }
    }

    /// The redacted text and what changed in it. `None` where nothing did.
    fn edited(&mut self, text: &str) -> Option<(String, Vec<Edit>)> {
        let spans = self.spans(text);
        if spans.is_empty() {
            return None;
        }
        let (mut redacted, mut edits, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
        for span in spans {
            let (Some(before), Some(value)) = (text.get(at..span.start), text.get(span.start..span.end))
            else {
                continue;
            };
            let name = self.pseudonym(span.kind, value);
            redacted.push_str(before);
            redacted.push_str(&name);
            edits.push(Edit { start: span.start, old: value.len(), new: name.len() });
            at = span.end;
        }
        redacted.push_str(text.get(at..).unwrap_or_default());
        Some((redacted, edits))
    }

    /// What stands in the place of a value.
    fn pseudonym(&mut self, kind: Kind, value: &str) -> String {
        let count = self.counts.get(&kind).copied().unwrap_or(0);
        let number = *self.numbers.entry((kind, kind.canonical(value))).or_insert(count + 1);
        if number > count {
            self.counts.insert(kind, number);
        }
        match kind {
            Kind::Path => value::shortened(value),
            kind => format!("{}-{number}", kind.name()),
        }
    }

    /// Whether a text is a pseudonym that was given out: what was redacted stays as it is.
    fn is_pseudonym(&self, text: &str) -> bool {
        let Some((name, number)) = text.rsplit_once('-') else { return false };
        let given = |kind: &Kind| self.counts.get(kind).copied().unwrap_or(0);
        let of_kind = Kind::ALL.iter().filter(|kind| kind.name() == name).map(given).max().unwrap_or(0);
        number.parse().is_ok_and(|number: usize| (1..=of_kind).contains(&number))
    }

    /// Everything in a text that has to go, in order, without overlaps.
    fn spans(&self, text: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        for pattern in &self.own {
            for captures in pattern.captures_iter(text) {
                let found = captures.get(1).or_else(|| captures.get(0)).filter(|found| !found.is_empty());
                spans.extend(found.map(|found| Span::new(found.range(), Kind::Own)));
            }
        }
        self.detectors.find(text, &mut spans);
        for literal in &self.literals {
            let needle = literal.finder.needle().len();
            let found = literal.finder.find_iter(text.as_bytes()).map(|start| start..start + needle);
            let whole = found.filter(|range| value::stands_alone(text, range));
            spans.extend(whole.map(|range| Span::new(range, literal.kind)));
        }
        spans.retain(|span| {
            text.get(span.start..span.end).is_some_and(|value| !value.is_empty() && !self.is_pseudonym(value))
        });
        merge(spans)
    }

    /// Remembers a value, so that it is found in texts that don't say what it is.
    fn learn(&mut self, kind: Kind, value: &str) {
        let value = value.trim();
        let wanted = match kind {
            Kind::Secret => value::is_telling(value),
            Kind::Path => value::is_private_path(value),
            _ => hosts::is_telling(value),
        };
        if wanted
            && value.len() <= LONGEST_LITERAL
            && self.literals.len() < MOST_LITERALS
            && self.learned.insert((kind, value.to_string()))
        {
            self.literals.push(Literal { finder: Finder::new(value).into_owned(), kind });
        }
    }
}
