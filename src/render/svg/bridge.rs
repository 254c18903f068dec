//! The bridge as two bars on one scale: what the log makes of a card, and what the instrument says of it.

use super::bars::{Bar, Chart, Row};
use super::colours::Kind;
use crate::quantity::{mib_text, mib_whole, signed_mib_text};
use crate::reconcile::{BridgeTerm, Reconciliation};
use crate::render::View;
use crate::render::names::rank_names;

/// The bridge of one rank. `None` where it has none.
pub(in crate::render) fn bridge(view: &View<'_>, rank: usize, id: &str) -> Option<Chart> {
    let one = view.analysis.reconciliation(view.index, rank)?;
    let sample = view.analysis.observations.get(one.observation)?;
    let whole = one.amount(BridgeTerm::Total)?;
    if whole.low() <= 0 {
        return None;
    }
    let instrument = sample.instrument.name();
    let used = one.amount(BridgeTerm::UsedByInstrument)?;
    let reserve = one.amount(BridgeTerm::Reserve)?;
    let mut rows = vec![by_log(one, whole.mib()), by_instrument(one, instrument, whole.mib())?];
    rows.extend(by_process(one, reserve.mib()));
    let by_log = one.amount(BridgeTerm::UsedByLog).map(mib_text).unwrap_or_default();
    let name = rank_names(&view.launch.launch, &[rank]).map(|name| format!(", {name}")).unwrap_or_default();
    Some(Chart {
        id: id.to_string(),
        title: format!("Log against {instrument}{name}"),
        description: format!(
            "Two bars of the same card. Used by the log {by_log} MiB, by {instrument} {} MiB: {} MiB unexplained.",
            mib_text(used),
            signed_mib_text(one.unexplained)
        ),
        whole: whole.mib(),
        rows,
    })
}

fn by_log(one: &Reconciliation, whole: f64) -> Row {
    let pieces = [
        (BridgeTerm::Reserve, Kind::Kept, "kept by the driver"),
        (BridgeTerm::HeldBefore, Kind::Held, "before the first figure"),
        (BridgeTerm::LedgerTotal, Kind::Used, "stages and gaps"),
        (BridgeTerm::KeptAtReady, Kind::Gap, "kept at ready"),
    ];
    let mut at = 0.0;
    let mut bars = Vec::new();
    for (term, kind, name) in pieces {
        let Some(amount) = one.amount(term) else { continue };
        let from = at;
        at += amount.mib();
        let kind = if at < from { Kind::Back } else { kind };
        bars.push(Bar { from, to: at, kind, words: format!("{name}: {} MiB", mib_text(amount)) });
    }
    bars.push(Bar { from: at, to: whole, kind: Kind::Free, words: "free, by the log".into() });
    let used = one.amount(BridgeTerm::UsedByLog).map(mib_text).unwrap_or_default();
    Row { name: "by the log".into(), figure: format!("{used} used"), bars, ..Row::default() }
}

fn by_instrument(one: &Reconciliation, instrument: &str, whole: f64) -> Option<Row> {
    let (reserve, used) = (one.amount(BridgeTerm::Reserve)?, one.amount(BridgeTerm::UsedByInstrument)?);
    let end = reserve.mib() + used.mib();
    let bar = |from, to, kind, words| Bar { from, to, kind, words };
    let bars = vec![
        bar(0.0, reserve.mib(), Kind::Kept, format!("kept by the driver: {} MiB", mib_text(reserve))),
        bar(reserve.mib(), end, Kind::Used, format!("used, by {instrument}: {} MiB", mib_text(used))),
        bar(end, whole, Kind::Free, format!("free, by {instrument}")),
    ];
    let figure = format!("{} used", mib_whole(used));
    Some(Row { name: format!("by {instrument}"), figure, bars, ..Row::default() })
}

/// The processes of the device, where their figures are shown: this rank's own, then others.
fn by_process(one: &Reconciliation, reserve: f64) -> Option<Row> {
    let mut owners: Vec<_> =
        one.owners.iter().filter_map(|owner| Some((owner, owner.process.used?))).collect();
    owners.sort_by_key(|(owner, _)| !owner.own);
    let mut at = reserve;
    let mut bars = Vec::new();
    for (owner, used) in owners {
        let from = at;
        at += used.mib();
        let (kind, whose) =
            if owner.own { (Kind::Used, "this rank") } else { (Kind::Foreign, "another process") };
        let words = format!("{} ({whose}): {} MiB", owner.process.name, mib_text(used));
        bars.push(Bar { from, to: at, kind, words });
    }
    let others = one.foreign_total().filter(|others| others.high() > 0);
    let figure = others
        .map_or_else(|| "this rank's only".to_string(), |others| format!("others {}", mib_whole(others)));
    (!bars.is_empty()).then(|| Row { name: "its processes".into(), figure, bars, ..Row::default() })
}
