//! Amounts of memory as exact byte intervals, and the units they are printed in.
//!
//! Every figure in a log is a rounded print: `139.13 GB` stands for any of eleven million byte counts.
//! [`Quantity`] keeps both ends of that range, and its arithmetic is interval arithmetic, so "does not add
//! up" can only be said when no true values behind the prints could add up. It is separate because no other
//! module may convert or round: conversion and printing live here and nowhere else.

mod decimal;
mod format;
mod unit;

pub use decimal::Decimal;
pub use format::{gib_text, group_digits, mib_text, mib_whole, signed_mib_text};
pub use unit::{Convention, Unit};

use std::iter::Sum;
use std::ops::{Add, Neg, Sub};

/// Bytes in a KiB.
pub const KIB: i128 = 1 << 10;
/// Bytes in a MiB.
pub const MIB: i128 = 1 << 20;
/// Bytes in a GiB.
pub const GIB: i128 = 1 << 30;

/// Parsed magnitudes are held to this many bytes (2^80), so that no sum of them can overflow an `i128`.
pub const LARGEST: i128 = 1 << 80;

/// The answer to a comparison of two intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// True for every pair of values behind the two prints.
    Yes,
    /// True for no pair of values behind the two prints.
    No,
    /// The prints are too coarse to tell.
    CannotTell,
}

/// A number of bytes known to lie between two bounds, both included. Signed where it is a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quantity {
    low: i128,
    high: i128,
}

impl Quantity {
    /// No memory at all, exactly.
    pub const ZERO: Quantity = Quantity { low: 0, high: 0 };

    /// A figure known to the byte.
    pub const fn exact(bytes: i128) -> Self {
        Quantity { low: bytes, high: bytes }
    }

    /// A figure between two byte counts, given in either order.
    pub fn between(one: i128, other: i128) -> Self {
        Quantity { low: one.min(other), high: one.max(other) }
    }

    /// A figure of whole MiB from a tool that prints no decimals.
    ///
    /// nvidia-smi's rounding changed over driver generations: older ones truncate, 580 rounds up (reserved
    /// 615.06 MiB prints as 616, measured on an H200). The interval of one MiB to either side is true of both.
    pub fn whole_mib(mib: i128) -> Self {
        Quantity { low: (mib - 1).max(0) * MIB, high: (mib + 1) * MIB }
    }

    /// A figure of MiB that its instrument is known to hold exactly.
    pub const fn exact_mib(mib: i128) -> Self {
        Quantity::exact(mib * MIB)
    }

    /// All byte counts that print as `decimal` in `unit`. `None` beyond [`LARGEST`].
    pub fn from_print(decimal: &Decimal, unit: Unit) -> Option<Self> {
        decimal.bytes_between(unit.bytes()).map(|(low, high)| Quantity { low, high })
    }

    /// The lower bound in bytes.
    pub const fn low(self) -> i128 {
        self.low
    }

    /// The upper bound in bytes.
    pub const fn high(self) -> i128 {
        self.high
    }

    /// The middle of the interval in bytes, rounded down.
    pub const fn midpoint(self) -> i128 {
        self.low + (self.high - self.low) / 2
    }

    /// How far apart the bounds are, in bytes.
    pub const fn width(self) -> i128 {
        self.high - self.low
    }

    /// Whether `bytes` could be the true figure.
    pub const fn contains(self, bytes: i128) -> bool {
        self.low <= bytes && bytes <= self.high
    }

    /// Whether one true figure could lie behind both prints.
    pub const fn meets(self, other: Quantity) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The values possible under both prints, if there are any.
    pub fn intersect(self, other: Quantity) -> Option<Quantity> {
        self.meets(other).then(|| Quantity { low: self.low.max(other.low), high: self.high.min(other.high) })
    }

    /// The smallest interval that holds both.
    pub fn hull(self, other: Quantity) -> Quantity {
        Quantity { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The interval in which the smaller of the two true values lies.
    pub fn min(self, other: Quantity) -> Quantity {
        Quantity { low: self.low.min(other.low), high: self.high.min(other.high) }
    }

    /// Whether this is less than `other`.
    pub const fn less_than(self, other: Quantity) -> Certainty {
        if self.high < other.low {
            Certainty::Yes
        } else if self.low >= other.high {
            Certainty::No
        } else {
            Certainty::CannotTell
        }
    }

    /// Whether this is more than `other`.
    pub const fn more_than(self, other: Quantity) -> Certainty {
        other.less_than(self)
    }

    /// Whether every possible value is above `bytes`: the test that thresholds use.
    pub const fn surely_above(self, bytes: i128) -> bool {
        self.low > bytes
    }

    /// Whether every possible value is below `bytes`.
    pub const fn surely_below(self, bytes: i128) -> bool {
        self.high < bytes
    }

    /// The size without its sign: the interval of absolute values.
    pub fn magnitude(self) -> Quantity {
        if self.low >= 0 {
            self
        } else if self.high <= 0 {
            -self
        } else {
            Quantity { low: 0, high: self.high.max(-self.low) }
        }
    }

    /// This amount times `numerator / denominator`, rounded outward. `None` for a denominator below one.
    pub fn scale(self, numerator: i128, denominator: i128) -> Option<Quantity> {
        if denominator < 1 {
            return None;
        }
        let one = self.low.checked_mul(numerator)?;
        let other = self.high.checked_mul(numerator)?;
        Some(Quantity {
            low: one.min(other).div_euclid(denominator),
            high: div_ceil(one.max(other), denominator),
        })
    }

    /// The midpoint in MiB, for JSON and drawings only: never for arithmetic.
    pub fn mib(self) -> f64 {
        (self.low + self.high) as f64 / (2 * MIB) as f64
    }

    /// The lower bound in MiB, for JSON and drawings only.
    pub fn low_mib(self) -> f64 {
        self.low as f64 / MIB as f64
    }

    /// The upper bound in MiB, for JSON and drawings only.
    pub fn high_mib(self) -> f64 {
        self.high as f64 / MIB as f64
    }
}

/// Division rounded up, for a positive divisor.
fn div_ceil(dividend: i128, divisor: i128) -> i128 {
    -((-dividend).div_euclid(divisor))
}

impl Add for Quantity {
    type Output = Quantity;
    fn add(self, other: Quantity) -> Quantity {
        Quantity { low: self.low + other.low, high: self.high + other.high }
    }
}

impl Sub for Quantity {
    type Output = Quantity;
    fn sub(self, other: Quantity) -> Quantity {
        Quantity { low: self.low - other.high, high: self.high - other.low }
    }
}

impl Neg for Quantity {
    type Output = Quantity;
    fn neg(self) -> Quantity {
        Quantity { low: -self.high, high: -self.low }
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(iter: I) -> Quantity {
        iter.fold(Quantity::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn print(text: &str, unit: Unit) -> Quantity {
        Quantity::from_print(&Decimal::parse(text).unwrap(), unit).unwrap()
    }

    #[test]
    fn a_print_with_two_decimals_of_gib_is_an_interval_of_10_24_mib() {
        let quantity = print("139.13", Unit::Gib);
        assert!(quantity.contains(149_384_658_944), "the recorded bytes behind this print");
        assert!((quantity.width() as f64 / MIB as f64 - 10.24).abs() < 0.001);
    }

    #[test]
    fn decimal_gigabytes_are_not_gib() {
        assert!(print("1.00", Unit::Gb).contains(1_000_000_000));
        assert!(!print("1.00", Unit::Gb).contains(GIB));
    }

    #[test]
    fn whole_mib_hold_both_truncation_and_rounding_up() {
        // NVML's bytes behind nvidia-smi's 616, 143771 and 123384 on driver 580.
        assert!(Quantity::whole_mib(616).contains(644_939_776));
        assert!(Quantity::whole_mib(143_771).contains(150_754_820_096));
        assert!(Quantity::whole_mib(123_384).contains(129_377_107_968));
        assert!(Quantity::whole_mib(10).contains(10 * MIB + 1000));
    }

    #[test]
    fn comparison_says_when_it_cannot_tell() {
        assert_eq!(print("1.00", Unit::Gib).less_than(print("1.02", Unit::Gib)), Certainty::Yes);
        assert_eq!(print("1.00", Unit::Gib).less_than(print("1.01", Unit::Gib)), Certainty::CannotTell);
        assert_eq!(print("1.02", Unit::Gib).less_than(print("1.00", Unit::Gib)), Certainty::No);
    }

    #[test]
    fn scaling_rounds_outward() {
        let third = Quantity::exact(10).scale(1, 3).unwrap();
        assert_eq!((third.low(), third.high()), (3, 4));
        let negative = Quantity::exact(-10).scale(1, 3).unwrap();
        assert_eq!((negative.low(), negative.high()), (-4, -3));
        assert_eq!(Quantity::exact(1).scale(1, 0), None);
    }

    proptest! {
        #[test]
        fn sums_and_differences_hold_the_true_values(
            a in -1_000_000i128..1_000_000, b in -1_000_000i128..1_000_000,
            da in 0i128..5000, db in 0i128..5000, ea in 0i128..5000, eb in 0i128..5000,
        ) {
            let (x, y) = (Quantity::between(a - da, a + ea), Quantity::between(b - db, b + eb));
            prop_assert!((x + y).contains(a + b));
            prop_assert!((x - y).contains(a - b));
            prop_assert!((-x).contains(-a));
            prop_assert!(x.magnitude().contains(a.abs()));
            prop_assert!(x.hull(y).contains(a) && x.hull(y).contains(b));
            prop_assert!(x.min(y).contains(a.min(b)));
            if x.less_than(y) == Certainty::Yes { prop_assert!(a < b); }
            if x.less_than(y) == Certainty::No { prop_assert!(a >= b); }
        }

        #[test]
        fn the_interval_of_a_print_holds_whatever_prints_so(bytes in 0i128..(1i128 << 42)) {
            let printed = format!("{:.2}", bytes as f64 / GIB as f64);
            prop_assert!(print(&printed, Unit::Gib).contains(bytes));
        }
    }
}
