//! Holders: who holds a device's memory, where facts allow to say so.
//!
//! The ledger says *when* memory went; this is the other axis. Holders exclude each other, so they may be summed: PyTorch's
//! pools (private pools are inside its reserved memory, never on top), what the process holds outside PyTorch, and
//! everybody else. What no instrument tells apart stays together under one name. Separate from the reconciliation, because
//! its facts are PyTorch's: snapshots, and the sentence of an out-of-memory error.

mod failure;
mod matrix;
mod snapshots;
mod split;

#[cfg(test)]
mod tests;

pub use matrix::{COLUMNS, Cell, Column, Matrix, USES, Use, UseRow, matrix};
pub use snapshots::{MatchedSnapshot, SnapshotSource, Unmatched, match_snapshots};

use crate::launch::{Launch, Rank};
use crate::ledger::Ledger;
use crate::place::Place;
use crate::quantity::Quantity;
use crate::reconcile::{Basis, BridgeTerm, Reconciliation};
use split::{TorchFigures, split};

/// Who holds memory. Some are sums of others, for where nothing tells these apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// PyTorch's ordinary pools.
    OrdinaryPools,
    /// PyTorch's private pools: CUDA graphs', and those of a `torch.cuda.MemPool`.
    PrivatePools,
    /// Both kinds of pools: PyTorch's reserved memory.
    TorchPools,
    /// The process, outside PyTorch: context, communication libraries, direct cudaMalloc and VMM.
    OutsideTorch,
    /// The whole process: PyTorch and what is outside it.
    Process,
    /// Everybody else on the device, and the part of contexts that no process list shows.
    Others,
    /// The process outside PyTorch, and everybody else.
    OutsideTorchAndOthers,
}

impl Holder {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Holder::OrdinaryPools => "torch_ordinary_pools",
            Holder::PrivatePools => "torch_private_pools",
            Holder::TorchPools => "torch_pools",
            Holder::OutsideTorch => "outside_torch",
            Holder::Process => "process",
            Holder::Others => "others",
            Holder::OutsideTorchAndOthers => "outside_torch_and_others",
        }
    }

    /// The name in words.
    pub const fn words(self) -> &'static str {
        match self {
            Holder::OrdinaryPools => "PyTorch, ordinary pools",
            Holder::PrivatePools => "PyTorch, private pools (graphs)",
            Holder::TorchPools => "PyTorch, all pools",
            Holder::OutsideTorch => "this process, outside PyTorch",
            Holder::Process => "this process",
            Holder::Others => "other processes, and unlisted",
            Holder::OutsideTorchAndOthers => "outside PyTorch, any process",
        }
    }
}

/// Which moment a breakdown speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// When the allocator refused.
    Failure,
    /// When the snapshot was taken; the device's figures are the dump's or the log's at ready.
    Snapshot,
    /// When the dump was taken.
    Dump,
}

impl Moment {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Moment::Failure => "failure",
            Moment::Snapshot => "snapshot",
            Moment::Dump => "dump",
        }
    }
}

/// What a breakdown adds up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everything in use on the device.
    Device,
    /// What was used from the log's first free figure on: without a dump, nothing tells what was used before.
    SinceFirstFigure,
}

impl Scope {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Device => "device",
            Scope::SinceFirstFigure => "since_first_figure",
        }
    }
}

/// A part of PyTorch's memory: explains it, and is never added to anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Inside {
    /// What it is.
    pub label: &'static str,
    /// How much.
    pub amount: Quantity,
}

/// One holder's share.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Who.
    pub holder: Holder,
    /// How much.
    pub amount: Quantity,
    /// How it is known.
    pub basis: Basis,
}

/// The memory of a rank's device by holder. The shares add up to the total within their intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// Of which moment.
    pub moment: Moment,
    /// Of what.
    pub scope: Scope,
    /// What the shares add up to.
    pub total: Quantity,
    /// The files that the figures come from.
    pub sources: Vec<String>,
    /// The line that holds the figures, where one does.
    pub place: Option<Place>,
    /// The shares. Empty where the figures contradict each other.
    pub shares: Vec<Share>,
    /// Why they do, where they do.
    pub conflict: Option<String>,
    /// Parts of PyTorch's pools, ordinary and private together.
    pub inside: Vec<Inside>,
}

impl Breakdown {
    /// The share of one holder.
    pub fn share(&self, holder: Holder) -> Option<Quantity> {
        self.shares.iter().find(|share| share.holder == holder).map(|share| share.amount)
    }

    /// Whether it tells what PyTorch holds.
    pub fn knows_torch(&self) -> bool {
        self.shares.iter().any(|share| {
            matches!(share.holder, Holder::OrdinaryPools | Holder::TorchPools | Holder::PrivatePools)
        })
    }
}

/// All breakdowns that the facts of one rank allow: at its failure, with its snapshot, else with the dump alone.
pub fn breakdowns(
    launch: &Launch,
    rank: &Rank,
    ledger: &Ledger,
    reconciliation: Option<&Reconciliation>,
    snapshot: Option<&MatchedSnapshot<'_>>,
) -> Vec<Breakdown> {
    let mut breakdowns = Vec::new();
    let at_failure = failure::at_failure(launch, rank, snapshot);
    let of_dump = reconciliation.and_then(Dump::of);
    let own = of_dump.as_ref().and_then(|dump| dump.own);
    match (snapshot, &at_failure) {
        // The failure's own figures are of the same process, and of the moment that matters.
        (Some(snapshot), Some(failed))
            if failed.sources.iter().any(|name| name == snapshot.name.as_ref()) => {}
        (Some(snapshot), _) => {
            let (scope, total) = match (&of_dump, ledger.opening.zip(ledger.final_free())) {
                (Some(dump), _) => (Scope::Device, Some(dump.used)),
                (None, Some((opening, free))) => (Scope::SinceFirstFigure, Some(opening - free)),
                (None, None) => (Scope::Device, None),
            };
            if let Some(total) = total {
                let torch = TorchFigures::of(snapshot.summary);
                breakdowns.push(Breakdown {
                    sources: vec![snapshot.name.to_string()],
                    ..split(Moment::Snapshot, scope, total, own, Some(torch))
                });
            }
        }
        (None, None) => breakdowns.extend(
            of_dump
                .filter(|dump| dump.own.is_some())
                .map(|dump| split(Moment::Dump, Scope::Device, dump.used, dump.own, None)),
        ),
        (None, Some(_)) => {}
    }
    breakdowns.extend(at_failure);
    breakdowns
}

/// What a dump says of a rank's device.
struct Dump {
    used: Quantity,
    own: Option<Quantity>,
}

impl Dump {
    fn of(reconciliation: &Reconciliation) -> Option<Dump> {
        let own = reconciliation.owners.iter().find(|owner| owner.own);
        Some(Dump {
            used: reconciliation.amount(BridgeTerm::UsedByInstrument)?,
            own: own.and_then(|owner| owner.process.used),
        })
    }
}
