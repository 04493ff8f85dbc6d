//! `Content`: the data that writes carry, and the stamps that allow it to be verified.

use serde::Deserialize;
use ssdlab_time::Random;

/// Granularity of compression and deduplication in drives and file systems, in bytes.
const UNIT: usize = 4096;

/// Bytes that have one stamp: the smallest sector of a device.
pub const STAMPED_BYTES: usize = 512;

/// Size of a stamp: offset, run, count and check value, 8 bytes each, little-endian.
const STAMP_BYTES: usize = 32;

/// The data that writes carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Random data, which can neither be compressed nor deduplicated.
    #[default]
    Incompressible,
    /// Zeros.
    Zeros,
    /// Each 4 KiB starts with random bytes, followed by zeros.
    Compressible {
        /// Share of the bytes that remains after compression, 0 to 1.
        to: f64,
    },
    /// Each 4 KiB is either unique or a copy of one common block.
    Dedupable {
        /// Mean share of the blocks that remains after deduplication, 0 to 1.
        to: f64,
    },
    /// Each 512 bytes have their offset, the run's number and a count of writes; the rest is
    /// derived from these, and can neither be compressed nor deduplicated. `verify` finds
    /// differences.
    Stamped {
        /// Distinguishes this run's writes from those of others.
        run: u64,
    },
}

impl Content {
    /// The share that remains, if the kind has one.
    pub fn share(self) -> Option<f64> {
        match self {
            Self::Compressible { to } | Self::Dedupable { to } => Some(to),
            Self::Incompressible | Self::Zeros | Self::Stamped { .. } => None,
        }
    }
}

#[derive(Debug)]
pub struct ContentGenerator {
    content: Content,
    random: Random,
    /// The common block of `Dedupable`, and the base of `Stamped` content.
    pattern: Vec<u8>,
    count: u64,
}

impl ContentGenerator {
    /// Content determined by the seed; stamped content is determined by the run.
    pub fn new(content: Content, seed: u64) -> Self {
        let source = if let Content::Stamped { run } = content { run } else { seed };
        let mut pattern = vec![0; UNIT];
        Random::new(source, "content pattern").fill(&mut pattern);
        Self { content, random: Random::new(seed, "content"), pattern, count: 0 }
    }

    /// Generates the first content of a buffer, which `renew` then changes.
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

    /// Changes a buffer's content to one that was not written before; returns the write's number.
    ///
    /// Random content is changed by XOR with 32 new random bytes, repeated. No byte sequence of the
    /// old content remains for compression or deduplication at any block size. This takes 76 us per
    /// MiB for a buffer that is not cached (13 GB/s); generating each byte takes at least 200 us.
    /// The content depends on the seed and on the order in which buffers are released.
    pub fn renew(&mut self, buffer: &mut [u8]) -> u64 {
        self.count += 1;
        match self.content {
            Content::Zeros => {}
            Content::Incompressible => {
                let key = self.random_key();
                xor(buffer, key);
            }
            Content::Compressible { to } => {
                let (key, random) = (self.random_key(), (to * UNIT as f64).round() as usize);
                for unit in buffer.chunks_mut(UNIT) {
                    let random = random.min(unit.len());
                    xor(&mut unit[..random], key);
                }
            }
            Content::Dedupable { to } => {
                for unit in buffer.chunks_mut(UNIT) {
                    if self.random.unit() < to {
                        // A new key for each unit: units that were copies would stay equal.
                        let key = self.random_key();
                        xor(unit, key);
                    } else {
                        unit.copy_from_slice(&self.pattern[..unit.len()]);
                    }
                }
            }
            Content::Stamped { run } => fill_body(buffer, &self.pattern, run, self.count),
        }
        self.count
    }

    /// Writes the stamps into content from `renew`, which returned `count`.
    pub fn stamp(&self, buffer: &mut [u8], offset: u64, count: u64) {
        let Content::Stamped { run } = self.content else { return };
        for (part, offset) in
            buffer.chunks_mut(STAMPED_BYTES).zip((offset..).step_by(STAMPED_BYTES))
        {
            part[..STAMP_BYTES].copy_from_slice(&stamp(offset, run, count));
        }
    }

    /// Whether the bytes after a stamp with this count are as written.
    pub fn is_body(&self, part: &[u8], count: u64) -> bool {
        let Content::Stamped { run } = self.content else { return false };
        let Some(number) = part.get(STAMP_BYTES..STAMP_BYTES + 8) else { return false };
        let number = u64::from_le_bytes(number.try_into().expect("eight bytes"));
        let mut expected = [0; STAMPED_BYTES];
        expected.copy_from_slice(&self.pattern[..STAMPED_BYTES]);
        xor(&mut expected, xor_key(run, count, number));
        part.len() == STAMPED_BYTES && part[STAMP_BYTES + 8..] == expected[STAMP_BYTES + 8..]
    }

    fn random_key(&mut self) -> [u64; 4] {
        std::array::from_fn(|_| self.random.next_u64())
    }
}

fn stamp(offset: u64, run: u64, count: u64) -> [u8; STAMP_BYTES] {
    let mut bytes = [0; STAMP_BYTES];
    for (place, word) in bytes.chunks_mut(8).zip([offset, run, count, mix([offset, run, count])]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Fills the bytes after the stamps of a buffer: the run's pattern XOR a key from count and index.
///
/// The index follows each stamp, so that each part can be verified on its own.
fn fill_body(buffer: &mut [u8], pattern: &[u8], run: u64, count: u64) {
    for (number, part) in (0_u64..).zip(buffer.chunks_mut(STAMPED_BYTES)) {
        part.copy_from_slice(&pattern[..part.len()]);
        xor(part, xor_key(run, count, number));
        part[STAMP_BYTES..STAMP_BYTES + 8].copy_from_slice(&number.to_le_bytes());
    }
}

fn xor_key(run: u64, count: u64, number: u64) -> [u64; 4] {
    std::array::from_fn(|word| mix([run, count, number * 4 + word as u64]))
}

/// A hash of three numbers, by the finalizer of `MurmurHash3` over each.
fn mix(words: [u64; 3]) -> u64 {
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        let mut mixed = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^= mixed >> 33;
        mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ (mixed >> 33)
    })
}

/// XORs the bytes with a repeated key of 32 bytes; a remainder below 32 bytes is unchanged.
fn xor(bytes: &mut [u8], key: [u64; 4]) {
    // The compiler vectorises chunks of constant size.
    let (pieces, _) = bytes.as_chunks_mut::<32>();
    for piece in pieces {
        let (words, _) = piece.as_chunks_mut::<8>();
        for (word, key) in words.iter_mut().zip(key) {
            *word = (u64::from_ne_bytes(*word) ^ key).to_ne_bytes();
        }
    }
}

/// The stamp of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The offset at which they were written.
    pub offset: u64,
    /// The run's number.
    pub run: u64,
    /// The number of the write in its run, from 1.
    pub count: u64,
}

impl Stamp {
    /// Reads the stamp of 512 bytes; `None` if it is missing or damaged.
    pub fn read(part: &[u8]) -> Option<Self> {
        let (words, _) = part.as_chunks::<8>();
        let &[offset, run, count, check] = words.first_chunk::<4>()?;
        let [offset, run, count, check] = [offset, run, count, check].map(u64::from_le_bytes);
        (check == mix([offset, run, count])).then_some(Self { offset, run, count })
    }
}
