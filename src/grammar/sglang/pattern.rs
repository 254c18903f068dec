//! The interpreter of the catalogue's patterns: words with holes, matched against a line.
//!
//! A pattern is the line's wording, with
//! - `{kind}`: a hole in the place of a `key=` or `key: ` field's value; the clause parser reads it by its key;
//! - `{name=kind}`: a hole inside prose, which becomes a field of that name;
//! - `{one|other}`, `{name=one|other}`: alternatives of wording;
//! - `[…]`: words that may be absent, nestable; `\[` and `\]` are the brackets themselves.
//!
//! Kinds: `n` whole number (or `None`), `f` number, `s` seconds, `gib` `mib` `kib` `gb` `b` an amount printed
//! in that unit, `list`, `word` (no blanks), `text`, `rest` (all that follows), `record` and `dict` (the rest,
//! where it is `Name(…` or `{…`). `:.2f` behind a kind asks for exactly so many decimals, `:repr` for a number
//! that was not rounded to two. A blank stands for any white space.
//!
//! Separate from the catalogue so that the rows stay data, and from the clause parser because prose has no keys.

mod compile;
mod matching;

pub(crate) use matching::{Fit, Found, Hole};

use crate::quantity::{Convention, Unit};

/// How a number must have been rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    /// Any way.
    Any,
    /// To so many decimals.
    Decimals(usize),
    /// Not to two decimals: Python's repr of a float.
    Unrounded,
}

/// What a hole holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number, or `None`.
    Count,
    /// Any number, seconds included.
    Number,
    /// An amount of memory in a unit.
    Memory(Unit),
    /// A bracketed list.
    List,
    /// Text without blanks.
    Word,
    /// Text up to what follows in the pattern.
    Text,
    /// All that follows.
    Rest,
    /// All that follows, if it is a record's repr.
    Record,
    /// All that follows, if it is a dict's repr.
    Dict,
}

/// A piece of a pattern without optional parts.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// These words.
    Words(String),
    /// One of these.
    Choice { name: Option<&'static str>, words: Vec<&'static str> },
    /// A value.
    Hole { name: Option<&'static str>, kind: Kind, rounding: Rounding },
}

/// A field that a pattern requires, by its key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    /// The key, or its alternatives.
    pub names: Vec<String>,
    /// What its value is.
    pub kind: Kind,
    /// Whether the value is printed with its unit: without one it is cut.
    pub has_unit: bool,
}

/// A pattern with all its optional parts decided.
#[derive(Debug)]
struct Variant {
    pieces: Vec<Piece>,
    /// The first sentence, up to the first field: what the line is recognised by when its fields differ.
    head: Vec<Piece>,
    keys: Vec<Key>,
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Matcher {
    variants: Vec<Variant>,
    /// What `GB` means on the line.
    pub convention: Convention,
}

impl Matcher {
    /// The fields that a variant requires, in printed order.
    pub fn keys(&self, variant: usize) -> &[Key] {
        self.variants.get(variant).map_or(&[], |variant| &variant.keys)
    }

    /// The key of this name in any variant.
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.variants
            .iter()
            .flat_map(|variant| &variant.keys)
            .find(|key| key.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// How many variants there are.
    pub fn variants(&self) -> usize {
        self.variants.len()
    }

    /// The two bytes, in lower case, with which a line of each variant must begin. `None` where a variant begins with a
    /// value: then nothing can be told from a line's first bytes.
    pub fn openings(&self) -> Option<Vec<[u8; 2]>> {
        let opening = |words: &str| match words.as_bytes() {
            [first, second, ..] => Some([first.to_ascii_lowercase(), second.to_ascii_lowercase()]),
            _ => None,
        };
        let mut openings = Vec::new();
        for variant in &self.variants {
            match variant.pieces.first()? {
                Piece::Words(words) => openings.push(opening(words)?),
                Piece::Choice { words, .. } => {
                    for words in words {
                        openings.push(opening(words)?);
                    }
                }
                Piece::Hole { .. } => return None,
            }
        }
        Some(openings)
    }

    /// The fixed words of each variant, for the scanner's needles.
    pub fn words(&self) -> impl Iterator<Item = Vec<&str>> {
        self.variants.iter().map(|variant| {
            let words = variant.pieces.iter().filter_map(|piece| match piece {
                Piece::Words(words) => Some(words.as_str()),
                _ => None,
            });
            words.collect()
        })
    }
}
