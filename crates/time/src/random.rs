//! Seeded random streams, one for each purpose: adding a stream leaves the others unchanged.

/// A stream of random numbers, determined by a seed and a purpose.
///
/// Generator: xoshiro256++ by Blackman and Vigna (2019), its state filled by `SplitMix64` from the
/// seed and the FNV-1a hash of the purpose's name. Not for cryptography.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream for a seed and a purpose.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mut counter = seed ^ fnv_1a(purpose.bytes());
        Self { state: std::array::from_fn(|_| split_mix(&mut counter)) }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `bound - 1`, without measurable bias.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "the bound must be above 0");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 up to but not including 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `bytes` with random bits, which a controller cannot compress.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut chunks = bytes.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes());
        }
        let rest = chunks.into_remainder();
        let last = self.next_u64().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// The FNV-1a hash of some bytes.
pub fn fnv_1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *counter;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn one_seed_and_purpose_give_one_stream() {
        let draw = |seed, purpose| {
            let mut random = Random::new(seed, purpose);
            [random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(1, "victim"), draw(1, "victim"));
        assert_ne!(draw(1, "victim"), draw(2, "victim"));
        assert_ne!(draw(1, "victim"), draw(1, "pattern"));
    }

    #[test]
    fn numbers_below_a_bound_cover_it_evenly() {
        let mut random = Random::new(3, "even");
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }

    #[test]
    fn filled_bytes_reach_the_last_one() {
        let mut bytes = [0_u8; 13];
        Random::new(9, "content").fill(&mut bytes);
        assert!(bytes[8..].iter().any(|&b| b != 0));
    }
}
