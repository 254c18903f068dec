//! How many requests may run, and how many of full length the pool can hold.

use super::world::World;
use super::{AuditInputs, span};
use crate::budget::requests::{RequestInputs, request_limits};
use crate::event::Role;
use crate::place::Place;
use crate::version::Version;

/// The limits on running requests, predicted and printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requests {
    /// The model's context length as the summary prints it.
    pub context_length: u32,
    /// `max_running_requests` as the summary prints it.
    pub printed: Option<i128>,
    /// Fewest and most that the arithmetic gives. `None` for hybrid models, whose state cache bounds them too.
    pub predicted: Option<(i128, i128)>,
    /// `--max-running-requests`, as far as the arguments hold it; speculative decoding sets it too.
    pub asked: Option<u32>,
    /// Requests of full context length that the pool holds.
    pub at_full_context: i128,
    /// Where the limit is printed.
    pub place: Option<Place>,
}

impl Requests {
    pub(super) fn of(inputs: &AuditInputs<'_>, versions: &[Version], world: &World) -> Option<Requests> {
        let events = world
            .ranks
            .iter()
            .filter_map(|rank| inputs.launch.ranks.get(*rank))
            .flat_map(|rank| &rank.events);
        let summary = &events.into_iter().find(|event| event.event.role == Role::Summary)?.event;
        let context_length =
            u32::try_from(summary.count("context_len")?).ok().filter(|length| *length > 0)?;
        let tokens = world.tokens.as_ref()?;
        let count = world.post_capture.as_ref().map(|audit| audit.tokens).or(tokens.printed)?;
        let arguments = inputs.launch.args();
        let number = |key: &str| {
            arguments
                .and_then(|arguments| arguments.integer(key))
                .and_then(|number| u32::try_from(number).ok())
        };
        let asked = number("max_running_requests");
        let request = |profiled_tokens: i128| RequestInputs {
            tokens: count,
            profiled_tokens,
            context_length,
            max_running_requests: asked,
            max_num_reqs: number("max_num_reqs"),
            dp: number("dp_size").unwrap_or(1),
            dp_attention: arguments.and_then(|arguments| arguments.flag("enable_dp_attention")) == Some(true),
            draft_tokens: number("speculative_num_draft_tokens").unwrap_or(0),
            state_cache_requests: None,
        };
        let (low, high) = tokens.divided.unwrap_or((count, count));
        let limits = versions.iter().flat_map(|version| {
            [low, high].map(|divided| Some(request_limits(*version, &request(divided))?.running))
        });
        let hybrid = world.reservations.iter().any(|reservation| reservation.label.contains("state"));
        Some(Requests {
            context_length,
            printed: summary.count("max_running_requests"),
            predicted: if hybrid { None } else { span(limits.flatten().collect::<Vec<_>>()) },
            asked,
            at_full_context: count / i128::from(context_length),
            place: summary.field("max_running_requests").map(|field| field.place.clone()),
        })
    }

    /// Whether the pool cannot hold a single request of full length.
    pub fn context_exceeds_pool(&self, tokens: i128) -> bool {
        tokens < i128::from(self.context_length)
    }
}
