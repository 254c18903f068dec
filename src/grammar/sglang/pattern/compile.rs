//! Patterns to matchers: the notation is read, optional parts are decided, keys and heads are found.

use super::{Key, Kind, Matcher, Piece, Rounding, Variant};
use crate::grammar::sglang::clause::{key_before_colon, key_before_equals};
use crate::quantity::{Convention, Unit};
use nom::branch::alt;
use nom::bytes::complete::{is_not, tag};
use nom::character::complete::char;
use nom::combinator::{all_consuming, map, map_opt, value};
use nom::multi::{many0, many1};
use nom::sequence::delimited;
use nom::{IResult, Parser};

/// An element of the notation.
#[derive(Debug, Clone, PartialEq)]
enum Element {
    Piece(Piece),
    Optional(Vec<Element>),
}

/// Fixed words: anything but brackets, which are written with a backslash.
fn words(input: &'static str) -> IResult<&'static str, Element> {
    map(many1(alt((is_not("{}[]\\"), value("[", tag("\\[")), value("]", tag("\\]"))))), |parts| {
        Element::Piece(Piece::Words(parts.concat()))
    })
    .parse(input)
}

/// A hole or alternatives.
fn hole(input: &'static str) -> IResult<&'static str, Element> {
    map_opt(delimited(char('{'), is_not("{}"), char('}')), |inside: &'static str| {
        let (name, rest) = match inside.split_once('=') {
            Some((name, rest)) => (Some(name), rest),
            None => (None, inside),
        };
        if rest.contains('|') {
            return Some(Element::Piece(Piece::Choice { name, words: rest.split('|').collect() }));
        }
        let (kind, format) = rest.split_once(':').unwrap_or((rest, ""));
        Some(Element::Piece(Piece::Hole { name, kind: kind_named(kind)?, rounding: rounding(format)? }))
    })
    .parse(input)
}

fn kind_named(name: &str) -> Option<Kind> {
    Some(match name {
        "n" => Kind::Count,
        "f" | "s" => Kind::Number,
        "gib" => Kind::Memory(Unit::Gib),
        "mib" => Kind::Memory(Unit::Mib),
        "kib" => Kind::Memory(Unit::Kib),
        "gb" => Kind::Memory(Unit::Gb),
        "b" => Kind::Memory(Unit::Byte),
        "list" => Kind::List,
        "word" => Kind::Word,
        "text" => Kind::Text,
        "rest" => Kind::Rest,
        "record" => Kind::Record,
        "dict" => Kind::Dict,
        _ => return None,
    })
}

fn rounding(format: &str) -> Option<Rounding> {
    match format {
        "" => Some(Rounding::Any),
        "repr" => Some(Rounding::Unrounded),
        _ => format.strip_prefix('.')?.strip_suffix('f')?.parse().ok().map(Rounding::Decimals),
    }
}

/// Words that may be absent.
fn optional(input: &'static str) -> IResult<&'static str, Element> {
    map(delimited(char('['), elements, char(']')), Element::Optional).parse(input)
}

fn elements(input: &'static str) -> IResult<&'static str, Vec<Element>> {
    many0(alt((words, hole, optional))).parse(input)
}

/// Every way to take or leave the optional parts, taken before left.
fn decided(elements: &[Element]) -> Vec<Vec<Piece>> {
    let Some((first, rest)) = elements.split_first() else { return vec![Vec::new()] };
    let beginnings = match first {
        Element::Piece(piece) => vec![vec![piece.clone()]],
        Element::Optional(inside) => {
            let mut ways = decided(inside);
            ways.push(Vec::new());
            ways
        }
    };
    let endings = decided(rest);
    let mut all = Vec::with_capacity(beginnings.len() * endings.len());
    for beginning in &beginnings {
        for ending in &endings {
            all.push(beginning.iter().chain(ending).cloned().collect());
        }
    }
    all
}

/// Joins neighbouring words, so that a hole's end is found by all that follows it; one blank for many.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Words(before)), Piece::Words(words)) => before.push_str(&words),
            (_, piece) => joined.push(piece),
        }
    }
    for piece in &mut joined {
        if let Piece::Words(words) = piece {
            while words.contains("  ") {
                *words = words.replace("  ", " ");
            }
        }
    }
    joined
}

/// Where the words behind the last separator begin.
fn phrase_start(words: &str) -> usize {
    [", ", ". ", "; ", ": ", "("]
        .iter()
        .filter_map(|separator| words.rfind(separator).map(|at| at + separator.len()))
        .max()
        .unwrap_or(0)
}

/// The key that a hole's preceding pieces end in: its names, and how many bytes it takes in the last words (all of
/// them, where the key is a choice).
fn key_of(before: &[Piece]) -> Option<(Vec<String>, usize)> {
    let (last, earlier) = before.split_last()?;
    let Piece::Words(words) = last else { return None };
    if words == "=" {
        let Some(Piece::Choice { words: names, .. }) = earlier.last() else { return None };
        return Some((names.iter().map(|name| (*name).to_owned()).collect(), usize::MAX));
    }
    let (phrase, colon) = match words.strip_suffix('=') {
        Some(phrase) => (phrase, false),
        None => (words.strip_suffix(": ")?, true),
    };
    let start = phrase_start(phrase);
    let opened = start > 0 || !earlier.is_empty();
    let tail = phrase.get(start..)?;
    let key = if colon { key_before_colon(tail, opened)? } else { key_before_equals(tail)? };
    let name = tail.get(key..)?.trim().to_owned();
    let taken = words.len() - start - key;
    Some((vec![name], taken))
}

/// Whether the words behind a hole begin with a unit.
fn has_unit(after: Option<&Piece>) -> bool {
    let Some(Piece::Words(words)) = after else { return false };
    let word: String = words.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    Unit::named(&word, Convention::Binary).is_some()
}

/// The pieces up to the end of the first sentence or to the first field's key, whichever comes first.
fn head(pieces: &[Piece]) -> Vec<Piece> {
    let mut head: Vec<Piece> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Hole { name: None, .. } => {
                if let Some((_, taken)) = pieces.get(..index).and_then(key_of) {
                    let behind_choice = taken == usize::MAX;
                    if let Some(Piece::Words(words)) = head.last_mut() {
                        words.truncate(words.len().saturating_sub(taken));
                    }
                    if behind_choice {
                        head.pop();
                        head.pop();
                    }
                }
                break;
            }
            Piece::Words(words) => match words.find(". ") {
                Some(at) => {
                    head.push(Piece::Words(words.get(..at).unwrap_or_default().to_owned()));
                    break;
                }
                None => head.push(piece.clone()),
            },
            _ => head.push(piece.clone()),
        }
    }
    if let Some(Piece::Words(words)) = head.last_mut() {
        let kept = words.trim_end_matches([' ', '.', ',', ':', ';', '(', '=']).len();
        words.truncate(kept);
    }
    head.retain(|piece| !matches!(piece, Piece::Words(words) if words.is_empty()));
    head
}

/// The fields that the pieces require.
fn keys(pieces: &[Piece]) -> Vec<Key> {
    let mut keys = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        if let Piece::Hole { name: None, kind, .. } = piece
            && let Some((names, _)) = pieces.get(..index).and_then(key_of)
        {
            keys.push(Key { names, kind: *kind, has_unit: has_unit(pieces.get(index + 1)) });
        }
    }
    keys
}

impl Matcher {
    /// Compiles a pattern. `None` where its notation is broken, which a test of the catalogue rules out.
    pub fn compile(pattern: &'static str) -> Option<Matcher> {
        let (_, elements) = all_consuming(elements).parse(pattern).ok()?;
        let variants: Vec<Variant> = decided(&elements)
            .into_iter()
            .map(|pieces| {
                let pieces = joined(pieces);
                Variant { head: head(&pieces), keys: keys(&pieces), pieces }
            })
            .collect();
        let decimal = variants
            .iter()
            .flat_map(|variant| &variant.pieces)
            .any(|piece| matches!(piece, Piece::Hole { kind: Kind::Memory(unit), .. } if *unit == Unit::Gb));
        let convention = if decimal { Convention::Decimal } else { Convention::Binary };
        Some(Matcher { variants, convention })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_names(pattern: &'static str) -> Vec<Vec<String>> {
        let matcher = Matcher::compile(pattern).unwrap();
        matcher.keys(0).iter().map(|key| key.names.clone()).collect()
    }

    #[test]
    fn keys_are_found_before_their_holes() {
        assert_eq!(
            key_names("A begin. bs={list}, {one|two}={n}, avail mem={gib:.2f} GB"),
            [vec!["bs"], vec!["one", "two"], vec!["avail mem"]]
        );
        assert_eq!(key_names("SWAKVPool mem usage: {gib} GB, swa size: {n}"), [["mem usage"], ["swa size"]]);
    }

    #[test]
    fn heads_end_before_the_first_field_or_with_the_first_sentence() {
        for (pattern, expected) in [
            ("Load weight begin. avail mem={gib:.2f} GB", "Load weight begin"),
            ("Capture begin. This can take long. avail mem={gib} GB", "Capture begin"),
            ("SWAKVPool mem usage: {gib} GB", "SWAKVPool"),
            ("Built state steps={n}: mem={gib}GB", "Built state"),
        ] {
            let matcher = Matcher::compile(pattern).unwrap();
            assert_eq!(matcher.variants[0].head, vec![Piece::Words(expected.to_owned())], "{pattern}");
        }
        assert_eq!(Matcher::compile("a={n}, b={n}").unwrap().variants[0].head, vec![]);
    }

    #[test]
    fn optional_parts_nest() {
        assert_eq!(Matcher::compile("a[ b[ c]]").unwrap().variants(), 3);
        assert!(Matcher::compile("a[ b").is_none());
        assert!(Matcher::compile("{nonsense}").is_none());
    }
}
