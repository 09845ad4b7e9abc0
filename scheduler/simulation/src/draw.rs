//! Counter-based draws in integers.
//!
//! A draw is a hash of what it is for (seed, subject, index), so it does not matter who asks first or how often: a
//! restart, a second thread or another order of questions gives the same numbers. There is no generator to carry
//! around and no float in a result.

use scheduler::Millis;

/// ln 2 in 32.32 fixed point.
const LN_2: u128 = 2_977_044_472;
/// log2 e in 16.16 fixed point.
const LOG2_E: i64 = 94_548;
/// 2^(1/2), 2^(1/4), ... in 1.63 fixed point: each is the integer square root of the one before.
const ROOTS_OF_2: [u64; 32] = {
    let mut roots = [0; 32];
    let mut root: u128 = 1 << 64;
    let mut i = 0;
    while i < 32 {
        root = (root << 63).isqrt();
        roots[i] = root as u64;
        i += 1;
    }
    roots
};

/// A place in the tree of draws: a seed, then a path of numbers that say what the draw is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws(u64);

impl Draws {
    /// The root for one seed.
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x6d75_7374_6572_0001))
    }

    /// The draws for one subject under this one: a job, an attempt, a node, a purpose.
    pub const fn of(self, subject: u64) -> Self {
        Self(mix(
            self.0 ^ mix(subject.wrapping_add(0x9e37_79b9_7f4a_7c15))
        ))
    }

    /// Sixty-four even bits.
    pub const fn bits(self, index: u64) -> u64 {
        mix(self
            .0
            .wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// An even whole number in `0..n`; 0 when `n` is 0.
    pub const fn below(self, index: u64, n: u64) -> u64 {
        ((self.bits(index) as u128 * n as u128) >> 64) as u64
    }

    /// An even span in `low..=high`.
    pub const fn between(self, index: u64, low: Millis, high: Millis) -> Millis {
        Millis(low.0 + self.below(index, high.since(low).0 + 1))
    }

    /// True `per_mille` times in 1,000.
    pub const fn happens(self, index: u64, per_mille: u64) -> bool {
        self.below(index, 1_000) < per_mille
    }

    /// The position of a weight, drawn in proportion to the weights; 0 when all are 0.
    pub fn weighted(self, index: u64, weights: impl Iterator<Item = u64> + Clone) -> usize {
        let mut left = self.below(index, weights.clone().sum());
        for (position, weight) in weights.enumerate() {
            if left < weight {
                return position;
            }
            left -= weight;
        }
        0
    }

    /// A span with an exponential distribution: `-ln(u) x mean`. At most 45 times the mean.
    pub fn exponential(self, index: u64, mean: Millis) -> Millis {
        let halvings = u128::from(minus_log2(self.bits(index)));
        Millis(((u128::from(mean.0) * ((halvings * LN_2) >> 32)) >> 32) as u64)
    }

    /// A number with a lognormal distribution: `median x e^(sigma x z)`, sigma in thousandths.
    pub fn lognormal(self, index: u64, median: u64, sigma_milli: u32) -> u64 {
        let exponent = self.normal(index) * i64::from(sigma_milli) * LOG2_E / 1_000;
        scale_by_power_of_2(median, exponent)
    }

    /// A standard normal number in 16.16 fixed point: twelve even numbers added up (Irwin-Hall), so within -6..6.
    fn normal(self, index: u64) -> i64 {
        let own = self.of(index);
        let lanes = (0..3).map(|word| {
            let bits = own.bits(word);
            (0..4)
                .map(|lane| ((bits >> (16 * lane)) & 0xffff) as i64)
                .sum::<i64>()
        });
        lanes.sum::<i64>() - 12 * 0xffff / 2
    }
}

/// SplitMix64's finaliser: every bit of the input moves every bit of the output.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `-log2((bits | 1) / 2^64)` in 32.32 fixed point, one bit at a time: square, and see whether it passed 2.
fn minus_log2(bits: u64) -> u64 {
    let odd = bits | 1;
    let zeros = odd.leading_zeros();
    let mut mantissa = u128::from(odd << zeros);
    let mut fraction: u64 = 0;
    for _ in 0..32 {
        mantissa = (mantissa * mantissa) >> 63;
        fraction <<= 1;
        if mantissa >> 64 != 0 {
            fraction |= 1;
            mantissa >>= 1;
        }
    }
    (u64::from(zeros) + 1) * (1 << 32) - fraction
}

/// `number x 2^exponent`, the exponent in 32.32 fixed point; saturates.
fn scale_by_power_of_2(number: u64, exponent: i64) -> u64 {
    let (whole, fraction) = (exponent >> 32, exponent as u32);
    let mut factor: u128 = 1 << 63;
    for (bit, root) in ROOTS_OF_2.iter().enumerate() {
        if fraction & (1 << (31 - bit)) != 0 {
            factor = (factor * u128::from(*root)) >> 63;
        }
    }
    let product = u128::from(number) * factor;
    let shift = 63 - whole;
    match u32::try_from(shift) {
        Ok(right) => (product.checked_shr(right).unwrap_or(0)).min(u128::from(u64::MAX)) as u64,
        Err(_) => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn a_draw_depends_on_its_name_alone() {
        let root = Draws::new(7);
        assert_eq!(root.of(3).bits(1), Draws::new(7).of(3).bits(1));
        assert_ne!(root.of(3).bits(1), root.of(1).bits(3));
        assert_ne!(root.of(3).bits(1), Draws::new(8).of(3).bits(1));
    }

    #[test]
    fn exponential_spans_have_their_mean_and_median() {
        let draws = Draws::new(1).of(1);
        let spans = sorted(
            (0..20_000)
                .map(|i| draws.exponential(i, Millis(1_000_000)).0)
                .collect(),
        );
        let mean = spans.iter().sum::<u64>() / 20_000;
        assert!((980_000..1_020_000).contains(&mean), "mean {mean}");
        assert!(
            (680_000..706_000).contains(&spans[10_000]),
            "median {}",
            spans[10_000]
        );
    }

    #[test]
    fn lognormal_numbers_have_their_median_and_spread() {
        let draws = Draws::new(2).of(5);
        let numbers = sorted(
            (0..20_000)
                .map(|i| draws.lognormal(i, 1_000_000, 1_000))
                .collect(),
        );
        assert!(
            (970_000..1_030_000).contains(&numbers[10_000]),
            "median {}",
            numbers[10_000]
        );
        // One sigma above the median: e = 2.718.
        assert!(
            (2_600_000..2_850_000).contains(&numbers[16_827]),
            "84 % {}",
            numbers[16_827]
        );
    }

    #[test]
    fn powers_of_two_are_right_to_nine_digits() {
        assert_eq!(scale_by_power_of_2(1_000_000_000, 1 << 32), 2_000_000_000);
        assert_eq!(scale_by_power_of_2(1_000_000_000, 1 << 31), 1_414_213_562);
        assert_eq!(scale_by_power_of_2(1_000_000_000, -(1 << 32)), 500_000_000);
    }

    #[test]
    fn weights_are_met() {
        let draws = Draws::new(3);
        let hits = (0..10_000)
            .filter(|i| draws.weighted(*i, [1, 3].into_iter()) == 1)
            .count();
        assert!((7_300..7_700).contains(&hits), "{hits}");
    }
}
