//! One message to what it says: the catalogue first, then exceptions, then labels nobody knows yet.
//!
//! Everything here works on byte offsets into the message; places come in with the event ([`super::parse_line`]).

use super::catalogue::{Row, Template, compiled};
use super::clause::{self, RawField, dotted_name, grouped, measure};
use super::oom;
use super::pattern::{Fit, Found, Hole, Key, Kind};
use crate::event::{Edge, FailureKind, PoolRole, Role, Value, WorkerHint};
use crate::quantity::{Convention, Quantity};
use crate::stage::{Stage, Worker};
use crate::version::VersionRange;
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::tag;
use nom::combinator::eof;
use nom::sequence::terminated;

/// Keys that make a posting of any line they stand in.
const STAGE_KEYS: [&str; 5] =
    ["avail mem", "mem usage", "avail_mem", "available_gpu_mem", "available_cpu_mem"];
/// Last words of a label that opens a stage, and of one that closes it.
const OPENING: [&str; 5] = ["begin", "begins", "start", "starts", "starting"];
const CLOSING: [&str; 9] =
    ["end", "ends", "ended", "finish", "finished", "complete", "completes", "completed", "done"];
/// So many fixed bytes of a cut line make it this line's beginning.
const SURE_BEGINNING: usize = 16;
/// A label longer than this is prose.
const LONGEST_LABEL: usize = 200;

/// What a wording's alternatives change in the row's role: hole, word, change.
const REFINEMENTS: [(&str, &str, Refinement); 5] = [
    ("worker", "target", Refinement::Worker(Worker::Target)),
    ("worker", "draft", Refinement::Worker(Worker::Draft)),
    ("step", "verify", Refinement::Stage(Stage::GraphVerify)),
    ("backing", "VA upper bound", Refinement::Pool(PoolRole::AddressSpace)),
    ("backing", "reserved VA upper bound", Refinement::Pool(PoolRole::AddressSpace)),
];

/// A change of role.
#[derive(Debug, Clone, Copy)]
enum Refinement {
    None,
    Worker(Worker),
    Stage(Stage),
    Pool(PoolRole),
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// The row whose wording it is exactly.
    pub template: Option<&'static Template>,
    /// What it is for.
    pub role: Role,
    /// The releases with this wording.
    pub wording: VersionRange,
    /// The label.
    pub label: String,
    /// The fields, in printed order.
    pub fields: Vec<RawField>,
    /// How many of the figures that the line should hold are there and known.
    pub met: usize,
    /// Whether words or values are missing at the end of the message.
    pub open: bool,
}

/// Reads a message. The flag says whether it is the beginning of a known line, also where the reading is `None`.
pub(super) fn read(text: &str) -> (Option<Reading>, bool) {
    let (text, skipped) = without_bar(text);
    let (reading, begins) = read_bare(text.trim_end());
    let reading = reading.map(|mut reading| {
        shift(&mut reading.fields, skipped);
        reading
    });
    let open = begins || reading.as_ref().is_some_and(|reading| reading.open);
    (reading, open)
}

fn shift(fields: &mut [RawField], by: usize) {
    for field in fields {
        field.start += by;
        field.key_start += by;
    }
}

/// The text behind a progress bar that it was glued to, and how many bytes the bar takes.
fn without_bar(text: &str) -> (&str, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || !text.get(digits..).is_some_and(|rest| rest.starts_with("%|")) {
        return (text, 0);
    }
    let end = ["it/s]", "s/it]"].iter().filter_map(|end| text.find(end).map(|at| at + end.len())).min();
    match end.and_then(|end| text.get(end..)) {
        Some(rest) => (rest, text.len() - rest.len()),
        None => (text, 0),
    }
}

fn read_bare(text: &str) -> (Option<Reading>, bool) {
    let (known, begins) = from_catalogue(text);
    if known.is_some() {
        return (known.map(|reading| with_oom_figures(reading, text)), begins);
    }
    if let Some((name, start)) = exception(text) {
        return (Some(from_exception(text, name, start)), begins);
    }
    if oom::is_out_of_memory(text) {
        return (Some(out_of_memory(text)), begins);
    }
    (unknown_stage(text).or_else(|| unrecognised(text)), begins)
}

/// The catalogue's reading, and whether the text is the beginning of a line that the catalogue knows.
fn from_catalogue(text: &str) -> (Option<Reading>, bool) {
    let mut fits: Vec<(&'static Row, Found)> = Vec::new();
    let mut begins = false;
    for row in compiled() {
        fits.extend(row.matcher.fits(text).map(|found| (row, found)));
        begins |= row.matcher.goes_on(text);
    }
    let best = fits.iter().map(|(_, found)| found.fit).max();
    fits.retain(|(_, found)| Some(found.fit) == best);
    let reading = match best {
        Some(Fit::Exact | Fit::AnyCase) => exact(text, &fits),
        Some(Fit::Head) => nearest(text, &fits),
        Some(Fit::Beginning) => by_fields(text).or_else(|| beginning(text, &fits)),
        None => by_fields(text),
    };
    let begins = begins && fits.iter().any(|(_, found)| found.strength >= SURE_BEGINNING / 2);
    let reading = reading.map(|mut reading| {
        reading.open |= begins;
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

/// How many of the fields have a known value.
fn known<'f>(fields: impl IntoIterator<Item = &'f RawField>) -> usize {
    fields.into_iter().filter(|field| field.value != Value::Cut).count()
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
    let ((row, found), others) = fits.split_first()?;
    if found.strength < SURE_BEGINNING
        || others.iter().any(|(other, _)| other.template.role != row.template.role)
    {
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

/// A field that must hold memory and has no unit was cut; where the row prints none, the row knows the unit.
fn require_unit(field: &mut RawField, key: Option<&Key>) {
    let memory = match key {
        Some(Key { kind: Kind::Memory(unit), has_unit, .. }) => Some((*unit, *has_unit)),
        Some(_) => None,
        None if is_stage_key(&field.name) => Some((crate::quantity::Unit::Gib, true)),
        None => None,
    };
    let Some((unit, has_unit)) = memory else { return };
    field.value = match &field.value {
        Value::Memory(quantity) => Value::Memory(*quantity),
        Value::Number(decimal) if !has_unit => {
            Quantity::from_print(decimal, unit).map_or(Value::Cut, Value::Memory)
        }
        _ => Value::Cut,
    };
}

fn is_stage_key(name: &str) -> bool {
    STAGE_KEYS.iter().any(|key| key.eq_ignore_ascii_case(name))
}

/// Where a line lacks its end, the value that touches the end may be the beginning of a longer one. Says whether
/// the last value is unknown.
fn cut_at_end(text: &str, fields: &mut [RawField], incomplete: bool) -> bool {
    let Some(last) = fields.last_mut().filter(|field| field.end() == text.len()) else { return false };
    // An amount printed without its unit (the unbalanced message) ends in a digit: it may go on.
    let bare = text.ends_with(|character: char| character.is_ascii_digit());
    if incomplete && (bare || matches!(last.value, Value::Number(_) | Value::Word(_))) {
        last.value = Value::Cut;
    }
    last.value == Value::Cut
}

/// The role that the alternatives in the wording give.
fn refined(role: Role, text: &str, holes: &[Hole]) -> Role {
    holes.iter().fold(role, |role, hole| {
        let word = text.get(hole.start..hole.end).unwrap_or_default();
        let change = REFINEMENTS
            .iter()
            .find(|(name, printed, _)| *name == hole.name && printed.eq_ignore_ascii_case(word))
            .map_or(Refinement::None, |(_, _, change)| *change);
        match (change, role) {
            (Refinement::Worker(Worker::Draft), Role::Stage(Stage::GraphDecode, edge, _)) => {
                Role::Stage(Stage::GraphDraft, edge, WorkerHint::Known(Worker::Draft))
            }
            (Refinement::Worker(worker), Role::Stage(stage, edge, _)) => {
                Role::Stage(stage, edge, WorkerHint::Known(worker))
            }
            (Refinement::Stage(stage), Role::Stage(_, edge, hint)) => Role::Stage(stage, edge, hint),
            (Refinement::Pool(pool), Role::Pool(_)) => Role::Pool(pool),
            (_, role) => role,
        }
    })
}

/// The name of a Python exception at the beginning of its last line, and where its text begins.
fn exception(text: &str) -> Option<(&str, usize)> {
    let (rest, name) = terminated(dotted_name, alt((tag(": "), eof))).parse(text).ok()?;
    let last = name.rsplit('.').next()?;
    let usual = ["Error", "Exception", "Interrupt", "Exit"].iter().any(|end| last.ends_with(end));
    let qualified = name.contains('.')
        && last.starts_with(|character: char| character.is_ascii_uppercase())
        && name.starts_with(|character: char| character.is_ascii_alphabetic())
        && !last.ends_with("Warning");
    (usual || qualified).then_some((name, text.len() - rest.len()))
}

/// The last line of an exception: what its text says where that is known, its kind otherwise.
fn from_exception(text: &str, name: &str, start: usize) -> Reading {
    let inner = text.get(start..).unwrap_or_default();
    let mut reading = match from_catalogue(inner).0 {
        Some(known) => with_oom_figures(known, inner),
        None if oom::is_out_of_memory(text) => out_of_memory(inner),
        None => Reading {
            template: None,
            role: Role::Failure(FailureKind::Exception),
            wording: VersionRange::ALL,
            label: name.to_owned(),
            fields: Vec::new(),
            met: 0,
            open: false,
        },
    };
    shift(&mut reading.fields, start);
    let value = Value::Word(name.to_owned());
    let named = RawField { name: "exception".to_owned(), value, start: 0, length: name.len(), key_start: 0 };
    reading.fields.insert(0, named);
    reading
}

/// An out-of-memory sentence.
fn out_of_memory(text: &str) -> Reading {
    let fields = oom::figures(text);
    let ended = text.ends_with(['.', ')', '`', '\'']);
    let cut = fields.last().is_some_and(|field| field.value == Value::Cut);
    Reading {
        template: None,
        role: Role::Failure(FailureKind::OutOfMemory),
        wording: VersionRange::ALL,
        label: text.split_inclusive("memory").next().unwrap_or_default().trim().to_owned(),
        open: cut || (!ended && !fields.is_empty()),
        met: known(&fields),
        fields,
    }
}

/// Adds the figures of an out-of-memory sentence to the failure that it caused.
fn with_oom_figures(mut reading: Reading, text: &str) -> Reading {
    let caused =
        matches!(reading.role, Role::Failure(FailureKind::CaptureFailed | FailureKind::SchedulerException));
    if caused && oom::is_out_of_memory(text) {
        reading.fields.extend(oom::figures(text));
    }
    reading
}

/// A line nobody knows that prints a stage's figures: a stage under its own words, or a bar.
fn unknown_stage(text: &str) -> Option<Reading> {
    let mut fields = clause::fields(text, 0, Convention::Binary);
    let first = fields.first()?.key_start;
    if !fields.iter().any(|field| is_stage_key(&field.name)) {
        return None;
    }
    for field in &mut fields {
        require_unit(field, None);
    }
    let cut = cut_at_end(text, &mut fields, false);
    let label = clause::label(text, first);
    let role = if label.is_empty() || label.len() > LONGEST_LABEL {
        Role::Unrecognised
    } else if text.contains("%|") {
        Role::Progress(Stage::Other)
    } else {
        Role::Stage(Stage::Other, edge(label), WorkerHint::ByOrder)
    };
    let label = label.to_owned();
    let met = known(fields.iter().filter(|field| is_stage_key(&field.name)));
    Some(Reading { template: None, role, wording: VersionRange::ALL, label, fields, met, open: cut })
}

/// Which end of a stage a label's words name: the last such word tells.
fn edge(label: &str) -> Edge {
    let lower = label.to_ascii_lowercase();
    lower
        .split(|character: char| !character.is_alphanumeric())
        .rev()
        .find_map(|word| match word {
            _ if OPENING.contains(&word) => Some(Edge::Begin),
            _ if CLOSING.contains(&word) => Some(Edge::End),
            _ => None,
        })
        .unwrap_or(Edge::Whole)
}

/// A line with an amount of memory in it that fits nothing.
fn unrecognised(text: &str) -> Option<Reading> {
    super::unrecognised::looks_like_memory(text).then(|| {
        let fields = clause::fields(text, 0, Convention::Binary);
        let end = fields.first().map_or(text.len(), |field| field.key_start);
        Reading {
            template: None,
            role: Role::Unrecognised,
            wording: VersionRange::ALL,
            label: clause::label(text, end).to_owned(),
            fields,
            met: 0,
            open: false,
        }
    })
}
