//! Bytes of KV per token, measured: the pool's printed sizes over its slots.

use crate::ledger::{Part, Posting};
use crate::quantity::Quantity;

/// What a token costs on one rank, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// No fewer than this.
    pub low: i128,
    /// No more than this.
    pub high: i128,
    /// The one round number in between, where there is one: head sizes make cells multiples of 64, and most of them of a
    /// much larger power of two. A deduction, not a print.
    pub likely: Option<i128>,
}

/// Head sizes are multiples of 64, so cells are.
const UNIT: i128 = 64;
/// Of no more multiples than this is one chosen.
const MOST_CANDIDATES: i128 = 4;

impl Cell {
    /// From pool sizes that together hold `tokens` tokens, and up to `padding` slots more.
    pub fn measured(bytes: Quantity, tokens: i128, padding: i128) -> Option<Cell> {
        if tokens < 1 || bytes.low() <= 0 {
            return None;
        }
        let slots = tokens.checked_add(padding.max(0))?;
        // The printed bounds are true to the byte, so the bounds of the quotient are rounded inward.
        let low = -((-bytes.low()).div_euclid(slots));
        let high = bytes.high().div_euclid(slots);
        (low >= 1 && low <= high).then(|| Cell { low, high, likely: roundest(low, high) })
    }

    /// Target and draft together.
    pub fn plus(self, other: Cell) -> Cell {
        Cell {
            low: self.low + other.low,
            high: self.high + other.high,
            likely: self.likely.zip(other.likely).map(|(one, other)| one + other),
        }
    }

    /// The range to compute with: the likely value alone where there is one.
    pub fn bounds(self) -> (i128, i128) {
        self.likely.map_or((self.low, self.high), |likely| (likely, likely))
    }

    /// One value to compute with where an estimate is all that is asked.
    pub fn best(self) -> i128 {
        self.likely.unwrap_or(self.low + (self.high - self.low) / 2)
    }

    /// The fewest and most tokens that so much memory holds; negative where it is.
    pub fn tokens(self, memory: Quantity) -> (i128, i128) {
        let (low, high) = self.bounds();
        let divided = |bytes: i128| [bytes.div_euclid(low.max(1)), bytes.div_euclid(high.max(1))];
        let [[one, other], [three, four]] = [divided(memory.low()), divided(memory.high())];
        (one.min(other), three.max(four))
    }

    /// The memory of so many tokens.
    pub fn bytes(self, tokens: i128) -> Option<Quantity> {
        let (low, high) = self.bounds();
        Some(Quantity::between(tokens.checked_mul(low)?, tokens.checked_mul(high)?))
    }
}

/// The only multiple of 64 in the range; of a few, the one that is round by a factor of 8 more than all others. Of many,
/// none: a wide range holds round numbers by chance.
fn roundest(low: i128, high: i128) -> Option<i128> {
    let first = -((-low).div_euclid(UNIT)) * UNIT;
    let multiples: Vec<i128> = (0..=MOST_CANDIDATES)
        .map(|step| first + step * UNIT)
        .take_while(|multiple| *multiple <= high)
        .collect();
    if multiples.len() > MOST_CANDIDATES as usize {
        return None;
    }
    let roundness = |number: &i128| number.trailing_zeros();
    let best = multiples.iter().copied().max_by_key(roundness)?;
    let rivals = multiples.iter().filter(|other| **other != best).map(roundness).max();
    rivals.is_none_or(|rival| roundness(&best) >= rival + 3).then_some(best)
}

/// Whether a pool line's part holds keys or values, and not the state of linear attention or a buffer.
pub(super) fn holds_kv(part: &Part) -> bool {
    matches!(part.label.rsplit(' ').next(), Some("K" | "V" | "KV"))
}

/// Keys and values of a pool, all parts together; `None` where it has none.
pub(super) fn kv_bytes(pool: &Posting) -> Option<Quantity> {
    let mut parts = pool.parts.iter().filter(|part| holds_kv(part)).map(|part| part.size).peekable();
    parts.peek().is_some().then(|| parts.sum())
}

/// The cell of a pool, where it says how many tokens it holds. A model with windowed layers has pools of different
/// token counts: theirs is the cost of a token of the largest.
pub(super) fn of_pool(pool: &Posting, page_size: i128) -> Option<Cell> {
    let counts = || pool.parts.iter().filter(|part| holds_kv(part)).filter_map(|part| part.tokens);
    let (least, most) = (counts().min()?, counts().max()?);
    let cell = Cell::measured(kv_bytes(pool)?, i128::from(most), page_size)?;
    if least == most {
        return Some(cell);
    }
    // Padding of the smaller pool is not known apart: leave room for it, and deduce nothing.
    Some(Cell { high: cell.high.saturating_add(cell.high / 1000), likely: None, ..cell })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{Decimal, Unit};

    fn gib(text: &str) -> Quantity {
        Quantity::from_print(&Decimal::parse(text).unwrap(), Unit::Gib).unwrap()
    }

    #[test]
    fn recorded_pools_give_their_models_cells() {
        let cell = |bytes: Quantity, tokens, page| Cell::measured(bytes, tokens, page).unwrap();
        let llama = cell(gib("51.63") + gib("51.63"), 845_985, 1);
        assert_eq!(llama.likely, Some(131_072));
        assert!(llama.high - llama.low < 30, "{llama:?}");
        assert_eq!(cell(gib("81.74"), 2_821_670, 1).likely, Some(31_104), "MLA: 27 layers of 576 elements");
        assert_eq!(cell(gib("6.10") + gib("6.10"), 200_000, 16).likely, Some(65_536), "FP8 in pages of 16");
        assert_eq!(cell(gib("1.32") + gib("1.32"), 690_507, 1).likely, Some(4096), "a draft of one layer");
    }

    #[test]
    fn a_coarse_print_deduces_nothing() {
        assert_eq!(Cell::measured(gib("0.01"), 10, 1).unwrap().likely, None);
        assert_eq!(Cell::measured(gib("0.00"), 1000, 1), None);
        assert_eq!(Cell::measured(gib("1.00"), 0, 1), None);
    }

    #[test]
    fn only_a_number_that_stands_out_is_taken() {
        assert_eq!(roundest(131_060, 131_085), Some(131_072));
        assert_eq!(roundest(31_103, 31_106), Some(31_104), "the only multiple of 64");
        assert_eq!(roundest(65_440, 65_546), Some(65_536), "far rounder than 65,472");
        assert_eq!(roundest(100, 120), None, "no multiple of 64");
        assert_eq!(roundest(120, 200), None, "128 and 192 are about as round");
        assert_eq!(roundest(30_800, 31_400), None, "31,232 is rounder than the true 31,104");
    }
}
