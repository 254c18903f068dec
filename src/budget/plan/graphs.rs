//! What graphs of other sizes would take: an estimate, from the capture's own bars.

use super::{GraphChoice, GraphFacts};
use crate::budget::defaults::prefill_graph_sizes;
use crate::quantity::Quantity;
use crate::version::Version;

/// Decode graphs under a choice.
///
/// Fewer sizes: at least what the bars show for the sizes that stay; at most as before, because workspaces are built at
/// the first size, whichever it is. More: at least as before; at most in proportion to the largest batch.
pub(super) fn decode(facts: &GraphFacts, choice: GraphChoice) -> Option<Quantity> {
    let used = facts.used?;
    let batch = match choice {
        GraphChoice::Keep => return Some(used),
        GraphChoice::Off => return Some(Quantity::ZERO),
        GraphChoice::MaxBatch(batch) => batch,
    };
    let Some((largest, _)) = facts.bars.iter().copied().max_by_key(|(size, _)| *size) else {
        return Some(Quantity::between(0, used.high()));
    };
    if batch >= largest {
        let scaled = used.scale(i128::from(batch), i128::from(largest.max(1)))?;
        return Some(used.hull(scaled));
    }
    Some(Quantity::between(staying(facts, batch).unwrap_or(0).clamp(0, used.high().max(0)), used.high()))
}

/// What the bars show to be used from the first size on that stays.
fn staying(facts: &GraphFacts, batch: u32) -> Option<i128> {
    let (_, before) = facts.bars.iter().find(|(size, _)| *size <= batch)?;
    Some((*before - facts.after?).low())
}

/// Prefill graphs with another chunk: as many as the sizes up to it, at least in that proportion, at most as before; the
/// other way round for a larger one.
pub(super) fn prefill(
    facts: &GraphFacts,
    version: Version,
    choice: GraphChoice,
    chunks: Option<(i64, i64)>,
) -> Option<Quantity> {
    let used = facts.used?;
    if choice == GraphChoice::Off {
        return Some(Quantity::between(0, used.high()));
    }
    let Some((now, then)) = chunks else { return Some(used) };
    let sizes = |chunk: i64| i128::try_from(prefill_graph_sizes(version, chunk)).unwrap_or(1).max(1);
    Some(used.hull(used.scale(sizes(then), sizes(now))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::MIB;

    fn facts() -> GraphFacts {
        let mib = Quantity::exact_mib;
        GraphFacts {
            used: Some(mib(100)),
            bars: vec![(32, mib(1000)), (16, mib(950)), (8, mib(930))],
            after: Some(mib(900)),
        }
    }

    #[test]
    fn fewer_sizes_lie_between_their_bars_and_the_whole() {
        let fewer = decode(&facts(), GraphChoice::MaxBatch(16)).unwrap();
        assert_eq!((fewer.low(), fewer.high()), (50 * MIB, 100 * MIB));
        assert_eq!(decode(&facts(), GraphChoice::MaxBatch(32)), Some(Quantity::exact_mib(100)));
        let more = decode(&facts(), GraphChoice::MaxBatch(64)).unwrap();
        assert_eq!((more.low(), more.high()), (100 * MIB, 200 * MIB));
    }

    #[test]
    fn off_is_nothing_and_no_bars_leave_everything_open() {
        assert_eq!(decode(&facts(), GraphChoice::Off), Some(Quantity::ZERO));
        let blind = GraphFacts { bars: Vec::new(), ..facts() };
        assert_eq!(decode(&blind, GraphChoice::MaxBatch(8)), Some(Quantity::between(0, 100 * MIB)));
        assert_eq!(decode(&GraphFacts::default(), GraphChoice::Keep), None);
    }

    #[test]
    fn prefill_graphs_go_with_the_sizes_up_to_the_chunk() {
        let fewer = prefill(&facts(), Version::new(5, 12), GraphChoice::Keep, Some((8192, 2048))).unwrap();
        assert_eq!(fewer.high(), 100 * MIB);
        assert_eq!(fewer.low(), 100 * MIB * 42 / 58);
    }
}
