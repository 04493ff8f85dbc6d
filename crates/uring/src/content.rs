//! `Content`: what writes carry, made ahead of time, and the stamps by which it is verified.

use serde::Deserialize;
use ssdlab_time::Random;

/// Bytes that compress and repeat as a whole, as drives and file systems look at them.
const UNIT: usize = 4096;

/// Bytes that carry a stamp each: the smallest that a device may write.
pub const STAMPED: usize = 512;

/// A stamp: offset, run, count and check, 8 bytes each, little end first.
const STAMP: usize = 32;

/// What writes carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Random: neither compresses nor repeats.
    #[default]
    Incompressible,
    /// Nothing but zeros.
    Zeros,
    /// Each 4 KiB begins with so many random bytes, and zeros follow.
    Compressible {
        /// What is left after compression: 0 to 1 of the bytes.
        to: f64,
    },
    /// Each 4 KiB is new or a copy of one that every write has.
    Dedupable {
        /// What is left after deduplication: 0 to 1 of the blocks, in the mean.
        to: f64,
    },
    /// Each 512 bytes carry their offset, this run's number and a count of writes; the rest follows
    /// from those, does not compress, and never repeats. `verify` finds what is not as written.
    Stamped {
        /// Tells this run's writes from those of others.
        run: u64,
    },
}

impl Content {
    /// The share, where the kind has one.
    pub fn share(self) -> Option<f64> {
        match self {
            Self::Compressible { to } | Self::Dedupable { to } => Some(to),
            Self::Incompressible | Self::Zeros | Self::Stamped { .. } => None,
        }
    }
}

/// Makes the content of one buffer after the other.
#[derive(Debug)]
pub struct Maker {
    content: Content,
    random: Random,
    /// What copies are made of, and what stamped content begins with.
    pattern: Vec<u8>,
    count: u64,
}

impl Maker {
    /// A stream of content that depends on the seed; stamped content on the run alone.
    pub fn new(content: Content, seed: u64) -> Self {
        let source = if let Content::Stamped { run } = content { run } else { seed };
        let mut pattern = vec![0; UNIT];
        Random::new(source, "content pattern").fill(&mut pattern);
        Self { content, random: Random::new(seed, "content"), pattern, count: 0 }
    }

    /// The first content of a buffer, from which `renew` makes all later ones.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        match self.content {
            Content::Zeros | Content::Stamped { .. } => {}
            Content::Incompressible | Content::Dedupable { .. } => self.random.fill(buffer),
            Content::Compressible { to } => {
                let random = (to * UNIT as f64).round() as usize;
                for unit in buffer.chunks_mut(UNIT) {
                    let random = random.min(unit.len());
                    self.random.fill(&mut unit[..random]);
                }
            }
        }
    }

    /// Makes a buffer's content unlike all that was written; returns the number it has.
    ///
    /// Random bytes are flipped by 32 fresh ones (XOR), repeated: no byte run of the old content
    /// stays, so that neither compression nor deduplication of any block size finds one. Measured:
    /// 76 us a MiB with the buffer out of the cache, 13 GB/s; to draw each byte anew takes 200 us
    /// at best. It depends on the seed and on the order in which buffers came free.
    pub fn renew(&mut self, buffer: &mut [u8]) -> u64 {
        self.count += 1;
        match self.content {
            Content::Zeros => {}
            Content::Incompressible => {
                let key = self.key();
                xor(buffer, key);
            }
            Content::Compressible { to } => {
                let (key, random) = (self.key(), (to * UNIT as f64).round() as usize);
                for unit in buffer.chunks_mut(UNIT) {
                    let random = random.min(unit.len());
                    xor(&mut unit[..random], key);
                }
            }
            Content::Dedupable { to } => {
                for unit in buffer.chunks_mut(UNIT) {
                    if self.random.unit() < to {
                        // A key each: two units that were copies would else be alike again.
                        let key = self.key();
                        xor(unit, key);
                    } else {
                        unit.copy_from_slice(&self.pattern[..unit.len()]);
                    }
                }
            }
            Content::Stamped { run } => body(buffer, &self.pattern, run, self.count),
        }
        self.count
    }

    /// Writes the stamps into content that `renew` gave this number.
    pub fn stamp(&self, buffer: &mut [u8], offset: u64, count: u64) {
        let Content::Stamped { run } = self.content else { return };
        for (part, offset) in buffer.chunks_mut(STAMPED).zip((offset..).step_by(STAMPED)) {
            part[..STAMP].copy_from_slice(&stamp(offset, run, count));
        }
    }

    /// Whether what follows a stamp with this count is as it was written.
    pub fn is_body(&self, part: &[u8], count: u64) -> bool {
        let Content::Stamped { run } = self.content else { return false };
        let Some(number) = part.get(STAMP..STAMP + 8) else { return false };
        let number = u64::from_le_bytes(number.try_into().expect("eight bytes"));
        let mut expected = [0; STAMPED];
        expected.copy_from_slice(&self.pattern[..STAMPED]);
        xor(&mut expected, flips(run, count, number));
        part.len() == STAMPED && part[STAMP + 8..] == expected[STAMP + 8..]
    }

    fn key(&mut self) -> [u64; 4] {
        std::array::from_fn(|_| self.random.next_u64())
    }
}

fn stamp(offset: u64, run: u64, count: u64) -> [u8; STAMP] {
    let mut bytes = [0; STAMP];
    for (place, word) in bytes.chunks_mut(8).zip([offset, run, count, mix([offset, run, count])]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// What follows the stamps of a buffer: the run's pattern, flipped by what count and place give.
///
/// The place is written behind each stamp's check, so that a part can be verified by itself.
fn body(buffer: &mut [u8], pattern: &[u8], run: u64, count: u64) {
    for (number, part) in (0_u64..).zip(buffer.chunks_mut(STAMPED)) {
        part.copy_from_slice(&pattern[..part.len()]);
        xor(part, flips(run, count, number));
        part[STAMP..STAMP + 8].copy_from_slice(&number.to_le_bytes());
    }
}

fn flips(run: u64, count: u64, number: u64) -> [u64; 4] {
    std::array::from_fn(|word| mix([run, count, number * 4 + word as u64]))
}

/// One number of three, by the finalizer of `MurmurHash3` over each.
fn mix(words: [u64; 3]) -> u64 {
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        let mut mixed = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^= mixed >> 33;
        mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ (mixed >> 33)
    })
}

/// XORs whole words with a key of four, from the start; a rest of less than 32 bytes stays.
fn xor(bytes: &mut [u8], key: [u64; 4]) {
    // Fixed-size pieces: the compiler turns this into vector instructions.
    let (pieces, _) = bytes.as_chunks_mut::<32>();
    for piece in pieces {
        let (words, _) = piece.as_chunks_mut::<8>();
        for (word, key) in words.iter_mut().zip(key) {
            *word = (u64::from_ne_bytes(*word) ^ key).to_ne_bytes();
        }
    }
}

/// What 512 bytes say of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The byte at which they were meant to be.
    pub offset: u64,
    /// The run that wrote them.
    pub run: u64,
    /// The number of the write in its run, from 1.
    pub count: u64,
}

impl Stamp {
    /// The stamp of 512 bytes; `None` where they have none, or one that is damaged.
    pub fn read(part: &[u8]) -> Option<Self> {
        let (words, _) = part.as_chunks::<8>();
        let &[offset, run, count, check] = words.first_chunk::<4>()?;
        let [offset, run, count, check] = [offset, run, count, check].map(u64::from_le_bytes);
        (check == mix([offset, run, count])).then_some(Self { offset, run, count })
    }
}
