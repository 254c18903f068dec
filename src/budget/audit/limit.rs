//! One rank shrinks all: which, and what it costs.

use super::fraction::FractionFact;
use super::world::{World, free_at_pool};
use super::{AuditInputs, ledger_of};
use crate::budget::capacity::Budget;
use crate::quantity::Quantity;

/// The rank that holds a world's KV pool down, and what the pool would be without it.
#[derive(Debug, Clone, PartialEq)]
pub struct RankLimit {
    /// The rank, as an index into the launch's ranks.
    pub rank: usize,
    /// What is left for KV if the other ranks decided.
    pub rest_without: Quantity,
    /// How much more that is.
    pub cost: Quantity,
    /// Fewest and most tokens that it costs every rank.
    pub tokens: Option<(i128, i128)>,
    /// Whether another pipeline stage is to blame rather than another card: stages hold different layers.
    pub between_stages: bool,
}

impl RankLimit {
    /// The rank without which most would be left. `None` for a single rank, and where nothing would surely change.
    pub(super) fn of(
        inputs: &AuditInputs<'_>,
        fraction: Option<&FractionFact>,
        world: &World,
    ) -> Option<RankLimit> {
        let fraction = fraction?;
        let figures: Vec<Figures> = world
            .ranks
            .iter()
            .filter_map(|rank| {
                let ledger = ledger_of(inputs, *rank)?;
                Some(Figures { rank: *rank, first: ledger.opening?, free: free_at_pool(ledger)?.0 })
            })
            .collect();
        let rest = |without: Option<usize>| rest(fraction, world, &figures, without);
        let all = rest(None)?;
        let with_rest = figures.iter().filter_map(|one| Some((one.rank, rest(Some(one.rank))?)));
        let (rank, rest_without) = with_rest.max_by_key(|(_, rest)| rest.midpoint())?;
        let cost = rest_without - all;
        if cost.low() <= 0 {
            return None;
        }
        let tokens = world.cell.map(|cell| cell.tokens(cost));
        let stage = |rank: usize| inputs.launch.ranks.get(rank).and_then(|rank| rank.tag.coordinates.pp);
        let between_stages = figures.iter().all(|one| one.rank == rank || stage(one.rank) != stage(rank));
        Some(RankLimit { rank, rest_without, cost, tokens, between_stages })
    }
}

struct Figures {
    rank: usize,
    first: Quantity,
    free: Quantity,
}

/// What is left for KV by the ranks' first figures, one of them left out.
fn rest(
    fraction: &FractionFact,
    world: &World,
    figures: &[Figures],
    without: Option<usize>,
) -> Option<Quantity> {
    let kept = || figures.iter().filter(|one| Some(one.rank) != without);
    let budget = Budget {
        free: kept().map(|one| one.free).reduce(Quantity::min)?,
        baseline: kept().map(|one| one.first).reduce(Quantity::min)?,
        fraction: fraction.value,
        extras: world.reserved(),
        several_ranks: true,
    };
    budget.rest()
}
