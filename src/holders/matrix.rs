//! Uses by holders: what memory is for, against who holds it.
//!
//! Only holders are summed. A use is spread over holders and shares each with other uses, and a decode activation
//! allocated during capture is activation, graph and private pool at once; so a cell is a figure only where a use lies in
//! one holder alone and the log prints it, and otherwise says that some of it is there.

use super::{Breakdown, Holder};
use crate::launch::Launch;
use crate::ledger::Ledger;
use crate::quantity::Quantity;
use crate::stage::{Stage, Worker};

/// The holders as columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// PyTorch's ordinary pools.
    Ordinary,
    /// PyTorch's private pools.
    Private,
    /// NCCL, NVSHMEM, DeepEP.
    Communication,
    /// cudaMalloc of libraries, and memory mapped through VMM.
    Direct,
    /// CUDA context and driver.
    Context,
}

/// The columns in order; the last three are outside PyTorch.
pub const COLUMNS: [Column; 5] =
    [Column::Ordinary, Column::Private, Column::Communication, Column::Direct, Column::Context];

/// The logical uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// Weights of the target model.
    Weights,
    /// KV cache and state of requests.
    KvCache,
    /// Activations.
    Activations,
    /// The draft model of speculative decoding: its weights, KV and graphs.
    Draft,
    /// CUDA graphs.
    Graphs,
    /// Workspaces, and what the allocator keeps.
    Workspaces,
    /// Everything outside PyTorch.
    OutsideTorch,
}

/// The uses in order.
pub const USES: [Use; 7] = [
    Use::Weights,
    Use::KvCache,
    Use::Activations,
    Use::Draft,
    Use::Graphs,
    Use::Workspaces,
    Use::OutsideTorch,
];

impl Use {
    /// The name in words.
    pub const fn words(self) -> &'static str {
        match self {
            Use::Weights => "weights",
            Use::KvCache => "KV cache, request state",
            Use::Activations => "activations",
            Use::Draft => "draft model",
            Use::Graphs => "CUDA graphs",
            Use::Workspaces => "workspaces, allocator cache",
            Use::OutsideTorch => "outside PyTorch",
        }
    }

    /// Which holders it can lie in.
    const fn can_lie_in(self, column: Column, mapped: bool) -> bool {
        match (self, column) {
            (Use::Weights | Use::KvCache, Column::Direct) => mapped,
            (Use::Weights | Use::KvCache, column) => matches!(column, Column::Ordinary),
            (Use::Activations | Use::Draft, column) => matches!(column, Column::Ordinary | Column::Private),
            (Use::Graphs, column) => {
                matches!(column, Column::Private | Column::Communication | Column::Direct)
            }
            (Use::Workspaces, column) => {
                matches!(column, Column::Ordinary | Column::Private | Column::Direct)
            }
            (Use::OutsideTorch, column) => {
                matches!(column, Column::Communication | Column::Direct | Column::Context)
            }
        }
    }
}

/// What is known of a use in a holder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// It can't be there.
    Never,
    /// Some of it may be there; nothing tells how much, and other uses overlap with it.
    Some,
    /// It is there, and nowhere else.
    All(Quantity),
}

/// A use and its cells.
#[derive(Debug, Clone, PartialEq)]
pub struct UseRow {
    /// The use.
    pub usage: Use,
    /// What the log says of it: the fall of free memory in its stages, all holders together, or the sizes of its pools.
    /// `None` where nothing is printed of it.
    pub logged: Option<Quantity>,
    /// One cell a column, in the order of [`COLUMNS`].
    pub cells: [Cell; 5],
}

/// The matrix of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// One row a use.
    pub rows: Vec<UseRow>,
    /// PyTorch's ordinary and private pools, where told apart.
    pub pools: [Option<Quantity>; 2],
    /// Both kinds of pools.
    pub torch: Option<Quantity>,
    /// The three columns outside PyTorch together: nothing tells them apart.
    pub outside: Option<Quantity>,
}

/// The matrix of a rank at the moment of a breakdown.
pub fn matrix(launch: &Launch, ledger: &Ledger, breakdown: &Breakdown) -> Matrix {
    let flag = |key: &str| launch.args().and_then(|arguments| arguments.flag(key)) == Some(true);
    // The memory saver and pools sized after capture map physical pages themselves, around PyTorch's allocator.
    let mapped = flag("enable_memory_saver") || ledger.stages(Stage::PostCaptureResize).next().is_some();
    let drafted = ledger.postings.iter().any(|posting| posting.worker == Worker::Draft);
    let pools = [breakdown.share(Holder::OrdinaryPools), breakdown.share(Holder::PrivatePools)];
    let both = pools.iter().copied().collect::<Option<Vec<_>>>().map(|both| both.into_iter().sum());
    let torch = breakdown.share(Holder::TorchPools).or(both);
    let outside = breakdown.share(Holder::OutsideTorch);
    let row = |usage: Use| {
        let logged = match usage {
            Use::Weights => used(ledger, &[Stage::Weights], Worker::Target),
            Use::KvCache => kv_cache(ledger),
            Use::Draft => used(ledger, &DRAFTED, Worker::Draft),
            Use::Graphs => used(ledger, &CAPTURES, Worker::Target),
            Use::OutsideTorch => outside,
            Use::Activations | Use::Workspaces => None,
        };
        let places = COLUMNS.iter().filter(|column| usage.can_lie_in(**column, mapped)).count();
        let cell = |column: Column| match (usage.can_lie_in(column, mapped), logged) {
            (false, _) => Cell::Never,
            (true, Some(logged)) if places == 1 => Cell::All(logged),
            (true, _) => Cell::Some,
        };
        UseRow { usage, logged, cells: COLUMNS.map(cell) }
    };
    let rows = USES.into_iter().filter(|usage| *usage != Use::Draft || drafted).map(row).collect();
    Matrix { rows, pools, torch, outside }
}

const CAPTURES: [Stage; 5] =
    [Stage::GraphDecode, Stage::GraphPrefill, Stage::GraphVerify, Stage::GraphDraft, Stage::GraphDraftExtend];
const DRAFTED: [Stage; 6] = [
    Stage::Weights,
    Stage::KvCache,
    Stage::MambaCache,
    Stage::MemoryPool,
    Stage::GraphDraft,
    Stage::GraphDraftExtend,
];

/// What these stages of one model used together. `None` where none of them has an amount.
fn used(ledger: &Ledger, stages: &[Stage], worker: Worker) -> Option<Quantity> {
    let amounts = stages
        .iter()
        .flat_map(|stage| ledger.stages(*stage))
        .filter(|posting| posting.worker == worker)
        .filter_map(|posting| posting.used);
    amounts.reduce(|one, other| one + other)
}

/// The target's pools by their printed sizes, else by the fall of free memory.
fn kv_cache(ledger: &Ledger) -> Option<Quantity> {
    let stages = [Stage::KvCache, Stage::MambaCache, Stage::MemoryPool];
    let of_target = || {
        stages
            .iter()
            .flat_map(|stage| ledger.stages(*stage))
            .filter(|posting| posting.worker == Worker::Target)
    };
    let parts = of_target().flat_map(|posting| &posting.parts).map(|part| part.size);
    parts.reduce(|one, other| one + other).or_else(|| used(ledger, &stages, Worker::Target))
}
