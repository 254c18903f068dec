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

/// A bridge in words.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// Its rows.
    pub(super) sheet: Sheet,
    /// How the verdict looks.
    pub(super) tone: Tone,
    /// Sign and verdict.
    pub(super) verdict: &'static str,
    /// Why.
    pub(super) why: String,
    /// Devices and the processes on them.
    pub(super) processes: Vec<(String, Vec<String>)>,
    /// What the dump could not say.
    pub(super) notes: Vec<String>,
}

/// The bridges of a launch, those that agree as one; and how many more there are.
pub(super) fn told(view: &View<'_>, per_rank: bool) -> (Vec<Told>, usize) {
    let mine: Vec<&Reconciliation> =
        view.analysis.reconciliations.iter().filter(|one| one.launch == view.index).collect();
    let groups = fold(mine.iter().map(|one| of_bridge(one)), per_rank);
    let most = if per_rank { usize::MAX } else { MOST_BRIDGES };
    let same = |group: &Vec<usize>| -> Vec<&Reconciliation> {
        group.iter().filter_map(|index| mine.get(*index).copied()).collect()
    };
    let told = groups.iter().take(most).filter_map(|group| bridge(view, &same(group))).collect();
    (told, groups.len().saturating_sub(most))
}

/// Writes the bridges of a launch.
pub(super) fn write(page: &mut Page, view: &View<'_>, options: &TableOptions) {
    let (bridges, more) = told(view, options.per_rank);
    let none = bridges.is_empty();
    for bridge in bridges {
        page.gap();
        bridge.sheet.write(page);
        page.prose_behind((bridge.tone, &format!("  {}  ", bridge.verdict)), Tone::Plain, &bridge.why);
        for (device, pieces) in &bridge.processes {
            page.pieces_behind((Tone::Dim, &format!("  on {device}: ")), Tone::Plain, pieces);
        }
        for note in &bridge.notes {
            page.prose_behind((Tone::Dim, "  note  "), Tone::Dim, note);
        }
    }
    if more > 0 {
        let more = format!("{more} more bridges differ from these: --per-rank shows all");
        page.prose_behind((Tone::Plain, "  "), Tone::Dim, &more);
    }
    if none && !view.launch.launch.ranks.is_empty() {
        page.gap();
        page.prose_behind((Tone::Plain, "  "), Tone::Dim, nothing_to_compare(view.analysis));
    }
}

/// Why there is no bridge.
pub(super) fn nothing_to_compare(analysis: &Analysis) -> &'static str {
    if analysis.observations.is_empty() && !analysis.notes.is_empty() {
        "not reconciled: what was given of an instrument holds no figures of a device; the notes say why"
    } else if analysis.observations.is_empty() {
        "not reconciled: no nvidia-smi output was given; with --smi FILE the ledger is held against the driver's figures"
    } else {
        "not reconciled: no sample of a device could be matched with this launch"
    }
}

fn bridge(view: &View<'_>, same: &[&Reconciliation]) -> Option<Told> {
    let first = *same.first()?;
    let sample = view.analysis.observations.get(first.observation)?;
    let ledger = view.ledger(first.rank)?;
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
    let (tone, verdict, why) = verdict(first);
    let listed = same.iter().take(MOST_BRIDGES);
    Some(Told {
        sheet: Sheet { columns: columns.into(), rows },
        tone,
        verdict,
        why,
        processes: listed.filter_map(|one| processes(view, one, same.len() > 1)).collect(),
        notes: notes(view.analysis, sample),
    })
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

fn verdict(reconciliation: &Reconciliation) -> (Tone, &'static str, String) {
    match &reconciliation.verdict {
        Verdict::Holds if reconciliation.amount(BridgeTerm::OthersSince).is_some() => (
            Tone::Good,
            "✔ bridge holds",
            "what came since ready is no more than what other processes hold".into(),
        ),
        Verdict::Holds if reconciliation.unexplained.contains(0) => {
            (Tone::Good, "✔ bridge holds", "within the figures' own rounding".into())
        }
        Verdict::Holds => (
            Tone::Good,
            "✔ bridge holds",
            "what is left is small: kernels loaded late, first requests' workspaces".into(),
        ),
        Verdict::Fails if reconciliation.live => {
            let left = signed_mib_text(reconciliation.unexplained);
            let why = "growth at run time (eager workspaces, NCCL channels), a leak, or a process that is not listed";
            (Tone::Error, "✘ bridge fails", format!("{left} MiB since the server was ready: {why}"))
        }
        Verdict::Fails => {
            let left = signed_mib_text(reconciliation.unexplained);
            (Tone::Error, "✘ bridge fails", format!("{left} MiB that the log does not account for"))
        }
        Verdict::CannotTell(why) => (Tone::Warning, "▲ cannot tell", why.clone()),
    }
}

/// The processes on a device, the rank's own marked.
fn processes(view: &View<'_>, one: &Reconciliation, several: bool) -> Option<(String, Vec<String>)> {
    let others = one.owners.iter().any(|owner| !owner.own);
    // Of many ranks on cards of their own, only company is worth lines.
    if one.owners.is_empty() || several && !others {
        return None;
    }
    let sample = view.analysis.observations.get(one.observation)?;
    let device = sample.device.map_or_else(|| "its device".to_string(), |device| format!("GPU {device}"));
    let mut pieces: Vec<String> = one.owners.iter().take(MOST_PROCESSES).map(process).collect();
    if one.owners.len() > MOST_PROCESSES {
        pieces.push(format!("and {} more processes", one.owners.len() - MOST_PROCESSES));
    }
    Some((device, pieces))
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
fn notes(analysis: &Analysis, sample: &Observation) -> Vec<String> {
    let mine = analysis.notes.iter().filter(|note| note.place.source == sample.place.source).take(3);
    let written = mine.map(|note| format!("{}:{}: {}", note.place.source, note.place.line, note.problem));
    let remarks = sample.probe.iter().flat_map(|facts| &facts.remarks).take(3).cloned();
    written.chain(remarks).collect()
}
