//! Ranks side by side: one stacked bar a rank, and a mark at those that a finding names or that differ from the most.

use super::bars::{Bar, Chart, Row};
use super::colours::Kind;
use crate::finding::Severity;
use crate::quantity::{mib_text, mib_whole};
use crate::reconcile::BridgeTerm;
use crate::render::View;
use crate::render::entries::{EntryKind, entries};
use crate::render::fold::{fold, of_ledger};
use std::collections::BTreeSet;

/// So many ranks are drawn.
const MOST: usize = 64;
/// Columns of a bar's name.
const NAME: usize = 36;

/// All ranks of a launch. `None` for a lone rank, which the waterfall shows.
pub(in crate::render) fn ranks(view: &View<'_>, id: &str) -> Option<Chart> {
    let all = &view.launch.launch.ranks;
    if all.len() < 2 {
        return None;
    }
    let size = |rank: usize| {
        let card =
            view.analysis.reconciliation(view.index, rank).and_then(|one| one.amount(BridgeTerm::Total));
        card.or_else(|| view.ledger(rank)?.opening).map(|whole| whole.mib())
    };
    let whole = (0..all.len()).filter_map(size).fold(0.0, f64::max);
    if whole <= 0.0 {
        return None;
    }
    let odd = odd(view);
    // Where not all can be drawn, the odd ones are.
    let mut shown: Vec<usize> = (0..all.len()).collect();
    shown.sort_by_key(|rank| !odd.contains(rank));
    shown.truncate(MOST);
    shown.sort_unstable();
    let rows: Vec<Row> =
        shown.iter().map(|rank| row(view, *rank, size(*rank).unwrap_or(whole), odd.contains(rank))).collect();
    let left_out = all.len() - shown.len();
    let more = if left_out > 0 { format!(" {left_out} more ranks are not drawn.") } else { String::new() };
    let said: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.name, row.figure)).collect();
    Some(Chart {
        id: id.to_string(),
        title: "Ranks side by side".into(),
        description: format!("One stacked bar a rank, in MiB. {}.{more}", said.join("; ")),
        whole,
        rows,
    })
}

/// Ranks that a warning or an error names, and those that are not of the majority.
fn odd(view: &View<'_>) -> BTreeSet<usize> {
    let ranks = &view.launch.launch.ranks;
    let pressing = view.launch.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
    let named = pressing.filter_map(|finding| {
        let tag = finding.rank.as_deref().filter(|tag| !tag.is_empty())?;
        ranks.iter().position(|rank| rank.tag.text == tag)
    });
    let groups = fold(view.launch.ledgers.iter().map(of_ledger), false);
    let majority = groups.first().is_some_and(|group| group.len() * 2 > ranks.len());
    let others = groups.iter().skip(1).flatten().copied().filter(|_| majority);
    named.chain(others).collect()
}

fn row(view: &View<'_>, rank: usize, whole: f64, odd: bool) -> Row {
    let tag = view.launch.launch.ranks.get(rank).map(|rank| rank.tag.text.as_str()).unwrap_or_default();
    let device = view.launch.devices.get(rank).and_then(|choice| choice.device);
    let device = device.map(|device| format!(", GPU {device}")).unwrap_or_default();
    let mark = if odd { "▲ " } else { "" };
    let name = format!("{mark}{}{device}", if tag.is_empty() { "(no tag)" } else { tag });
    let mut bars = Vec::new();
    let reserve =
        view.analysis.reconciliation(view.index, rank).and_then(|one| one.amount(BridgeTerm::Reserve));
    let mut taken = 0.0;
    if let Some(reserve) = reserve.filter(|reserve| reserve.high() > 0) {
        taken = reserve.mib();
        let words = format!("{tag} kept by the driver: {} MiB", mib_text(reserve));
        bars.push(Bar { from: 0.0, to: taken, kind: Kind::Kept, words });
    }
    for entry in entries(view, &[rank]) {
        let name = entry.name(NAME);
        if entry.kind == EntryKind::Left {
            let free = entry.drawn.map(|free| free.mib()).unwrap_or(0.0);
            let words = format!("{tag} {name}: {} MiB free", entry.after.as_deref().unwrap_or("?"));
            bars.push(Bar { from: whole - free, to: whole, kind: Kind::Free, words });
            continue;
        }
        let from = entry.levels.0.map_or(taken, |before| whole - before.mib());
        let to = entry.levels.1.map(|after| whole - after.mib()).or_else(|| Some(from + entry.drawn?.mib()));
        let Some(to) = to else { continue };
        taken = to;
        // Given back is no piece of the stack: the next piece begins further left.
        if to > from {
            let words = format!("{tag} {name}: {} MiB", entry.used.as_deref().unwrap_or("?"));
            bars.push(Bar { from, to, kind: Kind::of(entry.kind), words });
        }
    }
    let free = view.ledger(rank).and_then(|ledger| ledger.final_free());
    let figure = free.map_or_else(|| "–".to_string(), |free| format!("{} free", mib_whole(free)));
    Row { name, figure, strong: odd, bars, ..Row::default() }
}
