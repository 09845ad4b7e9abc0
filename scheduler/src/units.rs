//! Numbers wear their unit. All of them are integers.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// Milliseconds: a point in time since 1970-01-01T00:00Z, or a span, as the field's name says.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// Thousandths of one GPU: whole cards are multiples of 1,000; a share of a card is less.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MilliGpu(pub u64);

/// Thousandths of a GPU x milliseconds: what is metered. One GPU-hour is 3,600,000,000 of them.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MilliGpuMs(pub u128);

impl Millis {
    /// One second.
    pub const SECOND: Self = Self(1_000);
    /// One minute.
    pub const MINUTE: Self = Self(60_000);
    /// One hour.
    pub const HOUR: Self = Self(3_600_000);
    /// One day of 24 hours.
    pub const DAY: Self = Self(86_400_000);

    /// `n` seconds.
    pub const fn seconds(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// `n` minutes.
    pub const fn minutes(n: u64) -> Self {
        Self(n * 60_000)
    }
    /// `n` hours.
    pub const fn hours(n: u64) -> Self {
        Self(n * 3_600_000)
    }
    /// The span from `earlier` to `self`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
    /// The last whole hour at or before this point in time.
    pub const fn hour_floor(self) -> Self {
        Self(self.0 - self.0 % Self::HOUR.0)
    }
}

impl MilliGpu {
    /// No GPU.
    pub const ZERO: Self = Self(0);
    /// `n` whole GPUs.
    pub const fn gpus(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// Whole GPUs, rounded down.
    pub const fn whole(self) -> u64 {
        self.0 / 1_000
    }
    /// What is left after taking `other`, never below zero.
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// GPUs held for a span.
    pub const fn over(self, span: Millis) -> MilliGpuMs {
        MilliGpuMs(self.0 as u128 * span.0 as u128)
    }
}

impl MilliGpuMs {
    /// One GPU for one hour.
    pub const GPU_HOUR: Self = Self(3_600_000_000);

    /// GPU-hours in ten-thousandths, rounded half up: `506.9128` GPU-hours are `5_069_128`.
    pub const fn gpu_hours_e4(self) -> u128 {
        (self.0 * 10_000 + Self::GPU_HOUR.0 / 2) / Self::GPU_HOUR.0
    }
}

/// A GPU count as people write it: `8`, `0.25`.
impl fmt::Display for MilliGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, milli) = (self.0 / 1_000, self.0 % 1_000);
        if milli == 0 {
            write!(f, "{whole}")
        } else {
            let text = format!("{whole}.{milli:03}");
            f.write_str(text.trim_end_matches('0'))
        }
    }
}

macro_rules! arithmetic {
    ($($unit:ident),*) => {$(
        impl Add for $unit { type Output = Self; fn add(self, other: Self) -> Self { Self(self.0 + other.0) } }
        impl Sub for $unit { type Output = Self; fn sub(self, other: Self) -> Self { Self(self.0 - other.0) } }
        impl AddAssign for $unit { fn add_assign(&mut self, other: Self) { self.0 += other.0 } }
        impl SubAssign for $unit { fn sub_assign(&mut self, other: Self) { self.0 -= other.0 } }
        impl Sum for $unit { fn sum<I: Iterator<Item = Self>>(all: I) -> Self { all.fold(Self::default(), Add::add) } }
    )*};
}
arithmetic!(Millis, MilliGpu, MilliGpuMs);

impl Mul<u64> for MilliGpu {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}
