//! The ledger table: what each stage took, what is left, and the share of the card that each entry is.

use super::entries::{Entry, absent, entries};
use super::fold::{fold, middle_text, of_ledger, spread_text};
use super::names::{counted, rank_names, tolerance};
use super::page::{Page, Tone};
use super::sheet::{Align, Sheet, SheetRow};
use super::{TableOptions, View, balance};
use crate::quantity::Quantity;
use crate::text;

/// So many groups of ranks get a table of their own; the rest a row each.
const MOST_TABLES: usize = 4;
/// A bar's narrowest and widest.
const BAR: (usize, usize) = (6, 32);
/// Columns of `100.0%`.
const PERCENT: usize = 6;
/// Parts of a column that a bar can end in.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Writes the ledgers of a launch.
pub(super) fn write(page: &mut Page, view: &View<'_>, options: &TableOptions) {
    let ledgers = &view.launch.ledgers;
    let groups = fold(ledgers.iter().map(of_ledger), options.per_rank);
    let most = if options.per_rank { usize::MAX } else { MOST_TABLES };
    // One row too many for the summary would be a summary of one.
    let tables = if groups.len() == most.saturating_add(1) { groups.len() } else { most };
    for group in groups.iter().take(tables) {
        page.gap();
        table(page, view, group);
    }
    let coarse = ledgers.iter().filter_map(|ledger| ledger.opening.or(ledger.closing)).find_map(tolerance);
    if let Some(mib) = coarse {
        page.line([(Tone::Dim, format!("  free figures of the log are true to ± {mib} MiB"))]);
    }
    let others = groups.get(tables..).unwrap_or_default();
    if !others.is_empty() {
        page.gap();
        further(page, view, others);
    }
}

fn table(page: &mut Page, view: &View<'_>, group: &[usize]) {
    let Some(first) = group.first().copied() else { return };
    let Some(ledger) = view.ledger(first) else { return };
    caption(page, view, group);
    let rows = entries(view, group);
    if rows.is_empty() {
        return page.line([(Tone::Dim, "  no free-memory figure in this rank's lines".to_string())]);
    }
    let (whole, of) = match (view.sample(first).and_then(|sample| sample.total), ledger.opening) {
        (Some(card), _) => (Some(card), "share of card"),
        (None, Some(opening)) => (Some(opening), "share of opening"),
        (None, None) => (None, ""),
    };
    sheet(page, rows, whole.filter(|whole| whole.low() > 0), of).write(page);
    balance::write(page, ledger);
    page.pieces_behind((Tone::Plain, "  "), Tone::Dim, &absent(view, first));
}

/// Which ranks a table is for. A lone server needs no caption.
fn caption(page: &mut Page, view: &View<'_>, group: &[usize]) {
    let Some(names) = rank_names(&view.launch.launch, group) else { return };
    let agree = match group.len() {
        1 => String::new(),
        many => format!(" · {many} ranks that agree in one, ± is their spread"),
    };
    page.line([(Tone::Strong, format!("  {names}")), (Tone::Dim, agree)]);
}

/// Columns for names: what figures and a small bar leave.
fn name_room(page: &Page) -> usize {
    page.width().saturating_sub(56).clamp(24, 48)
}

/// The longest name that fits, or the shortest, cut.
fn name(page: &Page, entry: &Entry) -> String {
    let room = name_room(page);
    let mut names = entry.names.iter().map(|name| page.words(name));
    let fitting = names.find(|name| text::width(name) <= room);
    let shortest =
        || text::cut(&page.words(entry.names.last().map_or("", String::as_str)), room, page.ellipsis());
    fitting.unwrap_or_else(shortest)
}

fn sheet(page: &Page, rows: Vec<Entry>, whole: Option<Quantity>, of: &str) -> Sheet {
    let names = rows.iter().map(|entry| text::width(&name(page, entry))).max().unwrap_or(0);
    let used = rows.iter().filter_map(|entry| entry.used.as_deref()).map(text::width).max().unwrap_or(0);
    // Indent, names, gutters and the three columns of figures; what is left is the bar's.
    let taken = 2 + names + 4 * 2 + "free before".len() + used.max(4) + "free after".len();
    let bar = page.prose().max(page.width().min(112)).saturating_sub(taken + 1 + PERCENT).clamp(BAR.0, BAR.1);
    let sheet_rows = rows
        .into_iter()
        .map(|entry| {
            let share = entry.drawn.zip(whole).map(|(drawn, whole)| drawn.mib() / whole.mib());
            let name = name(page, &entry);
            let cells =
                [Some(name), entry.before, entry.used, entry.after, share.map(|share| drawn(share, bar))];
            SheetRow {
                cells: cells.map(Option::unwrap_or_default).into(),
                tone: entry.tone,
                notes: entry.notes,
            }
        })
        .collect();
    let title = |title: &str, align: Align| (title.to_string(), align);
    Sheet {
        columns: vec![
            title("MiB", Align::Left),
            title("free before", Align::Right),
            title("used", Align::Right),
            title("free after", Align::Right),
            title(of, Align::Left),
        ],
        rows: sheet_rows,
    }
}

/// A bar of this share, and the share in percent.
fn drawn(share: f64, columns: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS.get(eighths % 8).copied().unwrap_or_default());
    format!("{} {}", text::pad(&bar, columns), text::pad_front(&format!("{:.1}%", share * 100.0), PERCENT))
}

/// Groups of ranks beyond the first tables: a row each.
fn further(page: &mut Page, view: &View<'_>, groups: &[Vec<usize>]) {
    const MOST_ROWS: usize = 64;
    let rows = groups.iter().take(MOST_ROWS).map(|group| {
        let ledgers = || group.iter().filter_map(|rank| view.ledger(*rank));
        let holds = ledgers().next().and_then(|ledger| ledger.balance.holds);
        let cells = [
            rank_names(&view.launch.launch, group),
            middle_text(ledgers().filter_map(|ledger| ledger.opening)),
            spread_text(ledgers().filter_map(|ledger| ledger.total_used())),
            middle_text(ledgers().filter_map(|ledger| ledger.final_free())),
            holds.map(|holds| if holds { "proved" } else { "does not balance" }.to_string()),
        ];
        let tone = if holds == Some(false) { Tone::Error } else { Tone::Plain };
        SheetRow { cells: cells.map(Option::unwrap_or_default).into(), tone, notes: Vec::new() }
    });
    let titles = ["further ranks", "first figure", "used", "free at the end", "balance"];
    let aligned = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Left];
    let columns = titles.into_iter().map(str::to_string).zip(aligned).collect();
    Sheet { columns, rows: rows.collect() }.write(page);
    let more = groups.len().saturating_sub(MOST_ROWS);
    let more = (more > 0).then(|| format!("{} more", counted(more, "group of ranks", "groups of ranks")));
    let hint = Some("--per-rank shows each rank's own table".to_string());
    let remarks: Vec<String> = more.into_iter().chain(hint).collect();
    page.pieces_behind((Tone::Plain, "  "), Tone::Dim, &remarks);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn_in_eighths() {
        assert_eq!(drawn(0.5, 4), "██    50.0%");
        assert_eq!(drawn(0.28125, 4), "█▏    28.1%");
        assert_eq!(drawn(1.0, 4), "████ 100.0%");
        assert_eq!(drawn(-0.1, 4), "     -10.0%");
    }
}
