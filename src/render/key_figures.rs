//! The three numbers that matter: what is free, what the KV cache got, and what log and driver disagree by.

use super::View;
use super::names::posting_name;
use crate::launch::Outcome;
use crate::ledger::{Ledger, PostingKind};
use crate::quantity::{group_digits, mib_text, signed_mib_text};
use crate::reconcile::{Reconciliation, Verdict};
use crate::stage::{Stage, Worker};

/// A number and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyFigure {
    /// What it is of.
    pub(super) name: String,
    /// The number with its unit; a dash where it is unknown.
    pub(super) figure: String,
    /// What should be known beside it; empty where nothing.
    pub(super) remark: String,
}

/// The key figures of a launch: of its poorest rank, and of the bridge that is furthest off.
pub(super) fn key_figures(view: &View<'_>) -> [KeyFigure; 3] {
    let rank = poorest_rank(view);
    [free(view, rank), pool(view, rank), apart(view)]
}

/// The rank with the least free memory at the end, the first of several; of ranks without figures the first.
pub(super) fn poorest_rank(view: &View<'_>) -> usize {
    let ledgers = view.launch.ledgers.iter().enumerate();
    let free = ledgers.filter_map(|(rank, ledger)| Some((rank, ledger.final_free()?.midpoint())));
    free.min_by_key(|(_, free)| *free).map_or(0, |(rank, _)| rank)
}

fn unknown(name: &str, remark: &str) -> KeyFigure {
    KeyFigure { name: name.into(), figure: "–".into(), remark: remark.into() }
}

/// The name of a rank, where a launch has several.
fn of_rank(view: &View<'_>, rank: usize) -> Option<String> {
    let ranks = &view.launch.launch.ranks;
    let tag = &ranks.get(rank)?.tag.text;
    (ranks.len() > 1 && !tag.is_empty()).then(|| tag.clone())
}

fn free(view: &View<'_>, rank: usize) -> KeyFigure {
    let ready = matches!(view.launch.launch.outcome, Outcome::Ready | Outcome::Running);
    let name = if ready { "free when ready" } else { "free at the end" };
    match view.ledger(rank).and_then(Ledger::final_free) {
        Some(free) => KeyFigure {
            name: name.into(),
            figure: format!("{} MiB", mib_text(free)),
            remark: of_rank(view, rank)
                .map(|tag| format!("{tag}, the least of all ranks"))
                .unwrap_or_default(),
        },
        None => unknown(name, "not printed"),
    }
}

fn pool(view: &View<'_>, rank: usize) -> KeyFigure {
    let pool = view.ledger(rank).and_then(|ledger| {
        ledger.postings.iter().find(|posting| {
            posting.kind == PostingKind::Stage
                && posting.worker == Worker::Target
                && matches!(posting.stage, Stage::KvCache | Stage::MemoryPool)
        })
    });
    let Some(pool) = pool else { return unknown("KV cache pool", "not reached") };
    let tokens = pool.parts.iter().find_map(|part| part.tokens);
    let tokens = tokens.map(|tokens| format!("{} tokens", group_digits(i128::from(tokens))));
    KeyFigure {
        name: posting_name(pool),
        figure: pool.used.map_or_else(|| "–".into(), |used| format!("{} MiB", mib_text(used))),
        remark: tokens.into_iter().chain(of_rank(view, rank)).collect::<Vec<_>>().join(", "),
    }
}

fn apart(view: &View<'_>) -> KeyFigure {
    let mine = view.analysis.reconciliations.iter().filter(|one| one.launch == view.index);
    let furthest: Option<&Reconciliation> = mine.max_by_key(|one| one.unexplained.magnitude().midpoint());
    let Some(furthest) = furthest else {
        let dumps = !view.analysis.observations.is_empty();
        let why = if dumps { "no sample of its device" } else { "no dump to compare with" };
        return unknown("log against driver", why);
    };
    let instrument = view.analysis.observations.get(furthest.observation).map(|one| one.instrument.name());
    let verdict = match &furthest.verdict {
        Verdict::Holds => "bridge holds",
        Verdict::Fails => "bridge fails",
        Verdict::CannotTell(_) => "cannot tell",
    };
    let remark = std::iter::once(verdict.to_string()).chain(of_rank(view, furthest.rank));
    KeyFigure {
        name: format!("{} − log", instrument.unwrap_or("driver")),
        figure: format!("{} MiB", signed_mib_text(furthest.unexplained)),
        remark: remark.collect::<Vec<_>>().join(", "),
    }
}
