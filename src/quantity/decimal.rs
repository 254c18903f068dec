//! A printed decimal number, kept as its digits: the number of decimals says how far it was rounded.

use std::fmt;

/// More digits than this are cut when parsing (an `i128` of byte counts needs no more).
const MOST_DIGITS: usize = 24;
/// Beyond this many places either way a number has no meaning as memory.
const MOST_PLACES: i32 = 30;

/// A decimal number as printed: `mantissa × 10^-places`. `20.50` and `20.5` differ: the first is rounded finer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: i128,
    places: i32,
}

impl Decimal {
    /// `mantissa × 10^-places`.
    pub const fn new(mantissa: i128, places: i32) -> Self {
        Decimal { mantissa, places }
    }

    /// Reads a number as Python prints it: sign, digits, decimals, exponent. `None` for anything else, for
    /// `nan` and `inf`, and for numbers without digits before the point (`.20` is a cut value, not 0.20).
    pub fn parse(text: &str) -> Option<Self> {
        let (body, exponent) = match text.split_once(['e', 'E']) {
            Some((body, exponent)) => (body, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, digits) = match body.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, body.strip_prefix('+').unwrap_or(body)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || whole.len() > MOST_DIGITS {
            return None;
        }
        // Decimals beyond the limit cannot change a byte count: cutting them costs nothing.
        let fraction = fraction.get(..fraction.len().min(MOST_DIGITS - whole.len()))?;
        let mut mantissa: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            mantissa = mantissa * 10 + i128::from(digit - b'0');
        }
        let places = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        if places.abs() > MOST_PLACES {
            return None;
        }
        Some(Decimal { mantissa: if negative { -mantissa } else { mantissa }, places })
    }

    /// How many decimals were printed.
    pub const fn places(&self) -> i32 {
        self.places
    }

    /// The digits without the point.
    pub const fn mantissa(&self) -> i128 {
        self.mantissa
    }

    /// The nearest floating-point number: for seconds and displays, never for memory.
    pub fn to_f64(&self) -> f64 {
        self.mantissa as f64 / 10f64.powi(self.places)
    }

    /// The number as an integer, where it is one.
    pub fn to_integer(&self) -> Option<i128> {
        if self.places <= 0 {
            return self.mantissa.checked_mul(10i128.checked_pow(self.places.unsigned_abs())?);
        }
        let power = 10i128.checked_pow(self.places.unsigned_abs())?;
        (self.mantissa % power == 0).then(|| self.mantissa / power)
    }

    /// The exact value as a fraction `(numerator, denominator)`. `None` where that overflows.
    pub fn to_fraction(&self) -> Option<(i128, i128)> {
        let power = 10i128.checked_pow(self.places.unsigned_abs())?;
        if self.places >= 0 {
            Some((self.mantissa, power))
        } else {
            Some((self.mantissa.checked_mul(power)?, 1))
        }
    }

    /// The bounds, in bytes, of all amounts that print like this in a unit of `unit_bytes`: half a unit of the
    /// last decimal to either side, rounded outward. `None` beyond [`super::LARGEST`].
    pub(super) fn bytes_between(&self, unit_bytes: i128) -> Option<(i128, i128)> {
        let twice = self.mantissa.checked_mul(2)?;
        let bound = |ends: i128| -> Option<(i128, i128)> {
            let scaled = ends.checked_mul(unit_bytes)?;
            let power = 10i128.checked_pow(self.places.unsigned_abs())?;
            if self.places >= 0 {
                Some((scaled, power.checked_mul(2)?))
            } else {
                Some((scaled.checked_mul(power)?, 2))
            }
        };
        let (low, divisor) = bound(twice.checked_sub(1)?)?;
        let (high, _) = bound(twice.checked_add(1)?)?;
        let (low, high) = (low.div_euclid(divisor), -((-high).div_euclid(divisor)));
        (low.abs() <= super::LARGEST && high.abs() <= super::LARGEST).then_some((low, high))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.places <= 0 {
            return match self.to_integer() {
                Some(integer) => write!(formatter, "{integer}"),
                None => write!(formatter, "{}e{}", self.mantissa, self.places.unsigned_abs()),
            };
        }
        let places = self.places.unsigned_abs() as usize;
        let digits = format!("{:0>width$}", self.mantissa.unsigned_abs(), width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let sign = if self.mantissa < 0 { "-" } else { "" };
        write!(formatter, "{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn python_numbers_are_read() {
        assert_eq!(Decimal::parse("20.50"), Some(Decimal::new(2050, 2)));
        assert_eq!(Decimal::parse("-1.86"), Some(Decimal::new(-186, 2)));
        assert_eq!(Decimal::parse("1e-05"), Some(Decimal::new(1, 5)));
        assert_eq!(Decimal::parse("143771"), Some(Decimal::new(143_771, 0)));
        assert_eq!(Decimal::parse("2.5E+3").and_then(|d| d.to_integer()), Some(2500));
    }

    #[test]
    fn cut_and_odd_numbers_are_unknown() {
        for text in ["", ".20", "-", "nan", "inf", "1.2.3", "0x10", "1e999999999", "1,5"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn long_floats_keep_their_meaning() {
        let raw = Decimal::parse("138.2822265625123456789012345678901234").unwrap();
        let (low, high) = raw.bytes_between(super::super::GIB).unwrap();
        assert!(high - low <= 1, "an unrounded float is known to the byte");
    }

    proptest! {
        #[test]
        fn print_then_parse_is_the_identity(mantissa in -1_000_000_000_000i128..1_000_000_000_000, places in 0i32..12) {
            let decimal = Decimal::new(mantissa, places);
            prop_assert_eq!(Decimal::parse(&decimal.to_string()), Some(decimal));
        }

        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            if let Some(decimal) = Decimal::parse(&text) {
                let _ = decimal.bytes_between(super::super::GIB);
                let _ = decimal.to_string();
                let _ = decimal.to_fraction();
            }
        }
    }
}
