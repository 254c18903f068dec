//! The budget section: how the tokens came about, term by term, and what the slack was used for.

use super::View;
use super::names::{rank_names, stage_name, tolerance};
use super::page::{Page, Tone};
use super::sheet::{Align, Sheet, SheetRow};
use crate::budget::audit::{
    Audit, BaselineBasis, DefaultAudit, FractionFact, SlackItem, TokenVerdict, Tokens, World,
};
use crate::ledger::PostingKind;
use crate::place::Place;
use crate::quantity::{Decimal, KIB, Quantity, group_digits, mib_text, mib_whole};
use crate::stage::Worker;

/// Worlds shown before the rest is counted.
const MOST_WORLDS: usize = 2;

/// Writes the budget of a launch. Without a fraction there is none to explain.
pub(super) fn write(page: &mut Page, view: &View<'_>) {
    let Some(audit) = &view.launch.audit else { return };
    let Some(fraction) = &audit.fraction else { return };
    let mut shown: Vec<&World> = Vec::new();
    for world in &audit.worlds {
        // Replicas that came out alike are told once.
        if !shown.iter().any(|other| same_figures(other, world)) {
            shown.push(world);
        }
    }
    for world in shown.iter().take(MOST_WORLDS) {
        page.gap();
        section(page, view, audit, fraction, world);
    }
    if shown.len() > MOST_WORLDS {
        let more = format!(
            "{} more replicas have budgets of their own: --format json has all",
            shown.len() - MOST_WORLDS
        );
        page.prose_behind((Tone::Plain, "  "), Tone::Dim, &more);
    }
}

fn same_figures(one: &World, other: &World) -> bool {
    let printed = |world: &World| world.tokens.as_ref().and_then(|tokens| tokens.printed);
    one.rest == other.rest && printed(one) == printed(other)
}

fn section(page: &mut Page, view: &View<'_>, audit: &Audit, fraction: &FractionFact, world: &World) {
    let Some(baseline) = &world.baseline else { return };
    let mut title = match world.tokens.as_ref().and_then(|tokens| tokens.printed) {
        Some(tokens) => format!("how {} tokens came about", group_digits(tokens)),
        None => "what was left for KV".to_string(),
    };
    if let Some(names) = rank_names(&view.launch.launch, &world.ranks).filter(|_| audit.worlds.len() > 1) {
        title = format!("{title}, {names}");
    }
    let columns =
        [(title, Align::Left), ("MiB".to_string(), Align::Right), ("from".to_string(), Align::Left)];
    Sheet { columns: columns.into(), rows: rows(fraction, world) }.write(page);
    prose(page, &sentence(view, fraction, world, baseline.best()));
    if let Some(tokens) = &world.tokens {
        division(page, world, tokens);
    }
    if let Some(default) = &audit.default {
        prose(page, &about_default(fraction, default));
    }
    if let Some(words) = slack_words(world) {
        prose(page, &words);
    }
    if let Some(words) = request_words(world) {
        prose(page, &words);
    }
}

fn prose(page: &mut Page, words: &str) {
    page.prose_behind((Tone::Plain, "  "), Tone::Plain, words);
}

fn rows(fraction: &FractionFact, world: &World) -> Vec<SheetRow> {
    let mut rows = Vec::new();
    let mut add = |name: String, amount: Option<Quantity>, from: String| {
        rows.extend(amount.map(|amount| SheetRow {
            cells: vec![name, mib_text(amount), from],
            tone: Tone::Plain,
            notes: Vec::new(),
        }));
    };
    let line = |place: Option<&Place>| place.map(|place| format!("line {}", place.line)).unwrap_or_default();
    if let Some(baseline) = &world.baseline {
        let at = line(baseline.place.as_ref());
        let from = match (baseline.basis, baseline.implied) {
            (BaselineBasis::Printed, _) => at,
            (BaselineBasis::FirstFigure, None) => format!("{at}, an estimate"),
            (BaselineBasis::FirstFigure, Some(_)) => format!("{at} and tokens, estimate"),
        };
        add("pre: free before weights".into(), Some(baseline.best()), from);
    }
    add(format!("× {} = static budget", fraction.value), world.static_budget, "weights and KV".into());
    add(
        format!("× {} = slack", complement(fraction.value)),
        world.slack,
        "graphs, activations and the like".into(),
    );
    let available = world.available.as_ref();
    let from = line(available.and_then(|available| available.place.as_ref()));
    add("free when pool was sized".into(), available.map(|available| available.amount), from);
    for reservation in &world.reservations {
        add(format!("− {}", reservation.label), Some(reservation.amount), line(Some(&reservation.place)));
    }
    add("− slack = left for KV".into(), world.rest, String::new());
    rows
}

/// 1 − f, in the decimals of f.
fn complement(fraction: Decimal) -> Decimal {
    let one =
        u32::try_from(fraction.places()).ok().and_then(|places| 10i128.checked_pow(places)).unwrap_or(1);
    Decimal::new(one - fraction.mantissa(), fraction.places())
}

/// What the fraction is a fraction of, for this very card.
fn sentence(view: &View<'_>, fraction: &FractionFact, world: &World, pre: Quantity) -> String {
    let rank = world.ranks.first().copied().unwrap_or(0);
    let total = view.sample(rank).and_then(|sample| sample.total).map(Quantity::midpoint);
    let base =
        format!("{} applies to the {} MiB that were free before the weights", fraction.value, mib_whole(pre));
    match (total.filter(|total| *total > 0), world.static_budget) {
        (Some(total), Some(budget)) => format!(
            "{base}, not to the card: {} MiB are {:.2} of its {}.",
            mib_whole(budget),
            budget.midpoint() as f64 / total as f64,
            mib_whole(Quantity::exact(total))
        ),
        _ => format!("{base}, not to the card."),
    }
}

fn division(page: &mut Page, world: &World, tokens: &Tokens) {
    let (Some(cell), Some((low, high))) = (world.cell, tokens.divided) else { return };
    let a_token = match cell.likely {
        Some(bytes) if bytes % KIB == 0 => format!("{} KiB", group_digits(bytes / KIB)),
        Some(bytes) => format!("{} bytes", group_digits(bytes)),
        None => format!("{} to {} bytes", group_digits(cell.low), group_digits(cell.high)),
    };
    let mut words = format!("÷ {a_token} a token = {}", range(low, high));
    for step in &tokens.steps {
        words = format!("{words} · {}: {}", step.label, group_digits(step.tokens));
    }
    let Some(printed) = tokens.printed else { return prose(page, &words) };
    words = format!("{words} · printed {}  ", group_digits(printed));
    let (tone, verdict) = match tokens.verdict {
        Some(TokenVerdict::Agrees) => (Tone::Good, "✔ agrees"),
        Some(TokenVerdict::Fewer) => (Tone::Warning, "fewer than the budget gives"),
        Some(TokenVerdict::More) => (Tone::Warning, "more than the budget gives"),
        None => (Tone::Dim, "nothing to compare with"),
    };
    page.line([(Tone::Plain, "  ".to_string()), (Tone::Plain, words), (tone, verdict.to_string())]);
}

fn range(low: i128, high: i128) -> String {
    if low == high { group_digits(low) } else { format!("{} to {}", group_digits(low), group_digits(high)) }
}

fn about_default(fraction: &FractionFact, default: &DefaultAudit) -> String {
    let derived = &default.derived;
    let terms: Vec<String> =
        derived.terms.iter().map(|term| format!("{} {}", mib_whole(term.amount), term.label)).collect();
    let value = if default.equals_printed == Some(true) {
        fraction.value.to_string()
    } else {
        derived.printed.to_string()
    };
    let opening = match default.equals_printed {
        Some(true) => format!("{value} is what SGLang chooses by itself"),
        _ => format!("{} was set; by itself SGLang would choose {value}", fraction.value),
    };
    match derived.reserved {
        Some(reserved) => format!(
            "{opening}: of the card's {} MiB it reserves {} ({}).",
            group_digits(i128::from(default.card_mib)),
            mib_whole(reserved),
            terms.join(", ")
        ),
        None => format!("{opening}."),
    }
}

fn slack_words(world: &World) -> Option<String> {
    let used = world.slack_use.as_ref()?;
    let mut terms: Vec<String> = Vec::new();
    if let Some(overhead) = used.overhead {
        terms.push(format!("beside KV in the pool {}", mib_whole(overhead)));
    }
    let unlogged: Quantity =
        used.items.iter().filter(|item| item.kind == PostingKind::Gap).map(|item| item.used).sum();
    if unlogged != Quantity::ZERO {
        terms.push(format!("unlogged {}", mib_whole(unlogged)));
    }
    let stages =
        used.items.iter().filter(|item| item.kind == PostingKind::Stage && tolerance_hides_not(item.used));
    terms.extend(stages.map(|item| format!("{} {}", item_name(item), mib_whole(item.used))));
    if let Some(kept) = used.kept_at_ready.filter(|kept| tolerance_hides_not(*kept)) {
        terms.push(format!("before ready {}", mib_whole(kept)));
    }
    let unspent = used
        .unspent
        .filter(|unspent| unspent.low() > 0)
        .map(|unspent| format!("budget that KV did not take {}, then ", mib_whole(unspent)));
    let left = used.remaining.map(|left| format!("; {} remain", mib_whole(left))).unwrap_or_default();
    Some(format!("used after KV: {}{}{left}.", unspent.unwrap_or_default(), terms.join(", ")))
}

/// Whether an amount is surely something.
fn tolerance_hides_not(amount: Quantity) -> bool {
    !amount.contains(0) || tolerance(amount).is_none() && amount != Quantity::ZERO
}

fn item_name(item: &SlackItem) -> String {
    let name = stage_name(item.stage);
    match item.worker {
        Worker::Draft if !name.starts_with("draft") => format!("draft's {name}"),
        _ => name.to_string(),
    }
}

fn request_words(world: &World) -> Option<String> {
    let requests = world.requests.as_ref()?;
    let length = group_digits(i128::from(requests.context_length));
    let may = requests
        .printed
        .map(|printed| format!("{} requests may run; ", group_digits(printed)))
        .unwrap_or_default();
    Some(format!(
        "{may}the pool holds {} of full length ({length} tokens).",
        group_digits(requests.at_full_context)
    ))
}
