//! The pool stage: KV of so many tokens, and what lies beside it.

use super::Facts;
use super::divide::Divided;
use crate::quantity::{GIB, MIB, Quantity};

/// The pool's free list holds an 8-byte index a token.
const FREE_LIST_BYTES: i128 = 8;
/// PyTorch takes large buffers from the device in whole blocks of this; what is over is lost to the pool. Keys and values
/// have a buffer a layer each.
const BLOCK: i128 = 2 * MIB;
/// Layers on a rank, where no config tells: models of this size and more are split over ranks.
const LAYERS_UNKNOWN: i128 = 64;

/// KV of so many tokens, a draft's pool outside the budget included.
pub(super) fn kv(divided: &Divided, (low, high): (i128, i128)) -> Quantity {
    let (low, high) = (low.max(0), high.max(0));
    let cells = [Some(divided.cell), divided.uncharged_cell];
    cells.into_iter().flatten().filter_map(|cell| Some(cell.bytes(low)?.hull(cell.bytes(high)?))).sum()
}

/// How much more the pool stage takes beyond KV: the free list in proportion to the tokens, and the unused ends of the
/// buffers' last blocks, which are anybody's guess once the buffers have another size.
pub(super) fn more_overhead(facts: &Facts, kv: (Quantity, Quantity), (low, high): (i128, i128)) -> Quantity {
    let Some(now) = facts.tokens else { return Quantity::ZERO };
    let list = |tokens: i128| {
        let more = tokens.saturating_sub(now).saturating_mul(FREE_LIST_BYTES);
        Quantity::exact(more.clamp(-GIB, GIB))
    };
    let list = list(low).hull(list(high));
    if (kv.1 - kv.0).magnitude().high() < BLOCK {
        return list;
    }
    let layers = match &facts.model {
        Some((model, parallel)) => parallel.layers(model.layers.len()).len() as i128,
        None => LAYERS_UNKNOWN,
    };
    let most = layers * if facts.latent { BLOCK } else { 2 * BLOCK };
    let unused = unused_now(facts)
        .map_or((0, most), |unused| (unused.low().clamp(0, most), unused.high().clamp(0, most)));
    list + Quantity::between(-unused.1, most - unused.0)
}

/// The unused ends of blocks now: what the pool stage takes beyond KV, request table and free list.
fn unused_now(facts: &Facts) -> Option<Quantity> {
    let (running, context) = (facts.running?, i128::from(facts.context_length?));
    let table = Quantity::exact(running.saturating_mul(context).saturating_mul(4).clamp(0, GIB * 64));
    Some(facts.overhead? - table - Quantity::exact(facts.tokens?.saturating_mul(FREE_LIST_BYTES)))
}
