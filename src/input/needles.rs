//! What the scanner searches for: literal pieces of the lines that matter, and how much context each kind wants.
//!
//! Separate from the scan because the speed of everything rests on it. Measured on 64 KiB blocks of decode and HTTP
//! lines (one core of a 2-core Xeon with AVX2, so fat Teddy available; busy machine, hence only ratios count):
//!
//! | literals | one alternation of them | alternation of their cover |
//! | --- | --- | --- |
//! | 8 to 16 | 12 GB/s | - |
//! | 40 | 4.9 GB/s | 18 GB/s (18 pieces) |
//! | 64 | 3.7 GB/s | 7 to 18 GB/s (26 pieces) |
//! | 105 | 0.6 GB/s | 5.8 GB/s (46 pieces) |
//!
//! The regex crate searches literals with Teddy as long as there are at most 64 of them; above, it falls to an
//! automaton that looks at every byte. Below, the cost is that of false candidates: Teddy sorts the literals into 8
//! or 16 buckets by the nibbles of their first bytes, so many literals, or literals of everyday bytes, light up
//! everywhere. Hence the *cover*: few three-byte pieces, such that every literal contains one, and none of them
//! occurs in ordinary traffic ([`super::cover`]). The cover finds the place, the literals themselves confirm it.
//! Splitting the cover over two passes of an L2-sized buffer was slower than one pass (2.4 against 5.8 GB/s), pieces
//! of four bytes slower than pieces of three: they are more specific, but more of them are needed.
//! A literal of two bytes shortens the fingerprint of all the others: give at least three.

use super::cover::cover;
use regex::bytes::{Regex, RegexBuilder};
use std::ops::Range;

/// A kind of line to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedleClass<'a> {
    /// The spellings; a line that holds one of them is a hit. Matched with regard to case.
    pub literals: &'a [&'a str],
    /// How many lines before a hit come along as context.
    pub before: usize,
    /// How many lines after a hit come along as context.
    pub after: usize,
}

/// How many lines around a hit are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// Lines before.
    pub before: usize,
    /// Lines after.
    pub after: usize,
}

/// The compiled search for all classes.
#[derive(Debug, Clone)]
pub struct Needles {
    cover: Regex,
    classes: Vec<(Regex, Context)>,
    longest: usize,
}

/// How far the confirmation may read ahead of a candidate when candidates come thick and fast.
const FARTHEST_CONFIRMATION: usize = 64 * 1024;

impl Needles {
    /// Compiles the classes. Empty literals are ignored.
    ///
    /// # Errors
    /// Where the literals together exceed the regex crate's size limits (megabytes of them).
    pub fn new(classes: &[NeedleClass<'_>]) -> Result<Needles, regex::Error> {
        let literals: Vec<&str> = classes
            .iter()
            .flat_map(|class| class.literals)
            .copied()
            .filter(|literal| !literal.is_empty())
            .collect();
        let cover = cover(&literals);
        let cover: Vec<&str> = cover.iter().map(String::as_str).collect();
        Ok(Needles {
            cover: alternation(&cover)?,
            classes: classes
                .iter()
                .map(|class| {
                    let context = Context { before: class.before, after: class.after };
                    alternation(class.literals).map(|regex| (regex, context))
                })
                .collect::<Result<_, _>>()?,
            longest: literals.iter().map(|literal| literal.len()).max().unwrap_or(1),
        })
    }

    /// The length of the longest literal, in bytes: a literal that begins in a block ends fewer bytes behind it.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The first literal in `bytes` that begins at `from` or later.
    pub fn find_at(&self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        let mut at = from;
        let mut reach = self.longest;
        loop {
            let candidate = self.cover.find(bytes.get(at..)?)?;
            let (start, end) = (at + candidate.start(), at + candidate.end());
            // Candidates in close succession are confirmed together, so that a text full of them costs one pass of
            // the slower search and not one for each candidate.
            reach = if candidate.start() <= reach {
                (reach * 2).min(FARTHEST_CONFIRMATION)
            } else {
                self.longest
            };
            let low = start.saturating_sub(self.longest).max(from);
            let high = (end + reach).min(bytes.len());
            if let Some(found) = bytes.get(low..high).and_then(|part| self.confirm(part)) {
                return Some(low + found.start..low + found.end);
            }
            // What is left must end behind `high`, hence begin within the last `longest` bytes before it.
            at = (start + 1).max(high.saturating_sub(self.longest));
        }
    }

    /// The first literal of any class.
    fn confirm(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let found = self.classes.iter().filter_map(|(regex, _)| regex.find(bytes));
        found.map(|found| found.range()).min_by_key(|range| range.start)
    }

    /// The context that a line wants: the widest of the classes that hit it, `None` where none does.
    pub fn classify(&self, line: &[u8]) -> Option<Context> {
        self.classes.iter().filter(|(regex, _)| regex.is_match(line)).map(|(_, context)| *context).reduce(
            |one, other| Context { before: one.before.max(other.before), after: one.after.max(other.after) },
        )
    }
}

/// One regex for any of the literals; without any, one that never matches.
fn alternation(literals: &[&str]) -> Result<Regex, regex::Error> {
    let escaped: Vec<String> =
        literals.iter().filter(|literal| !literal.is_empty()).map(|literal| regex::escape(literal)).collect();
    let pattern = if escaped.is_empty() { r"[^\s\S]".to_owned() } else { escaped.join("|") };
    RegexBuilder::new(&pattern).unicode(false).size_limit(64 << 20).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn needles(literals: &[&str]) -> Needles {
        Needles::new(&[NeedleClass { literals, before: 3, after: 4 }]).unwrap()
    }

    #[test]
    fn a_piece_of_the_cover_alone_is_no_hit() {
        let needles = needles(&["avail mem", "mem usage"]);
        assert_eq!(needles.find_at(b"mem mem mem member", 0), None);
        assert_eq!(needles.find_at(b"mem avail mem", 0), Some(4..13));
        assert_eq!(needles.find_at(b"avail mem avail mem", 1), Some(10..19));
    }

    #[test]
    fn the_widest_class_that_hits_a_line_decides() {
        let needles = Needles::new(&[
            NeedleClass { literals: &["MiB"], before: 6, after: 2 },
            NeedleClass { literals: &["NVIDIA-SMI"], before: 1, after: 200 },
        ])
        .unwrap();
        assert_eq!(needles.classify(b"NVIDIA-SMI 12 MiB"), Some(Context { before: 6, after: 200 }));
        assert_eq!(needles.classify(b"12 MiB"), Some(Context { before: 6, after: 2 }));
        assert_eq!(needles.classify(b"nothing"), None);
    }

    #[test]
    fn no_literals_never_match() {
        assert_eq!(needles(&[]).find_at(b"anything", 0), None);
        assert_eq!(needles(&[""]).find_at(b"anything", 0), None);
    }

    proptest! {
        #[test]
        fn the_cover_finds_what_the_literals_find(text in "[abmem vailus]{0,200}", from in 0usize..220) {
            let literals = ["avail mem", "mem usage", "b", "amem"];
            let needles = needles(&literals);
            let expected = (from..text.len()).find(|at| literals.iter().any(|l| text[*at..].starts_with(l)));
            prop_assert_eq!(needles.find_at(text.as_bytes(), from).map(|found| found.start), expected);
        }
    }
}
