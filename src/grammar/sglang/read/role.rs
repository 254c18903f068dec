//! What a wording's alternatives change in its row's role, as data.

use crate::event::{PoolRole, Role, WorkerHint};
use crate::grammar::sglang::pattern::Hole;
use crate::stage::{Stage, Worker};

/// What a wording's alternatives change in the row's role: hole, word, change.
const REFINEMENTS: [(&str, &str, Refinement); 5] = [
    ("worker", "target", Refinement::Worker(Worker::Target)),
    ("worker", "draft", Refinement::Worker(Worker::Draft)),
    ("step", "verify", Refinement::Stage(Stage::GraphVerify)),
    ("backing", "VA upper bound", Refinement::Pool(PoolRole::AddressSpace)),
    ("backing", "reserved VA upper bound", Refinement::Pool(PoolRole::AddressSpace)),
];

/// A change of role.
#[derive(Debug, Clone, Copy)]
enum Refinement {
    None,
    Worker(Worker),
    Stage(Stage),
    Pool(PoolRole),
}

/// The role that the alternatives in the wording give.
pub(super) fn refined(role: Role, text: &str, holes: &[Hole]) -> Role {
    holes.iter().fold(role, |role, hole| {
        let word = text.get(hole.start..hole.end).unwrap_or_default();
        let change = REFINEMENTS
            .iter()
            .find(|(name, printed, _)| *name == hole.name && printed.eq_ignore_ascii_case(word))
            .map_or(Refinement::None, |(_, _, change)| *change);
        match (change, role) {
            (Refinement::Worker(Worker::Draft), Role::Stage(Stage::GraphDecode, edge, _)) => {
                Role::Stage(Stage::GraphDraft, edge, WorkerHint::Known(Worker::Draft))
            }
            (Refinement::Worker(worker), Role::Stage(stage, edge, _)) => {
                Role::Stage(stage, edge, WorkerHint::Known(worker))
            }
            (Refinement::Stage(stage), Role::Stage(_, edge, hint)) => Role::Stage(stage, edge, hint),
            (Refinement::Pool(pool), Role::Pool(_)) => Role::Pool(pool),
            (_, role) => role,
        }
    })
}
