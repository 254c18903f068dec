//! The second axis: who holds the memory, and what for.
//!
//! One table of holders a rank, which is summed; below it uses against holders, which is not: uses overlap.

use super::View;
use super::names::rank_names;
use super::page::{Page, Tone};
use super::sheet::{Align, Note, Sheet, SheetRow};
use crate::holders::{Breakdown, Cell, Inside, Matrix, Moment, Scope, Share, matrix};
use crate::quantity::{Quantity, mib_text, mib_whole};

/// So many ranks' holders are shown; the JSON report has all.
const MOST_RANKS: usize = 4;

/// Writes what is known of holders, where PyTorch's part is known for any rank. What only a process list tells is in the
/// bridge already.
pub(super) fn write(page: &mut Page, view: &View<'_>, per_rank: bool) {
    let all = view.launch.holders.iter().enumerate();
    let known: Vec<(usize, &Breakdown)> = all
        .flat_map(|(rank, breakdowns)| breakdowns.iter().map(move |one| (rank, one)))
        .filter(|(_, one)| one.knows_torch() || one.conflict.is_some())
        .collect();
    let most = if per_rank { usize::MAX } else { MOST_RANKS };
    for (rank, breakdown) in known.iter().take(most) {
        page.gap();
        holders(page, view, *rank, breakdown);
    }
    if known.len() > most {
        let words = format!("{} more ranks' holders: --per-rank shows all", known.len() - most);
        page.line([(Tone::Dim, format!("  {words}"))]);
    }
    if let Some((rank, breakdown)) = known.iter().find(|(_, one)| one.knows_torch())
        && let Some(ledger) = view.ledger(*rank)
    {
        page.gap();
        uses(page, &matrix(&view.launch.launch, ledger, breakdown));
    }
}

fn holders(page: &mut Page, view: &View<'_>, rank: usize, breakdown: &Breakdown) {
    let when = match breakdown.moment {
        Moment::Failure => "when the allocator refused",
        Moment::Snapshot => "at the snapshot",
        Moment::Dump => "at the dump",
    };
    let title = match rank_names(&view.launch.launch, &[rank]) {
        Some(name) => format!("holders {when}, {name}"),
        None => format!("holders {when}"),
    };
    if let Some(conflict) = &breakdown.conflict {
        let words = format!("{title}: {conflict} ({})", breakdown.sources.join(", "));
        return page.prose_behind((Tone::Warning, "  ▲ "), Tone::Plain, &words);
    }
    let columns = [(title, Align::Left), ("MiB".into(), Align::Right), ("basis".into(), Align::Left)];
    let mut rows: Vec<SheetRow> = breakdown.shares.iter().map(share).collect();
    rows.push(SheetRow {
        cells: vec![total(breakdown.scope).to_string(), mib_text(breakdown.total), String::new()],
        tone: Tone::Strong,
        notes: breakdown.inside.iter().map(part).collect(),
    });
    Sheet { columns: columns.to_vec(), rows }.write(page);
    page.prose_behind((Tone::Dim, "  from "), Tone::Dim, &breakdown.sources.join(", "));
}

const fn total(scope: Scope) -> &'static str {
    match scope {
        Scope::Device => "= in use on the device",
        Scope::SinceFirstFigure => "= used since the first figure",
    }
}

fn share(share: &Share) -> SheetRow {
    let cells =
        vec![share.holder.words().to_string(), mib_text(share.amount), share.basis.name().to_string()];
    SheetRow { cells, tone: Tone::Plain, notes: Vec::new() }
}

/// A part of PyTorch's memory, below the sum: it is in it already.
fn part(part: &Inside) -> Note {
    Note {
        label: part.label.to_string(),
        figure: Some((1, mib_text(part.amount))),
        remark: String::new(),
        tone: Tone::Dim,
    }
}

/// Uses against holders.
fn uses(page: &mut Page, matrix: &Matrix) {
    let titles = ["MiB, use", "by the log", "ordinary", "private", "comm.", "direct", "context"];
    let mut columns: Vec<(String, Align)> =
        titles.iter().map(|title| ((*title).to_string(), Align::Right)).collect();
    if let Some((_, align)) = columns.first_mut() {
        *align = Align::Left;
    }
    let mut rows: Vec<SheetRow> = Vec::new();
    for row in &matrix.rows {
        let mut cells = vec![row.usage.words().to_string(), known(row.logged)];
        cells.extend(row.cells.iter().map(|cell| match cell {
            Cell::Never => String::new(),
            Cell::Some => "●".to_string(),
            Cell::All(amount) => mib_whole(*amount),
        }));
        rows.push(SheetRow { cells, tone: Tone::Plain, notes: Vec::new() });
    }
    let [ordinary, private] = matrix.pools.map(known);
    let together = |label: &str, amount: Option<Quantity>| Note {
        label: format!("{label}: {}", known(amount)),
        figure: None,
        remark: String::new(),
        tone: Tone::Dim,
    };
    let unknown = || "?".to_string();
    rows.push(SheetRow {
        cells: vec![
            "holder's total".into(),
            String::new(),
            ordinary,
            private,
            unknown(),
            unknown(),
            unknown(),
        ],
        tone: Tone::Strong,
        notes: vec![
            together("ordinary + private, PyTorch's reserved", matrix.torch),
            together("comm. + direct + context, outside PyTorch", matrix.outside),
        ],
    });
    Sheet { columns, rows }.write(page);
    let legend = "● some of it, overlapping with the other uses of that holder; ? not told by any instrument. Holders are \
                  summed, uses are not";
    page.prose_behind((Tone::Plain, "  "), Tone::Dim, legend);
}

fn known(amount: Option<Quantity>) -> String {
    amount.map_or_else(|| "?".to_string(), mib_whole)
}
