//! Which launch and which worker a line belongs to: the state machine of a rank's start-up.
//!
//! Per rank, `begun`/`ended` count what was seen. A line *fits* a launch when this table allows it:
//!
//! | line | fits when |
//! | --- | --- |
//! | distributed init begins | none begun yet; or weights have ended once and a draft model is possible |
//! | distributed init ends | more begun than ended; or the rank has said nothing yet (the log starts in the middle) |
//! | weights begin | as many ended as begun; the first time, or again where a draft model is possible |
//! | weights end | more begun than ended; or nothing said yet |
//! | memory pool ends | fewer ended than models begun, at least one |
//! | capture begins, ends | the rank is not ready |
//! | summary | none yet |
//! | anything of start-up | never after the rank's summary, the launch's ready line, or the rank's own failure |
//! | LoRA, weight update, notes, failures, other | always |
//!
//! A draft model is possible unless the arguments say `speculative_algorithm=None`. The second round of the same
//! words is then the draft's: up to 0.5.12 it follows the target's captures, from 0.5.15 it is interleaved stage by
//! stage, and counting rounds reads both. A line that fits no open launch begins a new one.

use crate::event::{Edge, Event, PoolRole, Role, WorkerHint};
use crate::quantity::Quantity;
use crate::server_args::{Argument, ServerArgs};
use crate::stage::{Coordinates, Stage, Worker};

/// What was seen of one rank so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Progress {
    inits_begun: u32,
    inits_ended: u32,
    loads_begun: u32,
    loads_ended: u32,
    pools_ended: u32,
    /// Pool lines since the last pool ended.
    pool_lines: u32,
    summarised: bool,
    failed: bool,
    capturing: bool,
    spoke: bool,
    level: Option<Quantity>,
    /// Bytes of the pools printed since that level.
    pooled: i128,
}

impl Progress {
    /// Whether a line of this role can come next. `draft` tells whether a draft model is possible.
    pub(super) fn admits(&self, role: Role, draft: bool) -> bool {
        let Role::Stage(stage, edge, _) = role else {
            return !(matches!(role, Role::Summary) && self.summarised);
        };
        if matches!(stage, Stage::Lora | Stage::Other | Stage::PostCaptureResize) {
            return true;
        }
        if self.summarised || self.failed {
            return false;
        }
        match (stage, edge) {
            (Stage::DistributedInit, Edge::Begin) => {
                self.inits_begun == 0 && self.loads_begun == 0 || draft && self.loads_ended > 0
            }
            (Stage::DistributedInit, Edge::End) => self.inits_begun > self.inits_ended || !self.spoke,
            (Stage::Weights, Edge::Begin) => {
                self.loads_begun == self.loads_ended && (self.loads_begun == 0 || draft)
            }
            (Stage::Weights, Edge::End) => self.loads_begun > self.loads_ended || !self.spoke,
            (Stage::KvCache | Stage::MemoryPool, _) => self.pools_ended < self.loads_begun.max(1),
            _ => true,
        }
    }

    /// Takes note of a line and says whose it is.
    pub(super) fn advance(&mut self, event: &Event) -> Worker {
        let worker = self.worker_of(event);
        self.spoke = true;
        match event.role {
            Role::Stage(stage, edge, _) => {
                match (stage, edge) {
                    (Stage::DistributedInit, Edge::Begin) => self.inits_begun += 1,
                    (Stage::DistributedInit, Edge::End) => self.inits_ended += 1,
                    (Stage::Weights, Edge::Begin) => self.loads_begun += 1,
                    (Stage::Weights, Edge::End) => {
                        self.loads_begun = self.loads_begun.max(self.loads_ended + 1);
                        self.loads_ended += 1;
                    }
                    (Stage::KvCache | Stage::MemoryPool, _) => {
                        self.pools_ended += 1;
                        self.pool_lines = 0;
                    }
                    _ => {}
                }
                if stage.is_capture() {
                    self.capturing = edge == Edge::Begin;
                }
                if let Some(level) = event.memory("avail mem") {
                    self.level = Some(level);
                    self.pooled = 0;
                }
            }
            Role::Pool(_) => {
                self.pool_lines += 1;
                self.pooled += pooled(event);
            }
            Role::Summary => self.summarised = true,
            Role::Failure(_) => self.failed = true,
            _ => {}
        }
        worker
    }

    /// A warning in the words of a failure turned out harmless: the rank went on.
    pub(super) fn forgive(&mut self) {
        self.failed = false;
    }

    /// Whether the rank printed its summary.
    pub(super) fn is_summarised(&self) -> bool {
        self.summarised
    }

    /// Whether a capture of this rank is under way, so that bars without a prefix can be its own.
    pub(super) fn is_capturing(&self) -> bool {
        self.capturing
    }

    /// How badly a line fits this rank as its next: how far the free memory would jump beyond what the line and the pools
    /// before it account for. `None` where a figure is missing.
    pub(super) fn jump(&self, event: &Event) -> Option<i128> {
        let level = self.level?.midpoint() - self.pooled;
        if matches!(event.role, Role::Pool(_)) {
            // A pool has no level: it must fit in what is free, and the rank whose pool was not yet printed is nearer.
            return Some(if pooled(event) > level { NO_ROOM } else { i128::from(self.pool_lines) });
        }
        let next = event.memory("avail mem").or(event.memory("available_gpu_mem"))?.midpoint();
        let claimed = event.memory("mem usage").map_or(0, Quantity::midpoint);
        Some((level - next - claimed).abs())
    }

    fn worker_of(&self, event: &Event) -> Worker {
        let round = |second: bool| if second { Worker::Draft } else { Worker::Target };
        match event.role {
            Role::Stage(_, _, WorkerHint::Known(worker)) => worker,
            Role::Stage(Stage::DistributedInit, Edge::Begin, _) => round(self.inits_begun > 0),
            Role::Stage(Stage::DistributedInit, _, _) => round(self.inits_ended > 0 && self.loads_ended > 0),
            Role::Stage(Stage::Weights, Edge::Begin, _) => round(self.loads_begun > 0),
            Role::Stage(Stage::Weights, _, _) => round(self.loads_ended > 0),
            Role::Stage(Stage::KvCache | Stage::MemoryPool, _, _) | Role::Pool(_) => {
                round(self.pools_ended > 0)
            }
            _ => Worker::Target,
        }
    }
}

/// Worse than any jump of a real card, and still a figure.
const NO_ROOM: i128 = i128::MAX / 2;

/// Bytes that a line of physical pools sizes.
fn pooled(event: &Event) -> i128 {
    match event.role {
        Role::Pool(PoolRole::Part) => {
            event.fields.iter().filter_map(|field| field.memory()).map(Quantity::midpoint).sum()
        }
        _ => 0,
    }
}

/// Whether a launch with these arguments can have a draft model. Unknown arguments allow it.
pub(super) fn draft_possible(arguments: Option<&ServerArgs>) -> bool {
    !matches!(arguments.and_then(|arguments| arguments.get("speculative_algorithm")), Some(Argument::None))
}

/// Whether the node that printed `arguments` runs the rank with these coordinates: several nodes' logs in one
/// stream differ only in that. Unknown where the arguments don't say.
pub(super) fn node_owns(arguments: Option<&ServerArgs>, coordinates: &Coordinates) -> bool {
    let known = arguments.and_then(|arguments| {
        let nodes = arguments.integer("nnodes").filter(|nodes| *nodes > 1)?;
        let node = arguments.integer("node_rank")?;
        let tensor_size = arguments.integer("tp_size")?;
        let pipeline_size = arguments.integer("pp_size").unwrap_or(1);
        let rank = i128::from(coordinates.pp.unwrap_or(0)) * tensor_size + i128::from(coordinates.tp?);
        let per_node = (tensor_size * pipeline_size).checked_div(nodes).filter(|per_node| *per_node > 0)?;
        Some(rank.div_euclid(per_node) == node)
    });
    known.unwrap_or(true)
}
