//! `Pattern`: the order in which a job visits its blocks.

use ssdlab_time::Random;

use crate::PatternKind;

/// An endless stream of block numbers below a bound.
#[derive(Debug)]
pub enum Pattern {
    /// 0, 1, 2 ... and again from 0.
    Sequential {
        /// How many blocks there are.
        blocks: u64,
        /// The next one.
        next: u64,
    },
    /// Each drawn from all.
    Random {
        /// How many blocks there are.
        blocks: u64,
        /// The source of chance.
        random: Random,
    },
    /// Each once in random order, then each once in another.
    RandomOnce {
        /// The order of this pass.
        order: Shuffle,
        /// How many came in this pass.
        taken: u64,
        /// The source of the next pass's order.
        random: Random,
    },
}

impl Pattern {
    /// The stream of this kind over `blocks` blocks.
    pub fn new(kind: PatternKind, blocks: u64, seed: u64) -> Self {
        assert!(blocks > 0, "a pattern needs a block to visit");
        let mut random = Random::new(seed, "pattern");
        match kind {
            PatternKind::Sequential => Self::Sequential { blocks, next: 0 },
            PatternKind::Random => Self::Random { blocks, random },
            PatternKind::RandomOnce => {
                Self::RandomOnce { order: Shuffle::new(blocks, &mut random), taken: 0, random }
            }
        }
    }

    /// The next block's number.
    #[inline]
    pub fn next_block(&mut self) -> u64 {
        match self {
            Self::Sequential { blocks, next } => {
                let block = *next;
                *next = if block + 1 == *blocks { 0 } else { block + 1 };
                block
            }
            Self::Random { blocks, random } => random.below(*blocks),
            Self::RandomOnce { order, taken, random } => {
                if *taken == order.blocks {
                    *order = Shuffle::new(order.blocks, random);
                    *taken = 0;
                }
                *taken += 1;
                order.at(*taken - 1)
            }
        }
    }
}

/// A random order of the numbers below a bound, computed instead of stored.
///
/// A Feistel network of four rounds over the next even number of bits, walked until it lands below
/// the bound (Black and Rogaway, 2002). Good enough to scatter writes; not for secrets.
#[derive(Debug)]
pub struct Shuffle {
    blocks: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Shuffle {
    fn new(blocks: u64, random: &mut Random) -> Self {
        let bits = u64::BITS - (blocks - 1).leading_zeros();
        let half_bits = bits.div_ceil(2).max(1);
        Self { blocks, half_bits, keys: std::array::from_fn(|_| random.next_u64()) }
    }

    fn at(&self, index: u64) -> u64 {
        let mut number = self.permute(index);
        while number >= self.blocks {
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

#[cfg(test)]
mod tests {
    use super::Pattern;
    use crate::PatternKind;

    fn draw(kind: PatternKind, blocks: u64, count: usize, seed: u64) -> Vec<u64> {
        let mut pattern = Pattern::new(kind, blocks, seed);
        (0..count).map(|_| pattern.next_block()).collect()
    }

    #[test]
    fn a_sequential_pattern_starts_again_after_the_last_block() {
        assert_eq!(draw(PatternKind::Sequential, 3, 7, 0), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn no_block_comes_twice_before_all_came_once() {
        for blocks in [1, 2, 3, 5, 64, 1000, 4097] {
            let mut pass = draw(PatternKind::RandomOnce, blocks, blocks as usize, 11);
            pass.sort_unstable();
            assert!(pass.iter().copied().eq(0..blocks), "{blocks} blocks");
        }
    }

    #[test]
    fn passes_and_seeds_differ_in_their_order() {
        let two = draw(PatternKind::RandomOnce, 1000, 2000, 1);
        assert_ne!(two[..1000], two[1000..]);
        assert_ne!(two[..1000], draw(PatternKind::RandomOnce, 1000, 1000, 2)[..]);
        assert_eq!(two, draw(PatternKind::RandomOnce, 1000, 2000, 1));
    }

    #[test]
    fn a_random_order_scatters_over_the_whole_range() {
        let blocks = 1 << 20;
        let first = draw(PatternKind::RandomOnce, blocks, 12_800, 3);
        let mut sixteenths = [0_u32; 16];
        for block in &first {
            sixteenths[(block * 16 / blocks) as usize] += 1;
        }
        assert!(sixteenths.iter().all(|&n| (700..900).contains(&n)), "{sixteenths:?}");
        let neighbours = first.windows(2).filter(|w| w[0].abs_diff(w[1]) == 1).count();
        assert!(neighbours < 5, "{neighbours} of 12800 follow their neighbour");
    }
}
