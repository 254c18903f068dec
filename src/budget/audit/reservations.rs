//! What is taken off before KV: state of linear-attention layers and buffers of multimodal models, by their own lines.

use super::{AuditInputs, ledger_of};
use crate::event::{PoolRole, Role};
use crate::place::Place;
use crate::quantity::Quantity;
use crate::stage::{Stage, Worker};

/// Memory that is taken off before the rest is divided into tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    /// What for.
    pub label: String,
    /// How much.
    pub amount: Quantity,
    /// Where it is printed.
    pub place: Place,
}

/// State caches of linear-attention layers, by their own pool lines, and the multimodal reservation: of the first rank
/// that prints them.
pub(super) fn reservations(inputs: &AuditInputs<'_>, ranks: &[usize]) -> Vec<Reservation> {
    let of_rank = |rank: &usize| {
        let events = inputs.launch.ranks.get(*rank).map(|rank| rank.events.as_slice()).unwrap_or_default();
        let multimodal = events
            .iter()
            .filter(|event| event.event.role == Role::Pool(PoolRole::Evidence))
            .filter_map(|event| event.event.field("reserved"))
            .filter_map(|field| {
                let label = "multimodal buffers".to_string();
                Some(Reservation { label, amount: field.memory()?, place: field.place.clone() })
            });
        let states = ledger_of(inputs, *rank)
            .and_then(|ledger| ledger.stage(Stage::KvCache, Worker::Target))
            .map(|pool| pool.parts.as_slice())
            .unwrap_or_default()
            .iter()
            .filter(|part| part.label.contains("state") || part.label.contains("intermediate"))
            .map(|part| Reservation {
                label: part.label.clone(),
                amount: part.size,
                place: part.place.clone(),
            });
        multimodal.chain(states).collect::<Vec<_>>()
    };
    ranks.iter().map(of_rank).find(|found| !found.is_empty()).unwrap_or_default()
}
