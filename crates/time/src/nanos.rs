//! `Nanos`: a point in time or a duration, in nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Nanoseconds since the device was opened, or a duration.
///
/// 64 bits hold 584 years. Subtraction panics if the result would be negative, which is a bug.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// The time at which a device is opened; an empty duration.
    pub const ZERO: Self = Self(0);
    /// Later than any event.
    pub const MAX: Self = Self(u64::MAX);

    /// `count` nanoseconds.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// `count` microseconds.
    pub const fn from_micros(count: u64) -> Self {
        Self(count * 1_000)
    }

    /// `count` milliseconds.
    pub const fn from_millis(count: u64) -> Self {
        Self(count * 1_000_000)
    }

    /// `count` seconds.
    pub const fn from_secs(count: u64) -> Self {
        Self(count * 1_000_000_000)
    }

    /// The number of nanoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The time in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - earlier`, or zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The transfer time of `bytes` at `bytes_per_second`, rounded up.
    #[inline]
    pub const fn transfer(bytes: u64, bytes_per_second: u64) -> Self {
        if let Some(product) = bytes.checked_mul(1_000_000_000) {
            return Self(product.div_ceil(bytes_per_second));
        }
        // More than 18 GB. Avoided otherwise, because 128-bit division is slow.
        let product = bytes as u128 * 1_000_000_000;
        Self(product.div_ceil(bytes_per_second as u128) as u64)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self(self.0.checked_sub(earlier.0).expect("time runs forward"))
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, count: u64) -> Self {
        Self(self.0 * count)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n} ns"),
            n if n < 10_000_000 => write!(f, "{:.1} us", n as f64 / 1e3),
            n if n < 10_000_000_000 => write!(f, "{:.1} ms", n as f64 / 1e6),
            n => write!(f, "{:.1} s", n as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Nanos;

    #[test]
    fn a_transfer_is_never_shorter_than_its_bytes_need() {
        assert_eq!(Nanos::transfer(4096, 1_000_000_000), Nanos::new(4096));
        assert_eq!(Nanos::transfer(1, 3_000_000_000), Nanos::new(1));
        assert_eq!(Nanos::transfer(0, 1), Nanos::ZERO);
        assert_eq!(Nanos::transfer(100 << 30, 1 << 30), Nanos::from_secs(100));
    }

    #[test]
    #[should_panic(expected = "time runs forward")]
    fn a_negative_span_is_a_bug() {
        let _ = Nanos::new(1) - Nanos::new(2);
    }
}
