//! `Permutation` and `Zipf`: random permutations and Zipf-distributed ranks, without tables.

use ssdlab_time::Random;

/// A random permutation of the numbers below a bound.
///
/// A Feistel network of four rounds over an even number of bits, repeated until the result is below
/// the bound (cycle walking; Black and Rogaway, 2002). Good enough to scatter writes, not for
/// cryptography.
#[derive(Clone, Debug)]
pub struct Permutation {
    pub bound: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// A permutation with keys from `random`.
    pub fn new(bound: u64, random: &mut Random) -> Self {
        let bits = u64::BITS - (bound - 1).leading_zeros();
        let half_bits = bits.div_ceil(2).max(1);
        Self { bound, half_bits, keys: std::array::from_fn(|_| random.next_u64()) }
    }

    pub fn at(&self, index: u64) -> u64 {
        let mut number = self.permute(index);
        while number >= self.bound {
            number = self.permute(number);
        }
        number
    }

    fn permute(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let round = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
            (left, right) = (right, left ^ (round >> 40) & mask);
        }
        left << self.half_bits | right
    }
}

/// Ranks below a bound, with a probability in proportion to `1 / (rank + 1)^theta`.
///
/// Rejection-inversion sampling (Hoermann and Derflinger, 1996), which needs no table and about one
/// draw per rank for any bound.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    bound: f64,
    theta: f64,
    /// The integral at the left edge of the first rank, and at the right edge of the last.
    low: f64,
    high: f64,
    /// Points closer than this to the rank's right edge are always accepted.
    accepted: f64,
}

impl Zipf {
    /// Ranks below `bound`, which must be above 0, as must `theta`.
    pub fn new(bound: u64, theta: f64) -> Self {
        let mut zipf = Self { bound: bound as f64, theta, low: 0.0, high: 0.0, accepted: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.bound + 0.5);
        zipf.accepted = 2.0 - zipf.inverse(zipf.integral(2.5) - 2_f64.powf(-theta));
        zipf
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.bound);
            let near = rank - x <= self.accepted;
            if near || area >= self.integral(rank + 0.5) - rank.powf(-self.theta) {
                return rank as u64 - 1;
            }
        }
    }

    /// The integral of `x^-theta` from 1 to `x`, accurate also for `theta` near 1.
    fn integral(&self, x: f64) -> f64 {
        let power = 1.0 - self.theta;
        if power == 0.0 { x.ln() } else { (power * x.ln()).exp_m1() / power }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.theta;
        // Rounding errors could make the argument of the logarithm negative.
        let log = if power == 0.0 { area } else { (area * power).max(-1.0).ln_1p() / power };
        log.exp()
    }
}

#[cfg(test)]
mod tests {
    use ssdlab_time::Random;

    use super::Zipf;

    fn counts(bound: u64, theta: f64, draws: u32) -> Vec<f64> {
        let (zipf, mut random) = (Zipf::new(bound, theta), Random::new(3, "zipf"));
        let mut counts = vec![0.0; bound as usize];
        for _ in 0..draws {
            counts[zipf.draw(&mut random) as usize] += 1.0 / f64::from(draws);
        }
        counts
    }

    #[test]
    fn ranks_have_the_frequencies_of_a_zipf_distribution() {
        for theta in [0.2, 0.99, 1.0, 1.2, 3.0] {
            let sum: f64 = (1..=50).map(|rank| f64::from(rank).powf(-theta)).sum();
            for (index, share) in counts(50, theta, 400_000).iter().enumerate() {
                let right = ((index + 1) as f64).powf(-theta) / sum;
                let error = 5.0 * (right / 400_000.0).sqrt();
                assert!((share - right).abs() < error, "{theta}, {index}: {share} for {right}");
            }
        }
    }

    #[test]
    fn bounds_of_one_and_of_2_to_the_40_work() {
        assert_eq!(counts(1, 1.2, 8), [1.0]);
        let (zipf, mut random) = (Zipf::new(1 << 40, 0.9), Random::new(1, "zipf"));
        assert!((0..10_000).all(|_| zipf.draw(&mut random) < 1 << 40));
    }
}
