//! The few operations of Python's floats that Rust's do differently.

/// `round(number, 3)`: to three decimals, correctly rounded from the binary value, ties to even.
///
/// Python and Rust both round the exact binary value when they print decimals, so printing and reading back is Python's own
/// definition (`float.__round__` in CPython's `floatobject.c`).
pub fn round_to_3(number: f64) -> f64 {
    format!("{number:.3}").parse().unwrap_or(number)
}

/// `dividend // divisor` of two floats: the floor of the true quotient, which can be one less than the floor of the
/// rounded one (`float_floor_div` in CPython). Not a number for a divisor of zero.
pub fn floor_divide(dividend: f64, divisor: f64) -> f64 {
    let remainder = dividend % divisor;
    let mut quotient = (dividend - remainder) / divisor;
    if remainder != 0.0 && (divisor < 0.0) != (remainder < 0.0) {
        quotient -= 1.0;
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

/// `int(number)`: towards zero. `None` for what is no number, and beyond 2^100.
pub fn truncate(number: f64) -> Option<i128> {
    (number.abs() < (1u128 << 100) as f64).then_some(number as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_half_even_on_the_binary_value() {
        assert_eq!(round_to_3(0.0625), 0.062);
        assert_eq!(round_to_3(0.1875), 0.188);
        assert_eq!(round_to_3(0.0005), 0.001, "0.0005 is a little above the tie in binary");
        assert_eq!(round_to_3(0.8345), 0.835, "as CPython 3.12 prints it");
        assert_eq!(round_to_3(-0.0625), -0.062);
    }

    #[test]
    fn floor_division_is_exact_where_the_quotient_rounds_up() {
        assert_eq!(floor_divide(1.0, 0.1), 9.0);
        assert_eq!(floor_divide(6.0, 0.1), 59.0);
        assert_eq!(floor_divide(-7.0, 2.0), -4.0);
        assert_eq!(floor_divide(7.0, 2.0), 3.0);
        assert!(floor_divide(1.0, 0.0).is_nan());
    }

    #[test]
    fn truncation_goes_towards_zero() {
        assert_eq!(truncate(2.9), Some(2));
        assert_eq!(truncate(-2.9), Some(-2));
        assert_eq!(truncate(f64::NAN), None);
        assert_eq!(truncate(f64::INFINITY), None);
    }
}
