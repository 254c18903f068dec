//! Lines of the catalogue: exactly its wording, its label with other fields, or the beginning of one.

use super::Reading;
use super::role::refined;
use super::values::{cut_at_end, known, require_unit};
use crate::event::{Role, Value};
use crate::grammar::sglang::catalogue::{Row, candidates, compiled};
use crate::grammar::sglang::clause::{self, RawField, grouped, measure};
use crate::grammar::sglang::pattern::{Fit, Found, Hole, Key, Kind};
use crate::quantity::{Convention, Quantity};
use crate::version::VersionRange;

/// So many fixed bytes of a cut line make it this line's beginning.
const SURE_BEGINNING: usize = 16;
/// So many make it worth waiting for the rest.
const POSSIBLE_BEGINNING: usize = 4;

/// The catalogue's reading; and if the text is the beginning of a line that the catalogue knows, how many bytes of
/// fixed words it has.
pub(super) fn from_catalogue(text: &str) -> (Option<Reading>, usize) {
    let mut fits: Vec<(&'static Row, Found)> = Vec::new();
    let mut begins = 0;
    for row in candidates(text) {
        fits.extend(row.matcher.fits(text).map(|found| (row, found)));
        begins = row.matcher.goes_on(text).max(begins);
    }
    let best = fits.iter().map(|(_, found)| found.fit).max();
    fits.retain(|(_, found)| Some(found.fit) == best);
    let reading = match best {
        Some(Fit::Exact | Fit::AnyCase) => exact(text, &fits),
        Some(Fit::Head) => nearest(text, &fits),
        Some(Fit::Beginning) => by_fields(text).or_else(|| beginning(text, &fits)),
        None => by_fields(text),
    };
    let begins = if begins >= POSSIBLE_BEGINNING { begins } else { 0 };
    let reading = reading.map(|mut reading| {
        reading.open |= begins > 0;
        reading
    });
    (reading, begins)
}

/// The reading of a line whose wording rows print exactly: the row with the most fixed words, the earliest of
/// several. The releases are the union over all such rows, for the line could be any of theirs.
fn exact(text: &str, fits: &[(&'static Row, Found)]) -> Option<Reading> {
    let strongest = fits.iter().map(|(_, found)| found.strength).max()?;
    let (row, found) = fits.iter().find(|(_, found)| found.strength == strongest)?;
    let wording = fits.iter().map(|(row, _)| row.template.releases()).reduce(|one, other| VersionRange {
        first: one.first.min(other.first),
        last: one.last.max(other.last),
    })?;
    let fields = row_fields(text, row, found);
    Some(Reading {
        template: Some(row.template),
        role: refined(row.template.role, text, &found.holes),
        wording,
        label: label(text, found, &fields),
        met: known(&fields),
        fields,
        open: false,
    })
}

/// The reading of a line that has a row's label and other fields: the role of the row whose fields are nearest.
/// It gets no template, for its wording proves no release.
fn nearest(text: &str, fits: &[(&'static Row, Found)]) -> Option<Reading> {
    let strongest = fits.iter().map(|(_, found)| found.strength).max()?;
    let ranked = fits.iter().filter(|(_, found)| found.strength == strongest).map(|(row, found)| {
        let fields = row_fields(text, row, found);
        let (score, missing) = similarity(&fields, row.matcher.keys(found.variant));
        (score, missing, *row, found, fields)
    });
    // The first of equal scores: `max_by_key` would take the last.
    let (_, missing, row, found, mut fields) =
        ranked.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let cut = cut_at_end(text, &mut fields, missing > 0);
    Some(Reading {
        template: None,
        role: refined(row.template.role, text, &found.holes),
        wording: VersionRange::ALL,
        label: label(text, found, &fields),
        met: known(fields.iter().filter(|field| row.matcher.key(&field.name).is_some())),
        fields,
        open: missing > 0 || cut,
    })
}

/// How near the fields are to a row's: more is nearer; and how many of the row's are missing.
fn similarity(fields: &[RawField], keys: &[Key]) -> (i64, usize) {
    let has = |key: &Key| fields.iter().any(|field| is_named(field, key));
    let shared = keys.iter().filter(|key| has(key)).count();
    let missing = keys.len() - shared;
    let known: Vec<&RawField> =
        fields.iter().filter(|field| keys.iter().any(|key| is_named(field, key))).collect();
    let in_order =
        known.len() == keys.len() && known.iter().zip(keys).all(|(field, key)| is_named(field, key));
    let extra = fields.len() - known.len();
    let score = 4 * shared as i64 - 2 * missing as i64 - 2 * extra as i64 + i64::from(in_order);
    (score, missing)
}

fn is_named(field: &RawField, key: &Key) -> bool {
    key.names.iter().any(|name| name.eq_ignore_ascii_case(&field.name))
}

/// The reading of a line without a label (the summary in another order): the row without a label that shares
/// most of its fields, two and half of them at least.
fn by_fields(text: &str) -> Option<Reading> {
    let mut fields = clause::fields(text, 0, Convention::Binary);
    if fields.first().is_none_or(|field| field.key_start > 0) {
        return None;
    }
    let (_, missing, row) = compiled()
        .iter()
        .flat_map(|row| (0..row.matcher.variants()).map(move |variant| (row, row.matcher.keys(variant))))
        .filter(|(row, _)| row.template.role == Role::Summary)
        .filter_map(|(row, keys)| {
            let (score, missing) = similarity(&fields, keys);
            let shared = keys.len() - missing;
            (shared >= 2 && shared * 2 >= keys.len()).then_some((score, missing, row))
        })
        .reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    for field in &mut fields {
        require_unit(field, row.matcher.key(&field.name));
    }
    let cut = cut_at_end(text, &mut fields, missing > 0);
    Some(Reading {
        template: None,
        role: row.template.role,
        wording: VersionRange::ALL,
        label: String::new(),
        met: known(fields.iter().filter(|field| row.matcher.key(&field.name).is_some())),
        fields,
        open: cut || missing > 0,
    })
}

/// The reading of a line that breaks off inside a label: only where all rows that begin so agree on its role.
fn beginning(text: &str, fits: &[(&'static Row, Found)]) -> Option<Reading> {
    let strongest = fits.iter().map(|(_, found)| found.strength).max()?;
    let mut likely = fits.iter().filter(|(_, found)| found.strength == strongest).map(|(row, _)| *row);
    let row = likely.next()?;
    if strongest < SURE_BEGINNING || likely.any(|other| other.template.role != row.template.role) {
        return None;
    }
    let mut fields = clause::fields(text, 0, row.matcher.convention);
    fields.retain(|field| row.matcher.key(&field.name).is_some());
    for field in &mut fields {
        require_unit(field, row.matcher.key(&field.name));
    }
    cut_at_end(text, &mut fields, true);
    Some(Reading {
        template: None,
        role: row.template.role,
        wording: VersionRange::ALL,
        label: clause::label(text, fields.first().map_or(text.len(), |field| field.key_start)).to_owned(),
        met: known(&fields),
        fields,
        open: true,
    })
}

/// The words before the first field; of a line without keys, its first sentence.
fn label(text: &str, found: &Found, fields: &[RawField]) -> String {
    let first = fields.first().map_or(text.len(), |field| field.key_start);
    let end =
        if found.head_end > 0 && found.fit >= Fit::Head { found.head_end.min(text.len()) } else { first };
    clause::label(text, end).to_owned()
}

/// The fields of a line that fits a row: those with keys behind the label, and the named holes.
fn row_fields(text: &str, row: &Row, found: &Found) -> Vec<RawField> {
    let mut fields: Vec<RawField> =
        found.holes.iter().map(|hole| hole_field(text, hole, row.matcher.convention)).collect();
    let prose = row.matcher.keys(found.variant).is_empty() && found.fit >= Fit::AnyCase;
    if !prose {
        let mut keyed = clause::fields(text, found.head_end, row.matcher.convention);
        keyed.retain(|field| {
            found.holes.iter().all(|hole| field.end() <= hole.start || field.start >= hole.end)
        });
        for field in &mut keyed {
            require_unit(field, row.matcher.key(&field.name));
        }
        fields.extend(keyed);
        fields.sort_by_key(|field| field.start);
    }
    fields
}

/// A named hole as a field.
fn hole_field(text: &str, hole: &Hole, convention: Convention) -> RawField {
    let printed = text.get(hole.start..hole.end).unwrap_or_default();
    let behind = text.get(hole.start..).unwrap_or_default();
    let mut length = printed.len();
    let value = match hole.kind {
        Some(Kind::Count | Kind::Number) => measure(printed, convention).map(|(value, _)| value),
        Some(Kind::Memory(unit)) => measure(behind, convention).and_then(|(value, measured)| match value {
            Value::Number(decimal) => Quantity::from_print(&decimal, unit).map(Value::Memory),
            value => {
                length = measured;
                Some(value)
            }
        }),
        Some(Kind::List) => grouped(printed).map(|(value, _)| value),
        _ => None,
    };
    let value = value.unwrap_or_else(|| Value::Word(printed.to_owned()));
    RawField { name: hole.name.to_owned(), value, start: hole.start, length, key_start: hole.start }
}
