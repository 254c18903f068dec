//! The rows of a ledger table: from the postings of ranks that agree to words and figures.

use super::View;
use super::fold::{middle_text, spread_text};
use super::names::{posting_name, posting_names};
use super::page::Tone;
use super::sheet::Note;
use crate::launch::{Expectation, expectation};
use crate::ledger::{Ledger, Part, Posting, PostingKind, PostingState};
use crate::quantity::{Quantity, group_digits, mib_text, mib_whole};
use crate::reconcile::BridgeTerm;
use crate::stage::{Stage, Worker};
use crate::text;

/// The column of a sheet that `used` stands in: notes put their figures there.
pub(super) const USED_COLUMN: usize = 2;

/// What a row of the ledger table stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// In use before the first free figure.
    Held,
    /// A stage.
    Stage(Stage),
    /// Between two stages, or between the last of them and the ready line.
    Gap,
    /// Free at the end.
    Left,
}

/// One row of the ledger table.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    /// What it stands for.
    pub(super) kind: EntryKind,
    /// Names, longest first: the first that fits is taken.
    pub(super) names: Vec<String>,
    pub(super) before: Option<String>,
    pub(super) used: Option<String>,
    pub(super) after: Option<String>,
    /// What the bar shows.
    pub(super) drawn: Option<Quantity>,
    /// Free memory before and after, of the first rank.
    pub(super) levels: (Option<Quantity>, Option<Quantity>),
    /// The posting of the first rank, where the row is one.
    pub(super) posting: Option<&'a Posting>,
    pub(super) tone: Tone,
    pub(super) notes: Vec<Note>,
}

impl Entry<'_> {
    /// The longest name of at most `columns`, or the shortest, cut.
    pub(super) fn name(&self, columns: usize) -> String {
        let mut names = self.names.iter().map(|name| text::clean(name, false));
        let fitting = names.find(|name| text::width(name) <= columns);
        let shortest = || text::clean(self.names.last().map_or("", String::as_str), false);
        fitting.unwrap_or_else(|| text::cut(&shortest(), columns, "…"))
    }
}

/// The rows for a group of ranks; the first of them stands for all where only one can.
pub(super) fn entries<'a>(view: &View<'a>, group: &[usize]) -> Vec<Entry<'a>> {
    let ledgers: Vec<&'a Ledger> = group.iter().filter_map(|rank| view.ledger(*rank)).collect();
    let Some(first) = ledgers.first() else { return Vec::new() };
    let opens = first
        .postings
        .iter()
        .position(|posting| posting.before.is_some() || posting.after.is_some())
        .unwrap_or(first.postings.len());
    let mut rows = Vec::new();
    rows.extend(held(view, group, &ledgers, opens));
    for index in opens..first.postings.len() {
        let same: Vec<&'a Posting> = ledgers.iter().filter_map(|ledger| ledger.postings.get(index)).collect();
        rows.extend(posted(&same));
    }
    rows.extend(kept(&ledgers));
    rows.extend(left(&ledgers));
    rows
}

fn figures<'a, T>(
    of: &'a [T],
    figure: impl Fn(&'a T) -> Option<Quantity> + 'a,
) -> impl Iterator<Item = Quantity> + 'a {
    of.iter().filter_map(figure)
}

fn dim(label: impl Into<String>, used: Option<String>, remark: impl Into<String>) -> Note {
    let figure = used.map(|used| (USED_COLUMN, used));
    Note { label: label.into(), figure, remark: remark.into(), tone: Tone::Dim }
}

/// What was in use before the first free figure, and what the log says of it.
fn held<'a>(view: &View<'a>, group: &[usize], ledgers: &[&'a Ledger], opens: usize) -> Option<Entry<'a>> {
    let first = ledgers.first()?;
    first.opening?;
    let bridge = |term: BridgeTerm| {
        group.iter().filter_map(move |rank| view.analysis.reconciliation(view.index, *rank)?.amount(term))
    };
    let before = |(total, reserve): (Quantity, Quantity)| total - reserve;
    let capacity = bridge(BridgeTerm::Total).zip(bridge(BridgeTerm::Reserve)).map(before);
    let held = spread_text(bridge(BridgeTerm::HeldBefore));
    let mut notes = Vec::new();
    let mut claimed = Quantity::ZERO;
    for index in 0..opens {
        let same: Vec<&Posting> = ledgers.iter().filter_map(|ledger| ledger.postings.get(index)).collect();
        let Some(posting) = same.first() else { continue };
        claimed = claimed + posting.claimed.unwrap_or(Quantity::ZERO);
        match spread_text(figures(&same, |posting| posting.claimed)) {
            // From 0.5.23 on init prints no figure, and a second line tells what taking the baseline cost: mostly nothing.
            None => notes.push(dim(posting_name(posting), None, "no figure printed")),
            used if posting.label.eq_ignore_ascii_case("memory baseline taken") => {
                notes.push(dim("taking the baseline".to_string(), used, "logged"));
            }
            used => notes.push(dim(posting_name(posting), used, "logged")),
        }
    }
    let rest: Vec<Quantity> = bridge(BridgeTerm::HeldBefore).map(|held| held - claimed).collect();
    if rest.is_empty() && notes.is_empty() {
        return None;
    }
    if !notes.is_empty() && !rest.is_empty() {
        notes.push(dim("contexts, other processes", spread_text(rest.iter().copied()), "derived"));
    }
    Some(Entry {
        names: vec!["held before the first figure".into(), "before the first figure".into()],
        before: middle_text(capacity),
        used: held,
        after: middle_text(figures(ledgers, |ledger| ledger.opening)),
        drawn: bridge(BridgeTerm::HeldBefore).next(),
        kind: EntryKind::Held,
        levels: (
            bridge(BridgeTerm::Total).zip(bridge(BridgeTerm::Reserve)).map(before).next(),
            first.opening,
        ),
        posting: None,
        tone: Tone::Plain,
        notes,
    })
}

fn posted<'a>(same: &[&'a Posting]) -> Option<Entry<'a>> {
    let posting = *same.first()?;
    let gap = posting.kind == PostingKind::Gap;
    let used = spread_text(figures(same, |posting| posting.used));
    let unknown = (posting.state == PostingState::Begun).then(|| "?".to_string());
    Some(Entry {
        names: posting_names(posting),
        before: middle_text(figures(same, |posting| posting.before)),
        used: used.or(unknown),
        after: middle_text(figures(same, |posting| posting.after)),
        drawn: posting.used,
        kind: if gap { EntryKind::Gap } else { EntryKind::Stage(posting.stage) },
        levels: (posting.before, posting.after),
        posting: Some(posting),
        tone: if gap { Tone::Dim } else { Tone::Plain },
        notes: notes(same, posting),
    })
}

fn notes(same: &[&Posting], posting: &Posting) -> Vec<Note> {
    let mut notes = part_notes(&posting.parts);
    if posting.beyond_parts().is_some_and(|beyond| !beyond.contains(0)) {
        let pool = matches!(posting.stage, Stage::KvCache | Stage::MemoryPool);
        let name = if pool { "request table, padding" } else { "beyond its parts" };
        notes.push(dim(name, spread_text(figures(same, |posting| posting.beyond_parts())), ""));
    }
    let claim = posting.claimed.map(mib_text);
    match (posting.difference(), posting.claimed, claim) {
        (Some(difference), Some(claimed), Some(claim)) if !difference.meets(claimed) => notes.push(Note {
            tone: Tone::Error,
            ..dim("claimed by the log", Some(claim), "does not fit the levels")
        }),
        (None, Some(_), _) if posting.used.is_some() => {
            let balance = if posting.in_chain { "" } else { ", not in the balance" };
            notes.push(dim(format!("by its own claim, no level printed{balance}"), None, ""));
        }
        _ => {}
    }
    if posting.state == PostingState::Begun {
        let came_to = posting
            .progress
            .last()
            .map(|point| format!(" · came to {} with {} MiB free", point.label, mib_whole(point.available)));
        let label = format!("begun, its end was not printed{}", came_to.unwrap_or_default());
        // Pools of a rank whose stage another rank prints the end of are no cause for alarm.
        let tone = if posting.before.is_some() { Tone::Warning } else { Tone::Dim };
        notes.push(Note { tone, ..dim(label, None, "") });
    }
    notes
}

/// Pools on one line, as far as they hold the same number of tokens: `K 52,869 · V 52,869 · 845,985 tokens`.
fn part_notes(parts: &[Part]) -> Vec<Note> {
    parts
        .chunk_by(|one, other| one.tokens == other.tokens)
        .map(|pools| {
            let mut pieces: Vec<String> =
                pools.iter().map(|part| format!("{} {}", part.label, mib_whole(part.size))).collect();
            let tokens = pools.first().and_then(|part| part.tokens);
            pieces.extend(tokens.map(|tokens| format!("{} tokens", group_digits(i128::from(tokens)))));
            dim(pieces.join(" · "), None, "")
        })
        .collect()
}

/// Between the last stage and the ready line. Equal prints say that nothing is known to have moved.
fn kept<'a>(ledgers: &[&'a Ledger]) -> Option<Entry<'a>> {
    let first = ledgers.first()?;
    let kept = first.kept_at_ready().filter(|_| first.closing != first.headroom)?;
    Some(Entry {
        names: vec!["(kept between last stage and ready)".into(), "(kept at ready)".into()],
        before: middle_text(figures(ledgers, |ledger| ledger.closing)),
        used: spread_text(figures(ledgers, |ledger| ledger.kept_at_ready())),
        after: middle_text(figures(ledgers, |ledger| ledger.headroom)),
        drawn: Some(kept),
        kind: EntryKind::Gap,
        levels: (first.closing, first.headroom),
        posting: None,
        tone: Tone::Dim,
        notes: Vec::new(),
    })
}

/// What is left.
fn left<'a>(ledgers: &[&'a Ledger]) -> Option<Entry<'a>> {
    let first = ledgers.first()?;
    let free = first.final_free()?;
    Some(Entry {
        names: vec![if first.headroom.is_some() { "ready" } else { "free at the end" }.into()],
        before: None,
        used: None,
        after: middle_text(figures(ledgers, |ledger| ledger.final_free())),
        drawn: Some(free),
        kind: EntryKind::Left,
        levels: (Some(free), None),
        posting: None,
        tone: Tone::Strong,
        notes: Vec::new(),
    })
}

/// Captures that the ledger of a rank does not have, and why: a line each.
pub(super) fn absent(view: &View<'_>, rank: usize) -> Vec<String> {
    let launch = &view.launch.launch;
    let (Some(facts), Some(ledger)) = (launch.ranks.get(rank), view.ledger(rank)) else { return Vec::new() };
    [Stage::GraphDecode, Stage::GraphPrefill]
        .into_iter()
        .filter(|stage| ledger.stages(*stage).next().is_none())
        .filter_map(|stage| {
            let name = super::names::stage_name(stage);
            match expectation(launch, &facts.tag, stage, Worker::Target) {
                Expectation::Disabled(why) => Some(format!("no {name}: {why}")),
                Expectation::OtherRankPrints => Some(format!("{name}: printed by TP rank 0 only")),
                _ => None,
            }
        })
        .collect()
}
