//! The bridge: from the log's free figure in GB to the instrument's used figure in MiB, row by row.

use super::fold::{fold, middle_text, of_bridge, spread_text};
use super::names::{duration, rank_names};
use super::page::{Page, Tone};
use super::sheet::{Align, Note, Sheet, SheetRow};
use super::{TableOptions, View};
use crate::analysis::Analysis;
use crate::ledger::Ledger;
use crate::observe::Observation;
use crate::quantity::{Quantity, gib_text, mib_text, mib_whole, signed_mib_text};
use crate::reconcile::{Basis, BridgeTerm, Owner, Reconciliation, Verdict};

/// So many processes of a device are listed.
const MOST_PROCESSES: usize = 12;
/// Bridges that differ from each other, shown before the rest is counted.
const MOST_BRIDGES: usize = 6;
/// The column of the amounts.
const AMOUNT_COLUMN: usize = 1;

/// Writes the bridges of a launch.
pub(super) fn write(page: &mut Page, view: &View<'_>, options: &TableOptions) {
    let mine: Vec<&Reconciliation> =
        view.analysis.reconciliations.iter().filter(|one| one.launch == view.index).collect();
    let groups = fold(mine.iter().map(|one| of_bridge(one)), options.per_rank);
    let most = if options.per_rank { usize::MAX } else { MOST_BRIDGES };
    for group in groups.iter().take(most) {
        let same: Vec<&Reconciliation> = group.iter().filter_map(|index| mine.get(*index).copied()).collect();
        page.gap();
        bridge(page, view, &same);
    }
    if groups.len() > most {
        let more = format!("{} more bridges differ from these: --per-rank shows all", groups.len() - most);
        page.prose_behind((Tone::Plain, "  "), Tone::Dim, &more);
    }
    if mine.is_empty() && !view.launch.launch.ranks.is_empty() {
        page.gap();
        page.prose_behind((Tone::Plain, "  "), Tone::Dim, nothing_to_compare(view.analysis));
    }
}

fn nothing_to_compare(analysis: &Analysis) -> &'static str {
    if analysis.observations.is_empty() {
        "not reconciled: no nvidia-smi output was given; with --smi FILE the ledger is held against the driver's figures"
    } else {
        "not reconciled: no sample of a device could be matched with this launch"
    }
}

fn bridge(page: &mut Page, view: &View<'_>, same: &[&Reconciliation]) {
    let Some(first) = same.first() else { return };
    let Some(sample) = view.analysis.observations.get(first.observation) else { return };
    let Some(ledger) = view.ledger(first.rank) else { return };
    let ranks: Vec<usize> = same.iter().map(|one| one.rank).collect();
    let title = format!("log ↔ {}", sample.instrument.name());
    let title = match rank_names(&view.launch.launch, &ranks) {
        Some(names) => format!("{title}, {names}"),
        None => title,
    };
    let columns = [(title, Align::Left), ("MiB".into(), Align::Right), ("basis".into(), Align::Left)];
    let mut rows: Vec<SheetRow> = Vec::new();
    for item in &first.bridge {
        let amount = || same.iter().filter_map(|one| one.amount(item.term));
        let basis = item.basis.name();
        match item.term {
            BridgeTerm::Total => rows.push(row("card", spread_text(amount()), basis)),
            BridgeTerm::Reserve => {
                rows.push(reserve(&item.label, middle_text(amount()), basis));
                rows.push(free_by_log(view, same, ledger));
            }
            BridgeTerm::UsedByLog => rows.push(used_by_log(same, item.amount)),
            BridgeTerm::UsedByInstrument => rows.push(row(&item.label, spread_text(amount()), basis)),
            BridgeTerm::Drift => rows.push(drift(first, same)),
            BridgeTerm::OwnContext | BridgeTerm::OthersSince => {
                rows.push(row(&format!("− {}", item.label), spread_text(amount().map(most)), basis));
            }
            BridgeTerm::HeldBefore | BridgeTerm::LedgerTotal | BridgeTerm::KeptAtReady => {}
        }
    }
    // Of a live sample without company the drift is what is unexplained, and stands above.
    if !first.live || first.amount(BridgeTerm::OthersSince).is_some() {
        rows.push(unexplained(first, same));
    }
    Sheet { columns: columns.into(), rows }.write(page);
    verdict(page, first);
    for one in same.iter().take(MOST_BRIDGES) {
        processes(page, view, one, same.len() > 1);
    }
    notes(page, view.analysis, sample);
}

fn row(name: &str, amount: Option<String>, basis: &str) -> SheetRow {
    SheetRow {
        cells: vec![name.to_string(), amount.unwrap_or_else(|| "?".into()), basis.to_string()],
        tone: Tone::Plain,
        notes: Vec::new(),
    }
}

/// What the driver keeps; how it is known stands below, since it may take a sentence.
fn reserve(label: &str, amount: Option<String>, basis: &str) -> SheetRow {
    let (name, remark) = label.split_once(" (").unwrap_or((label, ""));
    let why = remark.trim_end_matches(')');
    let note = Note { label: why.to_string(), figure: None, remark: String::new(), tone: Tone::Dim };
    let notes = if why.is_empty() { Vec::new() } else { vec![note] };
    SheetRow { notes, ..row(&format!("− {name}"), amount, basis) }
}

/// Where the two measures meet: the log's GB and the same in MiB.
fn free_by_log(view: &View<'_>, same: &[&Reconciliation], ledger: &Ledger) -> SheetRow {
    let free = same.iter().filter_map(|one| view.ledger(one.rank)?.final_free());
    let gib = ledger.final_free().map(gib_text).unwrap_or_default();
    row("− free, by the log", middle_text(free), &format!("logged as {}", gib.replace("GiB", "GB")))
}

/// The sum, and of which parts it is made.
fn used_by_log(same: &[&Reconciliation], amount: Quantity) -> SheetRow {
    let part = |term: BridgeTerm, name: &str, basis: Basis| {
        let figures = same.iter().filter_map(|one| one.amount(term));
        let figure = spread_text(figures)?;
        Some(Note {
            label: name.into(),
            figure: Some((AMOUNT_COLUMN, figure)),
            remark: basis.name().into(),
            tone: Tone::Dim,
        })
    };
    let notes = [
        part(BridgeTerm::HeldBefore, "before the first figure", Basis::Derived),
        part(BridgeTerm::LedgerTotal, "stages and gaps", Basis::Logged),
        part(BridgeTerm::KeptAtReady, "kept at ready", Basis::Logged),
    ];
    let alone = (same.len() == 1).then(|| mib_text(amount));
    let amount =
        alone.or_else(|| spread_text(same.iter().filter_map(|one| one.amount(BridgeTerm::UsedByLog))));
    SheetRow { notes: notes.into_iter().flatten().collect(), ..row("= used, by the log", amount, "derived") }
}

fn unexplained(first: &Reconciliation, same: &[&Reconciliation]) -> SheetRow {
    let all = same.iter().map(|one| one.unexplained).reduce(Quantity::hull).unwrap_or(first.unexplained);
    let name =
        if first.amount(BridgeTerm::OthersSince).is_some() { "unexplained, at least" } else { "unexplained" };
    let all =
        if first.amount(BridgeTerm::OthersSince).is_some() { Quantity::exact(all.low().max(0)) } else { all };
    SheetRow { tone: Tone::Strong, ..row(name, Some(signed_mib_text(all)), "") }
}

/// How far the driver's figure is from the log's by now, and for how long it has had the time to.
fn drift(first: &Reconciliation, same: &[&Reconciliation]) -> SheetRow {
    let all = same.iter().filter_map(|one| one.amount(BridgeTerm::Drift)).reduce(Quantity::hull);
    let since = first.seconds_apart.map(|seconds| format!(", {} ago", duration(seconds))).unwrap_or_default();
    row(&format!("drift since ready{since}"), all.map(signed_mib_text), "derived")
}

/// What may be anything from nothing on is shown by the most that it can be.
fn most(amount: Quantity) -> Quantity {
    if amount.low() == 0 { Quantity::exact(amount.high()) } else { amount }
}

fn verdict(page: &mut Page, reconciliation: &Reconciliation) {
    match &reconciliation.verdict {
        Verdict::Holds if reconciliation.amount(BridgeTerm::OthersSince).is_some() => page.prose_behind(
            (Tone::Good, "  ✔ bridge holds  "),
            Tone::Plain,
            "what came since ready is no more than what other processes hold",
        ),
        Verdict::Holds if reconciliation.unexplained.contains(0) => page.prose_behind(
            (Tone::Good, "  ✔ bridge holds  "),
            Tone::Plain,
            "within the figures' own rounding",
        ),
        Verdict::Holds => page.prose_behind(
            (Tone::Good, "  ✔ bridge holds  "),
            Tone::Plain,
            "what is left is small: kernels loaded late, first requests' workspaces",
        ),
        Verdict::Fails if reconciliation.live => page.prose_behind(
            (Tone::Error, "  ✘ bridge fails  "),
            Tone::Plain,
            &format!(
                "{} MiB since the server was ready: growth at run time (eager workspaces, NCCL channels), a leak, or \
                 a process that is not listed",
                signed_mib_text(reconciliation.unexplained)
            ),
        ),
        Verdict::Fails => page.prose_behind(
            (Tone::Error, "  ✘ bridge fails  "),
            Tone::Plain,
            &format!("{} MiB that the log does not account for", signed_mib_text(reconciliation.unexplained)),
        ),
        Verdict::CannotTell(why) => page.prose_behind((Tone::Warning, "  ▲ cannot tell  "), Tone::Plain, why),
    }
}

/// The processes on a device, the rank's own marked.
fn processes(page: &mut Page, view: &View<'_>, one: &Reconciliation, several: bool) {
    let others = one.owners.iter().any(|owner| !owner.own);
    // Of many ranks on cards of their own, only company is worth lines.
    if one.owners.is_empty() || several && !others {
        return;
    }
    let Some(sample) = view.analysis.observations.get(one.observation) else { return };
    let device = sample.device.map_or_else(|| "its device".to_string(), |device| format!("GPU {device}"));
    let pieces: Vec<String> = one.owners.iter().take(MOST_PROCESSES).map(process).collect();
    page.pieces_behind((Tone::Dim, &format!("  on {device}: ")), Tone::Plain, &pieces);
    if one.owners.len() > MOST_PROCESSES {
        let more = format!("and {} more processes", one.owners.len() - MOST_PROCESSES);
        page.line([(Tone::Dim, format!("    {more}"))]);
    }
}

fn process(owner: &Owner) -> String {
    let used = owner
        .process
        .used
        .map_or_else(|| "figure not shown".into(), |used| format!("{} MiB", mib_whole(used)));
    let pid = owner.process.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    let whose = if owner.own { "this rank" } else { "other" };
    format!("{}{pid}, {used} ({whose})", owner.process.name)
}

/// What the dump could not say, where it speaks of this sample's source.
fn notes(page: &mut Page, analysis: &Analysis, sample: &Observation) {
    for note in analysis.notes.iter().filter(|note| note.place.source == sample.place.source).take(3) {
        let words = format!("{}:{}: {}", note.place.source, note.place.line, note.problem);
        page.prose_behind((Tone::Dim, "  note  "), Tone::Dim, &words);
    }
    for remark in sample.probe.iter().flat_map(|facts| &facts.remarks).take(3) {
        page.prose_behind((Tone::Dim, "  note  "), Tone::Dim, remark);
    }
}
