//! Matching a line against a compiled pattern: exactly, by its first sentence, or as a beginning that was cut.
//!
//! A hole of free text ends at the first place where what follows it in the pattern stands, without going back,
//! so the work grows with the line's length only.

use super::{Kind, Matcher, Piece, Rounding, Variant};
use crate::event::Value;
use crate::grammar::sglang::clause::{grouped, number};

/// How well a line fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// The line ends inside the pattern's words.
    Beginning,
    /// The first sentence is the pattern's; the fields or what follows differ.
    Head,
    /// All of it, letter case aside.
    AnyCase,
    /// All of it.
    Exact,
}

/// A named hole or choice, and where in the line it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hole {
    /// The hole's name.
    pub name: &'static str,
    /// What it holds; `None` for a choice of words.
    pub kind: Option<Kind>,
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    /// How well the line fits.
    pub fit: Fit,
    /// How many bytes of fixed words were met.
    pub strength: usize,
    /// Where the first sentence ends in the line.
    pub head_end: usize,
    /// The named holes.
    pub holes: Vec<Hole>,
    /// Which variant fits.
    pub variant: usize,
}

/// The state of one attempt.
#[derive(Debug, Clone, Default)]
struct Progress {
    at: usize,
    strength: usize,
    other_case: bool,
    holes: Vec<Hole>,
}

/// How an attempt ended.
enum Outcome {
    /// All pieces were met.
    Met(Progress),
    /// The line ended first.
    Exhausted(Progress),
    /// Something else stands there.
    Differs,
}

/// What became of one piece.
enum Step {
    /// It takes so many bytes.
    To(usize),
    /// The line ends in it, so many bytes of fixed words having been met.
    Exhausted(usize),
    /// Something else stands there.
    Differs,
}

/// Fixed words at the beginning of `text`: how many bytes they take, and whether letter case differed.
fn fixed(text: &str, words: &str) -> (Step, bool) {
    let bytes = text.as_bytes();
    let (mut at, mut other_case) = (0usize, false);
    for wanted in words.bytes() {
        match bytes.get(at) {
            None => return (Step::Exhausted(at), other_case),
            Some(found) if wanted == b' ' => {
                if !found.is_ascii_whitespace() {
                    return (Step::Differs, other_case);
                }
                while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
            }
            Some(found) if found.eq_ignore_ascii_case(&wanted) => {
                other_case |= *found != wanted;
                at += 1;
            }
            Some(_) => return (Step::Differs, other_case),
        }
    }
    (Step::To(at), other_case)
}

/// The first place in `text` where `words` stand.
fn find(text: &str, words: &str) -> Option<usize> {
    let stands = |at: &usize| matches!(text.get(*at..).map(|rest| fixed(rest, words).0), Some(Step::To(_)));
    match words.bytes().next() {
        None => Some(0),
        // Any white space will do for a blank.
        Some(b' ') => text.char_indices().map(|(at, _)| at).find(stands),
        // Most of a line is passed over by its bytes: looking at each letter was most of the work.
        Some(first) => {
            let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
            memchr::memchr2_iter(lower, upper, text.as_bytes()).find(stands)
        }
    }
}

/// Whether the line ends inside `words`: where they begin, and how many of their bytes are there.
fn find_beginning(text: &str, words: &str) -> Option<(usize, usize)> {
    let at_end = text.len().saturating_sub(words.len() * 2);
    text.char_indices().filter(|(at, _)| *at >= at_end).find_map(|(at, _)| {
        match fixed(text.get(at..)?, words).0 {
            Step::Exhausted(met) => Some((at, met)),
            _ => None,
        }
    })
}

/// A number rounded as the pattern asks.
fn numeric(text: &str, kind: Kind, rounding: Rounding) -> Step {
    if text.is_empty() {
        return Step::Exhausted(0);
    }
    if kind == Kind::Count && text.starts_with("None") {
        return Step::To(4);
    }
    let Ok((rest, digits)) = number(text) else { return Step::Differs };
    let decimals = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let rounded = match rounding {
        Rounding::Any => kind != Kind::Count || decimals == 0,
        Rounding::Decimals(wanted) if decimals < wanted && matches!(rest, "" | ".") => {
            return Step::Exhausted(0);
        }
        Rounding::Decimals(wanted) => decimals == wanted,
        Rounding::Unrounded => decimals != 2,
    };
    if rounded { Step::To(digits.len()) } else { Step::Differs }
}

/// Free text: up to the words that follow, or to the end where none do.
fn free(text: &str, kind: Kind, next: Option<&Piece>) -> Step {
    let blank = text.find([' ', '\t']);
    let end = match next {
        Some(Piece::Words(words)) => find(text, words),
        Some(_) => blank,
        None => Some(text.len()),
    };
    let inside = |end: usize| kind != Kind::Word || blank.is_none_or(|at| at >= end);
    if let Some(end) = end {
        return if end > 0 && inside(end) { Step::To(end) } else { Step::Differs };
    }
    // The words that follow are not there: the line ends before or inside them, or it is another line.
    match next {
        Some(Piece::Words(words)) => match find_beginning(text, words) {
            Some((at, met)) if inside(at) => Step::Exhausted(met),
            _ if inside(text.len()) => Step::Exhausted(0),
            _ => Step::Differs,
        },
        _ => Step::Exhausted(0),
    }
}

/// A hole at the beginning of `text`.
fn hole(text: &str, kind: Kind, rounding: Rounding, next: Option<&Piece>) -> Step {
    match kind {
        Kind::Count | Kind::Number | Kind::Memory(_) => numeric(text, kind, rounding),
        Kind::List if text.is_empty() => Step::Exhausted(0),
        Kind::List => match grouped(text) {
            Some((Value::List(_), length)) => Step::To(length),
            Some((Value::Cut, _)) => Step::Exhausted(0),
            _ => Step::Differs,
        },
        Kind::Word | Kind::Text => free(text, kind, next),
        Kind::Rest => Step::To(text.len()),
        Kind::Record | Kind::Dict if text.is_empty() => Step::Exhausted(0),
        Kind::Record => {
            let named = text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
            if named.len() < text.len() && named.starts_with('(') {
                Step::To(text.len())
            } else {
                Step::Differs
            }
        }
        Kind::Dict => {
            if text.starts_with('{') {
                Step::To(text.len())
            } else {
                Step::Differs
            }
        }
    }
}

/// Runs the pieces over the line from its beginning.
fn run(pieces: &[Piece], text: &str) -> Outcome {
    let mut progress = Progress::default();
    for (index, piece) in pieces.iter().enumerate() {
        let rest = text.get(progress.at..).unwrap_or_default();
        let start = progress.at;
        let (step, kind, name) = match piece {
            Piece::Words(words) => {
                let (step, other_case) = fixed(rest, words);
                progress.other_case |= other_case;
                if matches!(step, Step::To(_)) {
                    progress.strength += words.len();
                }
                (step, None, None)
            }
            Piece::Choice { name, words } => {
                let (step, other_case) = choose(rest, words);
                progress.other_case |= other_case;
                if let Step::To(length) = step {
                    progress.strength += length;
                }
                (step, None, *name)
            }
            Piece::Hole { name, kind, rounding } => {
                (hole(rest, *kind, *rounding, pieces.get(index + 1)), Some(*kind), *name)
            }
        };
        match step {
            Step::To(length) => progress.at += length,
            Step::Exhausted(met) => {
                progress.strength += met;
                return Outcome::Exhausted(progress);
            }
            Step::Differs => return Outcome::Differs,
        }
        if let Some(name) = name {
            progress.holes.push(Hole { name, kind, start, end: progress.at });
        }
    }
    Outcome::Met(progress)
}

/// The first of the alternatives that stands at the beginning of `text`.
fn choose(text: &str, words: &[&str]) -> (Step, bool) {
    let mut ended = None;
    for word in words {
        match fixed(text, word) {
            (Step::To(length), other_case) => return (Step::To(length), other_case),
            (Step::Exhausted(met), _) => ended = ended.max(Some(met)),
            (Step::Differs, _) => {}
        }
    }
    (ended.map_or(Step::Differs, Step::Exhausted), false)
}

impl Variant {
    /// Whether the first sentence stands at the beginning, ended by something that is no part of a word.
    fn head(&self, text: &str) -> Option<Progress> {
        let Outcome::Met(progress) = run(&self.head, text) else { return None };
        let next = text.get(progress.at..)?.chars().next();
        (!next.is_some_and(char::is_alphanumeric)).then_some(progress)
    }

    fn find(&self, index: usize, text: &str) -> Option<Found> {
        let head = self.head(text);
        let found = |fit, progress: Progress, head_end| Found {
            fit,
            strength: progress.strength,
            head_end,
            holes: progress.holes,
            variant: index,
        };
        match run(&self.pieces, text) {
            Outcome::Met(progress) if progress.at == text.len() => {
                let fit = if progress.other_case { Fit::AnyCase } else { Fit::Exact };
                Some(found(fit, progress, head.map_or(0, |head| head.at)))
            }
            Outcome::Exhausted(progress) if head.is_none() && !text.is_empty() => {
                Some(found(Fit::Beginning, progress, text.len()))
            }
            _ => {
                let head = head.filter(|_| !self.head.is_empty())?;
                let end = head.at;
                Some(found(Fit::Head, head, end))
            }
        }
    }
}

impl Matcher {
    /// Every way in which `text` (no blanks around it) fits, one for each variant that does.
    pub fn fits(&self, text: &str) -> impl Iterator<Item = Found> {
        self.variants.iter().enumerate().filter_map(move |(index, variant)| variant.find(index, text))
    }

    /// Whether the line goes on in this pattern beyond the end of `text`: how many bytes of fixed words it has met
    /// by then, 0 where it does not go on.
    pub fn goes_on(&self, text: &str) -> usize {
        let met = |variant: &Variant| match run(&variant.pieces, text) {
            Outcome::Exhausted(progress) => progress.strength,
            _ => 0,
        };
        self.variants.iter().map(met).max().unwrap_or(0)
    }

    /// Whether `text` is exactly this wording, letter case aside.
    pub fn prints(&self, text: &str) -> bool {
        self.fits(text.trim()).any(|found| found.fit >= Fit::AnyCase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn best(pattern: &'static str, text: &str) -> Option<Found> {
        Matcher::compile(pattern).unwrap().fits(text).max_by_key(|found| found.fit)
    }

    #[test]
    fn prose_holes_are_found_where_they_stand() {
        let text = "Reserving 1.10 GB of the KV budget.";
        let found = best("Reserving {reserved=gib:.2f} GB of the KV budget.", text).unwrap();
        assert_eq!(found.fit, Fit::Exact);
        assert_eq!(&text[found.holes[0].start..found.holes[0].end], "1.10");
    }

    #[test]
    fn fits_are_graded() {
        let pattern = "Load weight begin. avail mem={gib:.2f} GB";
        for (text, fit) in [
            ("Load weight begin. avail mem=20.60 GB", Some(Fit::Exact)),
            ("load weight  begin. avail mem=20.60 GB", Some(Fit::AnyCase)),
            ("Load weight begin, free=20.60 GB", Some(Fit::Head)),
            ("Load weight begin. avail mem=20.6 GB", Some(Fit::Head)),
            ("Load weight be", Some(Fit::Beginning)),
            ("Load weight beginning", None),
            ("Other", None),
        ] {
            assert_eq!(best(pattern, text).map(|found| found.fit), fit, "{text}");
        }
    }

    #[test]
    fn rounding_tells_wordings_apart() {
        assert!(Matcher::compile("x: {gib:repr} GB").unwrap().prints("x: 1.0234375 GB"));
        assert!(!Matcher::compile("x: {gib:repr} GB").unwrap().prints("x: 1.02 GB"));
        assert!(Matcher::compile("n={n}").unwrap().prints("n=None"));
        assert!(!Matcher::compile("n={n}").unwrap().prints("n=1.5"));
    }

    proptest! {
        #[test]
        fn holes_lie_inside_any_text(text in "(KV Cache|Full |is allocated|\\. |#tokens: |[0-9.]{0,4}|é| |GB){0,12}") {
            let pattern = "[{pool=text} ]KV Cache {backing=is allocated|VA upper bound}. #tokens: {n}, {x=rest}";
            for found in Matcher::compile(pattern).unwrap().fits(&text) {
                for hole in found.holes {
                    prop_assert!(text.get(hole.start..hole.end).is_some());
                }
            }
        }
    }
}
