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

/// What is said where a rank printed no level.
pub(super) const NO_FIGURE: &str = "no free-memory figure in this rank's lines";

/// Groups of ranks that agree: those with tables of their own, and the others.
pub(super) fn groups(view: &View<'_>, per_rank: bool) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut groups = fold(view.launch.ledgers.iter().map(of_ledger), per_rank);
    let most = if per_rank { usize::MAX } else { MOST_TABLES };
    // One row too many for the summary would be a summary of one.
    let tables = if groups.len() == most.saturating_add(1) { groups.len() } else { most };
    let others = groups.split_off(tables.min(groups.len()));
    (groups, others)
}

/// How exact the log's levels are, in words. `None` where nothing is rounded.
pub(super) fn tolerance_remark(view: &View<'_>) -> Option<String> {
    let levels = view.launch.ledgers.iter().filter_map(|ledger| ledger.opening.or(ledger.closing));
    let mib = levels.into_iter().find_map(tolerance)?;
    Some(format!("free figures of the log are true to ± {mib} MiB"))
}

/// Writes the ledgers of a launch.
pub(super) fn write(page: &mut Page, view: &View<'_>, options: &TableOptions) {
    let (tables, others) = groups(view, options.per_rank);
    for group in &tables {
        page.gap();
        table(page, view, group);
    }
    if let Some(remark) = tolerance_remark(view) {
        page.line([(Tone::Dim, format!("  {remark}"))]);
    }
    if !others.is_empty() {
        page.gap();
        let (sheet, mut remarks) = further(view, &others);
        sheet.write(page);
        remarks.push("--per-rank shows each rank's own table".into());
        page.pieces_behind((Tone::Plain, "  "), Tone::Dim, &remarks);
    }
}

fn table(page: &mut Page, view: &View<'_>, group: &[usize]) {
    let Some(first) = group.first().copied() else { return };
    let Some(ledger) = view.ledger(first) else { return };
    caption(page, view, group);
    let rows = entries(view, group);
    if rows.is_empty() {
        return page.line([(Tone::Dim, format!("  {NO_FIGURE}"))]);
    }
    let (whole, of) = whole(view, first);
    sheet(page, rows, whole, of).write(page);
    balance::write(page, ledger);
    page.pieces_behind((Tone::Plain, "  "), Tone::Dim, &absent(view, first));
}

/// What shares of a rank are of, and its name: the card where it is known, else what was free at first.
pub(super) fn whole(view: &View<'_>, rank: usize) -> (Option<Quantity>, &'static str) {
    let opening = view.ledger(rank).and_then(|ledger| ledger.opening);
    let (whole, of) = match (view.sample(rank).and_then(|sample| sample.total), opening) {
        (Some(card), _) => (Some(card), "share of card"),
        (None, Some(opening)) => (Some(opening), "share of opening"),
        (None, None) => (None, ""),
    };
    (whole.filter(|whole| whole.low() > 0), of)
}

/// Which ranks a table is for, and what a table of several shows. A lone server needs no caption.
pub(super) fn caption_words(view: &View<'_>, group: &[usize]) -> Option<(String, String)> {
    let names = rank_names(&view.launch.launch, group)?;
    let agree = match group.len() {
        1 => String::new(),
        many => format!(" · {many} ranks that agree in one, ± is their spread"),
    };
    Some((names, agree))
}

fn caption(page: &mut Page, view: &View<'_>, group: &[usize]) {
    let Some((names, agree)) = caption_words(view, group) else { return };
    page.line([(Tone::Strong, format!("  {names}")), (Tone::Dim, agree)]);
}

/// Columns for names: what figures and a small bar leave.
fn name_room(page: &Page) -> usize {
    page.width().saturating_sub(56).clamp(24, 48)
}

/// The longest name that fits, or the shortest, cut.
fn name(page: &Page, entry: &Entry<'_>) -> String {
    let room = name_room(page);
    let mut names = entry.names.iter().map(|name| page.words(name));
    let fitting = names.find(|name| text::width(name) <= room);
    let shortest =
        || text::cut(&page.words(entry.names.last().map_or("", String::as_str)), room, page.ellipsis());
    fitting.unwrap_or_else(shortest)
}

fn sheet(page: &Page, rows: Vec<Entry<'_>>, whole: Option<Quantity>, of: &str) -> Sheet {
    let names = rows.iter().map(|entry| text::width(&name(page, entry))).max().unwrap_or(0);
    let used = rows.iter().filter_map(|entry| entry.used.as_deref()).map(text::width).max().unwrap_or(0);
    // Indent, names, gutters and the three columns of figures; what is left is the bar's.
    let taken = 2 + names + 4 * 2 + "free before".len() + used.max(4) + "free after".len();
    let bar = page.prose().max(page.width().min(112)).saturating_sub(taken + 1 + PERCENT).clamp(BAR.0, BAR.1);
    of_entries(rows, whole, of, &|entry| name(page, entry), &|share| drawn(share, bar))
}

/// The table of a ledger; how names and shares are shown is the format's part.
pub(super) fn of_entries(
    rows: Vec<Entry<'_>>,
    whole: Option<Quantity>,
    of: &str,
    name: &dyn Fn(&Entry<'_>) -> String,
    share: &dyn Fn(f64) -> String,
) -> Sheet {
    let sheet_rows = rows
        .into_iter()
        .map(|entry| {
            let shown = entry.drawn.zip(whole).map(|(drawn, whole)| share(drawn.mib() / whole.mib()));
            let name = name(&entry);
            let cells = [Some(name), entry.before, entry.used, entry.after, shown];
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
    format!("{} {}", text::pad(&bar, columns), text::pad_front(&percent(share), PERCENT))
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Groups of ranks beyond the first tables, a row each, and what is to be said below.
pub(super) fn further(view: &View<'_>, groups: &[Vec<usize>]) -> (Sheet, Vec<String>) {
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
    let sheet = Sheet { columns, rows: rows.collect() };
    let more = groups.len().saturating_sub(MOST_ROWS);
    let more = (more > 0).then(|| format!("{} more", counted(more, "group of ranks", "groups of ranks")));
    (sheet, more.into_iter().collect())
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
