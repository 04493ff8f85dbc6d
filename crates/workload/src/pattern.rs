//! `PatternKind` and `Pattern`: where a job's requests go, one after the other.

use serde::Deserialize;
use ssdlab_device::{Lba, Region, Request};
use ssdlab_time::Random;

use crate::listed::Listed;
use crate::scatter::{Shuffle, Zipf};

/// The order in which a job visits its blocks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PatternKind {
    /// One after the other, again from the start after the last.
    #[default]
    Sequential,
    /// Each drawn from all blocks.
    Random,
    /// A random order in which no block comes twice before all came once.
    RandomOnce,
    /// Each drawn from all blocks, few of them often: the one of rank n with a chance in
    /// proportion to `1 / n^theta`. Ranks are scattered over the region.
    Zipf {
        /// The skew: above 0, usually 0.8 to 1.2.
        theta: f64,
    },
    /// One block, a stride further the next one. Past the end again from the start, shifted by the
    /// alignment each time until the shift is a whole stride.
    Strided {
        /// From one block's start to the next one's, in bytes.
        stride_bytes: u64,
        /// The shift, in bytes; 0: a block.
        #[serde(default)]
        alignment_bytes: u64,
    },
    /// Each at a random multiple of an alignment from the region's start, whatever its length.
    Aligned {
        /// In bytes.
        alignment_bytes: u64,
    },
    /// Only in these extents: in their order, or each drawn from all of their blocks.
    Extents {
        /// First byte, on the device, and length in bytes.
        list: Vec<(u64, u64)>,
        /// Drawn at random instead of in order.
        #[serde(default)]
        random: bool,
    },
    /// The requests of a list, each with a length and a word of its own, in order; `block_bytes` is
    /// the longest.
    Listed {
        /// First byte, on the device, length in bytes, what it says if it is a write.
        list: Vec<Listed>,
    },
}

/// Where a pattern may go, and how long its requests are.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    /// No request reaches beyond it.
    pub region: Region,
    /// What all lengths are a multiple of, in host blocks: requests start at multiples of it.
    pub grain: u64,
    /// The longest request in host blocks.
    pub longest: u64,
}

impl Ground {
    /// How many places there are in this many blocks for a request of any length.
    fn places(self, blocks: u64, grain: u64) -> u64 {
        assert!(blocks >= self.longest, "a pattern needs room for its longest request");
        (blocks - self.longest) / grain + 1
    }
}

/// An endless stream of addresses.
#[derive(Debug)]
pub struct Pattern {
    start: Lba,
    blocks: u64,
    walk: Walk,
}

#[derive(Debug)]
enum Walk {
    Sequential { next: u64 },
    Random { places: u64, grain: u64, random: Random },
    RandomOnce { order: Shuffle, grain: u64, taken: u64, random: Random },
    Zipf { zipf: Zipf, order: Shuffle, grain: u64, random: Random },
    Strided { stride: u64, alignment: u64, shift: u64, next: u64 },
    InExtents { extents: Vec<Extent>, index: usize, next: u64 },
    FromExtents { extents: Vec<Extent>, grain: u64, random: Random },
}

/// A run of blocks, relative to the region.
#[derive(Debug)]
struct Extent {
    start: u64,
    blocks: u64,
    /// Places for requests in this extent and those before it.
    places_before_end: u64,
}

impl Pattern {
    /// The stream of this kind; the job was checked.
    pub fn new(kind: &PatternKind, ground: Ground, seed: u64) -> Self {
        let Ground { region, grain, .. } = ground;
        let mut random = Random::new(seed, "pattern");
        let walk = match kind {
            // What is listed is placed by its list, and asks for no address.
            PatternKind::Sequential | PatternKind::Listed { .. } => Walk::Sequential { next: 0 },
            PatternKind::Random => {
                Walk::Random { places: ground.places(region.blocks, grain), grain, random }
            }
            PatternKind::RandomOnce => {
                let order = Shuffle::new(ground.places(region.blocks, grain), &mut random);
                Walk::RandomOnce { order, grain, taken: 0, random }
            }
            PatternKind::Zipf { theta } => {
                let order = Shuffle::new(ground.places(region.blocks, grain), &mut random);
                Walk::Zipf { zipf: Zipf::new(order.bound(), *theta), order, grain, random }
            }
            PatternKind::Strided { stride_bytes, alignment_bytes } => {
                let stride = Lba::from_bytes(*stride_bytes).get();
                let shift = Lba::from_bytes(*alignment_bytes).get();
                let alignment = if shift == 0 { grain } else { shift };
                Walk::Strided { stride, alignment, shift: 0, next: 0 }
            }
            PatternKind::Aligned { alignment_bytes } => {
                let grain = Lba::from_bytes(*alignment_bytes).get();
                Walk::Random { places: ground.places(region.blocks, grain), grain, random }
            }
            PatternKind::Extents { list, random: drawn } => {
                let extents = extents(list, ground);
                if *drawn {
                    Walk::FromExtents { extents, grain, random }
                } else {
                    Walk::InExtents { extents, index: 0, next: 0 }
                }
            }
        };
        Self { start: region.start, blocks: region.blocks, walk }
    }

    /// Gives each request its address, by its length.
    pub fn place(&mut self, requests: &mut [Request]) {
        if let Walk::Random { places, grain, random } = &mut self.walk {
            // What most jobs are: the stream's state stays in registers.
            let mut stream = random.clone();
            for request in requests {
                request.lba = self.start.plus(stream.below(*places) * *grain);
            }
            *random = stream;
        } else {
            for request in requests {
                request.lba = self.next(u64::from(request.blocks));
            }
        }
    }

    /// Where the next request of this many blocks goes.
    #[inline]
    pub fn next(&mut self, blocks: u64) -> Lba {
        let offset = match &mut self.walk {
            Walk::Sequential { next } => {
                let at = if *next + blocks > self.blocks { 0 } else { *next };
                *next = at + blocks;
                at
            }
            Walk::Random { places, grain, random } => random.below(*places) * *grain,
            Walk::RandomOnce { order, grain, taken, random } => {
                if *taken == order.bound() {
                    *order = Shuffle::new(order.bound(), random);
                    *taken = 0;
                }
                *taken += 1;
                order.at(*taken - 1) * *grain
            }
            Walk::Zipf { zipf, order, grain, random } => order.at(zipf.draw(random)) * *grain,
            Walk::Strided { stride, alignment, shift, next } => {
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
            Walk::InExtents { extents, index, next } => {
                if *next + blocks > extents[*index].blocks {
                    (*index, *next) = ((*index + 1) % extents.len(), 0);
                }
                *next += blocks;
                extents[*index].start + *next - blocks
            }
            Walk::FromExtents { extents, grain, random } => {
                let places = extents.last().expect("extents were checked").places_before_end;
                let place = random.below(places);
                let index = extents.partition_point(|extent| extent.places_before_end <= place);
                let before = index.checked_sub(1).map_or(0, |i| extents[i].places_before_end);
                extents[index].start + (place - before) * *grain
            }
        };
        self.start.plus(offset)
    }
}

fn extents(list: &[(u64, u64)], ground: Ground) -> Vec<Extent> {
    let mut places = 0;
    let extent = |&(offset, length): &(u64, u64)| {
        let region = Region::from_bytes(offset, length);
        places += ground.places(region.blocks, ground.grain);
        let start = region.start.get() - ground.region.start.get();
        Extent { start, blocks: region.blocks, places_before_end: places }
    };
    list.iter().map(extent).collect()
}
