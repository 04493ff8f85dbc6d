//! `PatternKind` and `Pattern`: the addresses of a job's requests.

use serde::Deserialize;
use ssdlab_device::{Hint, LBA_BYTES, Lba, Region, Request};
use ssdlab_time::Random;

use crate::distribution::{Permutation, Zipf};

/// The order in which a job visits its blocks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PatternKind {
    /// In ascending order, from the start again after the last block.
    #[default]
    Sequential,
    /// At random.
    Random,
    /// In random order, each block once before any block is visited again.
    RandomOnce,
    /// Zipf-distributed: the block of rank n with a probability in proportion to `1 / n^theta`.
    /// Ranks are scattered over the region.
    Zipf {
        /// The skew: above 0, usually 0.8 to 1.2.
        theta: f64,
    },
    /// At a constant stride. Each pass over the region starts one alignment later than the pass
    /// before, until that shift reaches the stride and returns to 0.
    Strided {
        /// Distance between the starts of consecutive requests, in bytes.
        stride_bytes: u64,
        /// The shift in bytes; 0 stands for one block.
        #[serde(default)]
        alignment_bytes: u64,
    },
    /// At random multiples of an alignment, counted from the region's start, for any length.
    Aligned {
        /// The alignment in bytes.
        alignment_bytes: u64,
    },
    /// In these extents only, in order or at random.
    Extents {
        /// First byte on the device, and length in bytes.
        list: Vec<(u64, u64)>,
        /// At random over the blocks of all extents, instead of in order.
        #[serde(default)]
        random: bool,
    },
    /// The requests of a list in order, each with its own length and hint. `block_bytes` is the
    /// maximum length.
    Listed {
        /// The requests.
        list: Vec<ListedRequest>,
    },
}

/// A request of a list; in a job's text `[offset, length, hint]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedRequest {
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// Hint of a write, which a read ignores; or that the request is a read.
    pub hint: ListedHint,
}

/// The hint of a listed write; or a read among the writes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedHint {
    /// No hint.
    #[serde(rename = "nothing")]
    None,
    /// The request is a read, whatever the job's operation.
    Read,
    /// The write replaces content of a file in place.
    Overwrite,
    /// The write appends to a file whose previous block contains this byte.
    #[serde(rename = "after")]
    AppendAfter(u64),
    /// The write belongs to this stream, 0 to 255.
    Stream(u8),
}

impl From<ListedHint> for Hint {
    fn from(hint: ListedHint) -> Self {
        match hint {
            ListedHint::None | ListedHint::Read => Self::None,
            ListedHint::Overwrite => Self::Overwrite,
            ListedHint::AppendAfter(byte) => Self::AppendAfter(Lba::new(byte / LBA_BYTES)),
            ListedHint::Stream(number) => Self::Stream(number),
        }
    }
}

/// The part of a device that a pattern visits, and the lengths of its requests.
#[derive(Clone, Copy, Debug)]
pub struct PatternArea {
    /// The region that contains all requests.
    pub region: Region,
    /// All lengths and start addresses are multiples of this number of host blocks.
    pub granularity: u64,
    /// The maximum request length in host blocks.
    pub longest: u64,
}

impl PatternArea {
    /// The number of start positions in `blocks` at which a request of any length fits.
    fn positions(self, blocks: u64, granularity: u64) -> u64 {
        assert!(blocks >= self.longest, "the longest request does not fit");
        (blocks - self.longest) / granularity + 1
    }
}

/// An infinite stream of addresses.
#[derive(Clone, Debug)]
pub struct Pattern {
    start: Lba,
    blocks: u64,
    cursor: Cursor,
}

#[derive(Clone, Debug)]
enum Cursor {
    Sequential { next: u64 },
    Random { positions: u64, granularity: u64, random: Random },
    RandomOnce { order: Permutation, granularity: u64, visited: u64, random: Random },
    Zipf { zipf: Zipf, order: Permutation, granularity: u64, random: Random },
    Strided { stride: u64, alignment: u64, shift: u64, next: u64 },
    SequentialExtents { extents: Vec<Extent>, index: usize, next: u64 },
    RandomExtents { extents: Vec<Extent>, granularity: u64, random: Random },
}

/// An extent, relative to the start of the region.
#[derive(Clone, Debug)]
struct Extent {
    start: u64,
    blocks: u64,
    /// Start positions in this extent and those before it.
    positions_to_end: u64,
}

impl Pattern {
    /// The addresses of a pattern, which must be from a checked job.
    pub fn new(kind: &PatternKind, area: PatternArea, seed: u64) -> Self {
        let PatternArea { region, granularity, .. } = area;
        let positions = area.positions(region.blocks, granularity);
        let mut random = Random::new(seed, "pattern");
        let cursor = match kind {
            // A listed request has its own address: this cursor is not used.
            PatternKind::Sequential | PatternKind::Listed { .. } => Cursor::Sequential { next: 0 },
            PatternKind::Random => Cursor::Random { positions, granularity, random },
            PatternKind::RandomOnce => {
                let order = Permutation::new(positions, &mut random);
                Cursor::RandomOnce { order, granularity, visited: 0, random }
            }
            PatternKind::Zipf { theta } => {
                let order = Permutation::new(positions, &mut random);
                Cursor::Zipf { zipf: Zipf::new(order.bound, *theta), order, granularity, random }
            }
            PatternKind::Strided { stride_bytes, alignment_bytes } => {
                let stride = Lba::from_bytes(*stride_bytes).get();
                let shift = Lba::from_bytes(*alignment_bytes).get();
                let alignment = if shift == 0 { granularity } else { shift };
                Cursor::Strided { stride, alignment, shift: 0, next: 0 }
            }
            PatternKind::Aligned { alignment_bytes } => {
                let granularity = Lba::from_bytes(*alignment_bytes).get();
                let positions = area.positions(region.blocks, granularity);
                Cursor::Random { positions, granularity, random }
            }
            PatternKind::Extents { list, random: is_random } => {
                let extents = extents(list, area);
                if *is_random {
                    Cursor::RandomExtents { extents, granularity, random }
                } else {
                    Cursor::SequentialExtents { extents, index: 0, next: 0 }
                }
            }
        };
        Self { start: region.start, blocks: region.blocks, cursor }
    }

    /// Sets the addresses of requests, according to their lengths.
    pub fn place(&mut self, requests: &mut [Request]) {
        if let Cursor::Random { positions, granularity, random } = &mut self.cursor {
            // The most common case: a local copy keeps the generator's state in registers.
            let mut stream = random.clone();
            for request in requests {
                request.lba = self.start.plus(stream.below(*positions) * *granularity);
            }
            *random = stream;
        } else {
            for request in requests {
                request.lba = self.next(u64::from(request.blocks));
            }
        }
    }

    /// The address of the next request, of `blocks` host blocks.
    #[inline]
    pub fn next(&mut self, blocks: u64) -> Lba {
        let offset = match &mut self.cursor {
            Cursor::Sequential { next } => {
                let at = if *next + blocks > self.blocks { 0 } else { *next };
                *next = at + blocks;
                at
            }
            Cursor::Random { positions, granularity, random } => {
                random.below(*positions) * *granularity
            }
            Cursor::RandomOnce { order, granularity, visited, random } => {
                if *visited == order.bound {
                    *order = Permutation::new(order.bound, random);
                    *visited = 0;
                }
                *visited += 1;
                order.at(*visited - 1) * *granularity
            }
            Cursor::Zipf { zipf, order, granularity, random } => {
                order.at(zipf.draw(random)) * *granularity
            }
            Cursor::Strided { stride, alignment, shift, next } => {
                if *next + blocks > self.blocks {
                    *shift += *alignment;
                    if *shift >= *stride || *shift + blocks > self.blocks {
                        *shift = 0;
                    }
                    *next = *shift;
                }
                *next += *stride;
                *next - *stride
            }
            Cursor::SequentialExtents { extents, index, next } => {
                if *next + blocks > extents[*index].blocks {
                    (*index, *next) = ((*index + 1) % extents.len(), 0);
                }
                *next += blocks;
                extents[*index].start + *next - blocks
            }
            Cursor::RandomExtents { extents, granularity, random } => {
                let positions = extents.last().expect("extents were checked").positions_to_end;
                let place = random.below(positions);
                let index = extents.partition_point(|extent| extent.positions_to_end <= place);
                let before = index.checked_sub(1).map_or(0, |i| extents[i].positions_to_end);
                extents[index].start + (place - before) * *granularity
            }
        };
        self.start.plus(offset)
    }
}

fn extents(list: &[(u64, u64)], area: PatternArea) -> Vec<Extent> {
    let mut positions = 0;
    let extent = |&(offset, length): &(u64, u64)| {
        let region = Region::from_bytes(offset, length);
        positions += area.positions(region.blocks, area.granularity);
        let start = region.start.get() - area.region.start.get();
        Extent { start, blocks: region.blocks, positions_to_end: positions }
    };
    list.iter().map(extent).collect()
}
