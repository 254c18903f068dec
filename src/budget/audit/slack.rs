//! What the slack was really used for: everything that left the free figure after the pool was sized.

use super::cell;
use super::world::{World, draft_pool, free_at_pool, pool_of};
use super::{AuditInputs, ledger_of};
use crate::ledger::{Ledger, Posting, PostingKind};
use crate::place::Place;
use crate::quantity::Quantity;
use crate::stage::{Stage, Worker};
use crate::version::Version;

/// One use of the slack.
#[derive(Debug, Clone, PartialEq)]
pub struct SlackItem {
    /// Stage or gap.
    pub kind: PostingKind,
    /// The stage; for a gap, the one that it comes before.
    pub stage: Stage,
    /// The model.
    pub worker: Worker,
    /// The log's own words.
    pub label: String,
    /// How much; negative where memory was given back.
    pub used: Quantity,
}

/// The slack's use on one rank: free at sizing = KV + overhead + items + kept at ready + remaining.
#[derive(Debug, Clone, PartialEq)]
pub struct SlackUse {
    /// The rank, as an index into the launch's ranks: the one with the least left.
    pub rank: usize,
    /// Of the static budget, what the KV pool did not take: caps, whole pages, another rank that is poorer. Negative
    /// where the pool is larger than the budget.
    pub unspent: Option<Quantity>,
    /// What the pool stage took beyond keys and values: request table, free lists, unused blocks.
    pub overhead: Option<Quantity>,
    /// Stages and gaps after the pool.
    pub items: Vec<SlackItem>,
    /// What left between the last stage and the summary line: the allocator's cache, mostly.
    pub kept_at_ready: Option<Quantity>,
    /// What remains.
    pub remaining: Option<Quantity>,
    /// Where that is printed.
    pub place: Option<Place>,
}

impl SlackUse {
    pub(super) fn of(inputs: &AuditInputs<'_>, versions: &[Version], world: &World) -> Option<SlackUse> {
        let left = |rank: &usize| Some((*rank, ledger_of(inputs, *rank)?.final_free()?));
        let has_pool = |rank: &usize| ledger_of(inputs, *rank).and_then(pool_of).is_some();
        let ranks = world.ranks.iter().filter(|rank| has_pool(rank));
        let (rank, _) = ranks.filter_map(left).min_by_key(|(_, left)| left.midpoint())?;
        let ledger = ledger_of(inputs, rank)?;
        let pool = pool_of(ledger)?;
        let draft = draft_pool(ledger, versions);
        let kv = kv_of(pool, draft);
        let overhead =
            [Some(pool), draft].into_iter().flatten().map(|pool| pool.used).sum::<Option<Quantity>>();
        let budget =
            free_at_pool(ledger).zip(world.slack).map(|((free, _), slack)| free - slack - world.reserved());
        let items = items_after(ledger, pool, draft);
        Some(SlackUse {
            rank,
            unspent: budget.zip(kv).map(|(budget, kv)| budget - kv),
            overhead: overhead.zip(kv).map(|(used, kv)| used - kv - world.reserved()),
            items,
            kept_at_ready: ledger.kept_at_ready(),
            remaining: ledger.final_free(),
            place: ledger.headroom_place.clone().or_else(|| ledger.closing_place.clone()),
        })
    }

    /// Everything that was used: overhead, items and what was kept at ready.
    pub fn used(&self) -> Quantity {
        let items: Quantity = self.items.iter().map(|item| item.used).sum();
        items + self.overhead.unwrap_or(Quantity::ZERO) + self.kept_at_ready.unwrap_or(Quantity::ZERO)
    }

    /// The items of one stage together.
    pub fn stage(&self, stage: Stage) -> Option<Quantity> {
        let mut used = self
            .items
            .iter()
            .filter(|item| item.stage == stage && item.kind == PostingKind::Stage)
            .map(|item| item.used)
            .peekable();
        used.peek().is_some().then(|| used.sum())
    }
}

fn kv_of(pool: &Posting, draft: Option<&Posting>) -> Option<Quantity> {
    let draft = draft.and_then(cell::kv_bytes).unwrap_or(Quantity::ZERO);
    Some(cell::kv_bytes(pool)? + draft)
}

/// The postings behind the pool's, without the draft's pool where it is charged to the budget.
fn items_after(ledger: &Ledger, pool: &Posting, draft: Option<&Posting>) -> Vec<SlackItem> {
    let behind = ledger.postings.iter().skip_while(|posting| !std::ptr::eq(*posting, pool)).skip(1);
    behind
        .filter(|posting| posting.in_chain && draft.is_none_or(|draft| !std::ptr::eq(*posting, draft)))
        .filter_map(|posting| {
            Some(SlackItem {
                kind: posting.kind,
                stage: posting.stage,
                worker: posting.worker,
                label: posting.label.clone(),
                used: posting.used?,
            })
        })
        .collect()
}
