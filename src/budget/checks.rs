//! The two checks that can refuse a start: nothing left for KV, and ranks with unequal memory.

use crate::quantity::{Certainty, Decimal, Quantity};
use crate::version::Version;

/// The least fraction under which anything is left for KV, as 0.5.15 and later print it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MinimalFraction {
    /// `1 - free / baseline`, not rounded.
    pub exact: f64,
    /// Rounded up to three decimals: what the message suggests to exceed.
    pub suggested: f64,
}

/// The least fraction that leaves something, from the free memory when the pool is sized and that before the weights, both in
/// GiB (`kv_cache_configurator.py`; needs a positive baseline).
pub fn minimal_fraction(free_gib: f64, baseline_gib: f64) -> Option<MinimalFraction> {
    (baseline_gib > 0.0).then(|| {
        let exact = 1.0 - free_gib / baseline_gib;
        MinimalFraction { exact, suggested: (exact * 1000.0).ceil() / 1000.0 }
    })
}

/// The interval that the least fraction lies in, in thousandths rounded up, for figures known within intervals. `None` for
/// a baseline that may be zero.
pub fn minimal_fraction_bounds(free: Quantity, baseline: Quantity) -> Option<(Decimal, Decimal)> {
    if baseline.low() <= 0 {
        return None;
    }
    let thousandths = |free: i128, baseline: i128| -> Option<Decimal> {
        let used = baseline.checked_sub(free)?.checked_mul(1000)?;
        Some(Decimal::new(-((-used).div_euclid(baseline)), 3))
    };
    Some((thousandths(free.high(), baseline.low())?, thousandths(free.low(), baseline.high())?))
}

/// What a release does about ranks whose free memory differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BalanceRule {
    /// The check exists but compares the wrong way round and can never fail (0.1.20).
    Dead,
    /// The start is refused.
    Refuses,
    /// The start is refused, or with an environment variable goes on with a warning.
    RefusesUnlessSwitchedOff {
        /// The variable, and the value that switches the check off.
        switch: &'static str,
    },
}

/// The rule of a release for ranks with unequal memory.
pub fn balance_rule(version: Version) -> BalanceRule {
    if version < Version::new(2, 15) {
        BalanceRule::Dead
    } else if version < Version::new(4, 6) {
        BalanceRule::Refuses
    } else if version < Version::new(5, 8) {
        BalanceRule::RefusesUnlessSwitchedOff { switch: "SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK=1" }
    } else {
        BalanceRule::RefusesUnlessSwitchedOff { switch: "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0" }
    }
}

/// Whether a rank finds the memory unbalanced: the poorest rank has less than 90 % of what it has itself before the
/// weights. The comparison is strict, and only a richer rank finds so; the poorest never does. Ranks are those of the
/// tensor-parallel group up to 0.4.3, of the whole world later.
pub fn unbalanced(poorest: Quantity, own: Quantity) -> Certainty {
    match (poorest.scale(10, 1), own.scale(9, 1)) {
        (Some(poorest), Some(own)) => poorest.less_than(own),
        _ => Certainty::CannotTell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Unit;

    fn gib(text: &str) -> Quantity {
        Quantity::from_print(&Decimal::parse(text).unwrap(), Unit::Gib).unwrap()
    }

    #[test]
    fn the_least_fraction_is_rounded_up() {
        let least = minimal_fraction(15.20, 78.50).unwrap();
        assert_eq!(format!("{:.4}", least.exact), "0.8064");
        assert_eq!(least.suggested, 0.807);
        assert_eq!(minimal_fraction(1.0, 0.0), None);
    }

    #[test]
    fn the_recorded_failure_names_the_same_fraction() {
        // A recorded 0.5.15 server printed "minimum viable 0.1081, above 0.109"; 133303697408 of 149458059264 bytes were left.
        let (free, baseline) = (Quantity::exact(133_303_697_408), Quantity::exact(149_458_059_264));
        let (low, high) = minimal_fraction_bounds(free, baseline).unwrap();
        assert_eq!((low.to_string().as_str(), high.to_string().as_str()), ("0.109", "0.109"));
        assert_eq!(minimal_fraction_bounds(gib("1.00"), Quantity::ZERO), None);
    }

    #[test]
    fn ninety_percent_exactly_is_balanced() {
        let exact = |mib| Quantity::exact_mib(mib);
        assert_eq!(unbalanced(exact(63_000), exact(70_000)), Certainty::No);
        assert_eq!(unbalanced(exact(60_000), exact(70_000)), Certainty::Yes);
        assert_eq!(unbalanced(gib("63.00"), gib("70.00")), Certainty::CannotTell);
        assert_eq!(unbalanced(gib("60.00"), gib("70.00")), Certainty::Yes);
    }

    #[test]
    fn the_rule_by_release() {
        assert_eq!(balance_rule(Version::new(1, 20)), BalanceRule::Dead);
        assert_eq!(balance_rule(Version::post(4, 3, 4)), BalanceRule::Refuses);
        for (version, variable) in
            [(Version::post(4, 6, 5), "SGL_DISABLE"), (Version::new(5, 9), "SGLANG_ENABLE")]
        {
            let BalanceRule::RefusesUnlessSwitchedOff { switch } = balance_rule(version) else {
                panic!("{version} has a switch")
            };
            assert!(switch.starts_with(variable));
        }
    }
}
