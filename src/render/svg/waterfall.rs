//! The waterfall of a rank: from the whole card down to what is left, each step where the one before it ended.

use super::bars::{Bar, Chart, Row};
use super::colours::Kind;
use crate::ledger::Posting;
use crate::quantity::{Quantity, mib_text, mib_whole};
use crate::reconcile::BridgeTerm;
use crate::render::View;
use crate::render::entries::{Entry, EntryKind, entries};
use crate::render::names::rank_names;

/// Columns of a row's name.
const NAME: usize = 36;
/// So many steps are drawn, so that a log of thousands does not make a picture of thousands.
const MOST: usize = 100;

/// The waterfall of one rank. `None` where its ledger has no figure.
pub(in crate::render) fn waterfall(view: &View<'_>, rank: usize, id: &str) -> Option<Chart> {
    let ledger = view.ledger(rank)?;
    let opening = ledger.opening?;
    let reconciliation = view.analysis.reconciliation(view.index, rank);
    let term = |term: BridgeTerm| reconciliation.and_then(|one| one.amount(term));
    let card = term(BridgeTerm::Total);
    let whole = card.unwrap_or(opening).mib();
    if whole <= 0.0 {
        return None;
    }
    let mut rows = Vec::new();
    rows.extend(card.map(|card| whole_row("card", card, whole)));
    if let Some(reserve) = term(BridgeTerm::Reserve).filter(|reserve| reserve.high() > 0) {
        let amount = mib_text(reserve);
        rows.push(Row {
            name: "kept by the driver".into(),
            figure: amount.clone(),
            bars: vec![bar(0.0, reserve.mib(), Kind::Kept, format!("kept by the driver: {amount} MiB"))],
            link: Some(reserve.mib()),
            ..Row::default()
        });
    }
    if card.is_none() {
        rows.push(whole_row("free at the first figure", opening, whole));
    }
    let mut taken = rows.last().and_then(|row| row.link).unwrap_or(0.0);
    // Without the card's size nothing is known of what went before the first figure.
    let drawn = |entry: &Entry<'_>| card.is_some() || entry.kind != EntryKind::Held;
    let mut steps: Vec<Entry<'_>> = entries(view, &[rank]).into_iter().filter(drawn).collect();
    let end = steps.pop();
    let more = steps.len().saturating_sub(MOST);
    for entry in steps.iter().take(MOST) {
        rows.extend(step(entry, whole, &mut taken));
    }
    if more > 0 {
        rows.push(Row { name: format!("… {more} more entries"), ..Row::default() });
    }
    rows.extend(end.and_then(|entry| step(&entry, whole, &mut taken)));
    let name = rank_names(&view.launch.launch, &[rank]);
    let device = view.launch.devices.get(rank).and_then(|choice| choice.device);
    let device = device.map(|device| format!("GPU {device}"));
    let whose: Vec<String> = name.into_iter().chain(device).collect();
    let whose = if whose.is_empty() { String::new() } else { format!(" of {}", whose.join(", ")) };
    let said: Vec<String> = rows.iter().map(|row| format!("{} {}", row.name, row.figure)).collect();
    Some(Chart {
        id: id.to_string(),
        title: format!("Where the memory{whose} went"),
        description: format!("Bars from the top, in MiB: {}.", said.join("; ")),
        whole,
        rows,
    })
}

fn bar(from: f64, to: f64, kind: Kind, words: String) -> Bar {
    Bar { from, to, kind, words }
}

fn whole_row(name: &str, amount: Quantity, whole: f64) -> Row {
    let figure = mib_whole(amount);
    let words = format!("{name}: {figure} MiB");
    Row {
        name: name.into(),
        figure,
        strong: true,
        bars: vec![bar(0.0, whole, Kind::Free, words)],
        link: Some(0.0),
        ..Row::default()
    }
}

/// A row of the ledger as a step. `taken` is where the last one ended.
fn step(entry: &Entry<'_>, whole: f64, taken: &mut f64) -> Option<Row> {
    let name = entry.name(NAME);
    let (before, after) = entry.levels;
    let from = before.map_or(*taken, |before| whole - before.mib());
    if entry.kind == EntryKind::Left {
        let free = entry.after.clone().unwrap_or_default();
        let words = format!("{name}: {free} MiB free");
        let bars = vec![bar(from, whole, Kind::Free, words)];
        return Some(Row { name, figure: format!("{free} free"), strong: true, bars, ..Row::default() });
    }
    let to = after.map(|after| whole - after.mib()).or_else(|| Some(from + entry.drawn?.mib()));
    let Some(to) = to else {
        // A stage without an amount is in the chart by its name only.
        return Some(Row { name, figure: "?".into(), link: Some(from), ..Row::default() });
    };
    *taken = to;
    let kind = if to < from { Kind::Back } else { Kind::of(entry.kind) };
    let used = entry.used.clone().unwrap_or_else(|| "?".into());
    Some(Row {
        bars: vec![bar(from, to, kind, words(entry, &name, &used))],
        parts: entry.posting.map(|posting| parts(posting, from)).unwrap_or_default(),
        claim: entry.posting.and_then(|posting| claim(posting, from)),
        tolerance: entry.drawn.map(|drawn| (from + drawn.low_mib(), from + drawn.high_mib())),
        link: Some(to),
        figure: used,
        name,
        strong: false,
    })
}

/// The exact figures of a step and where they stand.
fn words(entry: &Entry<'_>, name: &str, used: &str) -> String {
    let mut words = match entry.drawn {
        Some(drawn) => format!("{name}: {} MiB used", mib_text(drawn)),
        None => format!("{name}: {used} MiB used"),
    };
    let level = |what: &str, level: Option<Quantity>| {
        level.map(|level| format!("; free {what} {}", mib_text(level))).unwrap_or_default()
    };
    words.push_str(&level("before", entry.levels.0));
    words.push_str(&level("after", entry.levels.1));
    let places = entry.posting.map(|posting| posting.places.as_slice()).unwrap_or_default();
    let places: Vec<String> = places.iter().take(3).map(|place| place.to_string()).collect();
    if !places.is_empty() {
        words.push_str(&format!("; {}", places.join(", ")));
    }
    words
}

/// Pools inside the stage, one after the other.
fn parts(posting: &Posting, from: f64) -> Vec<(f64, f64, String)> {
    let mut at = from;
    let part = |part: &crate::ledger::Part| {
        let begin = at;
        at += part.size.mib();
        (begin, at, format!("{}: {} MiB; {}", part.label, mib_text(part.size), part.place))
    };
    posting.parts.iter().map(part).collect()
}

/// What the log says that the stage used, to compare with what the levels say.
fn claim(posting: &Posting, from: f64) -> Option<(f64, f64, String)> {
    let claimed = posting.claimed?;
    let words = format!("claimed by the log: {} MiB (mem usage)", mib_whole(claimed));
    Some((from, from + claimed.mib(), words))
}
