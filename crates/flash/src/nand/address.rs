//! `Ppn`: the flash address of a mapping unit, and its conversion to die and page.

use super::Geometry;

/// The physical address of one mapping unit.
///
/// Addresses count superblock by superblock, and inside one along the stripe. So units that are
/// written one after the other have consecutive addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ppn(pub u32);

/// The die and page of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Die, from 0; its channel is `die % channels`.
    pub die: u32,
    /// Multi-plane page of that die, counted over all blocks: block x pages per block + page.
    pub page: u32,
    /// Page number in its block, which determines its type.
    pub page_in_block: u32,
    /// Plane that reads it for the host; 0 if the planes of a die read together.
    pub plane: u16,
    /// Whether this unit is the last of its multi-plane page to be written.
    pub last_of_page: bool,
    /// Whether it holds one bit per cell. Depends on the superblock, not on the address.
    pub slc: bool,
}

impl Place {
    /// Whether one sense for the host reads both units.
    pub fn same_page(self, other: Self) -> bool {
        (self.die, self.page, self.plane) == (other.die, other.page, other.plane)
    }
}

/// Splits addresses into superblock, die and page without a division.
#[derive(Clone, Debug)]
pub struct Splitter {
    superblock_units: Divisor,
    stripe_units: Divisor,
    chunk_units: Divisor,
    multi_page_units: Divisor,
    /// Logarithm of the units in a page; 31, which gives plane 0, unless planes read independently.
    page_shift: u32,
    pages_per_block: u32,
}

impl Splitter {
    pub fn new(geometry: &Geometry) -> Self {
        let independent = geometry.independent_plane_reads;
        Self {
            superblock_units: Divisor::new(geometry.superblock_units()),
            stripe_units: Divisor::new(geometry.stripe_units()),
            chunk_units: Divisor::new(geometry.chunk_units),
            multi_page_units: Divisor::new(geometry.multi_page_units()),
            page_shift: if independent { geometry.page_units.trailing_zeros() } else { 31 },
            pages_per_block: geometry.pages_per_block,
        }
    }

    /// The superblock of a unit, and the unit's offset in it.
    #[inline]
    pub fn superblock(&self, ppn: Ppn) -> (u32, u32) {
        self.superblock_units.split(ppn.0)
    }

    /// The address of a superblock's unit.
    #[inline]
    pub fn ppn(&self, superblock: u32, offset: u32) -> Ppn {
        Ppn(superblock * self.superblock_units.by + offset)
    }

    /// The offset in a superblock of unit `on_die` of a die.
    #[inline]
    pub fn offset_on(&self, die: u32, on_die: u32) -> u32 {
        let (stripe, in_chunk) = self.chunk_units.split(on_die);
        stripe * self.stripe_units.by + die * self.chunk_units.by + in_chunk
    }

    /// The die and page of a superblock's unit, as if it were not in the SLC cache.
    #[inline]
    pub fn place(&self, superblock: u32, offset: u32) -> Place {
        let (stripe, in_stripe) = self.stripe_units.split(offset);
        let (die, in_chunk) = self.chunk_units.split(in_stripe);
        let on_die = stripe * self.chunk_units.by + in_chunk;
        let (page_in_block, in_page) = self.multi_page_units.split(on_die);
        Place {
            die,
            page: superblock * self.pages_per_block + page_in_block,
            page_in_block,
            plane: (in_page >> self.page_shift) as u16,
            last_of_page: in_page + 1 == self.multi_page_units.by,
            slc: false,
        }
    }
}

/// Division of 32-bit numbers by a constant: a shift for powers of two, else one multiplication.
///
/// With m = floor((2^64 - 1) / d) the quotient is floor((n + 1) m / 2^64), exact for all n and d
/// below 2^32 (Robison, 2005).
#[derive(Clone, Copy, Debug)]
struct Divisor {
    by: u32,
    reciprocal: u64,
    /// Set for powers of two. Faster, because four dependent divisions follow each other.
    shift: Option<u32>,
}

impl Divisor {
    fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "the divisor is not zero");
        let shift = divisor.is_power_of_two().then_some(divisor.trailing_zeros());
        Self { by: divisor, reciprocal: u64::MAX / u64::from(divisor), shift }
    }

    #[inline]
    fn split(self, number: u32) -> (u32, u32) {
        if let Some(shift) = self.shift {
            return (number >> shift, number & (self.by - 1));
        }
        let product = (u128::from(number) + 1) * u128::from(self.reciprocal);
        let quotient = (product >> 64) as u32;
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::{Divisor, Place, Splitter};
    use crate::nand::Geometry;

    fn geometry(chunk_units: u32) -> Geometry {
        Geometry {
            channels: 3,
            dies_per_channel: 2,
            planes: 2,
            independent_plane_reads: false,
            page_units: 4,
            pages_per_block: 6,
            blocks_per_plane: 5,
            unit_bytes: 4096,
            chunk_units,
        }
    }

    #[test]
    fn division_by_a_constant_is_exact() {
        let mut random = ssdlab_time::Random::new(1, "divisor");
        for _ in 0..100_000 {
            let divisor = (random.next_u64() as u32 >> random.below(32)).max(1);
            let number = random.next_u64() as u32;
            for divisor in [divisor, 1 << random.below(32)] {
                let expected = (number / divisor, number % divisor);
                assert_eq!(Divisor::new(divisor).split(number), expected, "{number} / {divisor}");
            }
        }
    }

    #[test]
    fn a_stripe_has_one_chunk_on_each_die() {
        let splitter = Splitter::new(&geometry(8));
        let dies: Vec<u32> = (0..60).step_by(8).map(|o| splitter.place(0, o).die).collect();
        assert_eq!(dies, [0, 1, 2, 3, 4, 5, 0, 1]);
        let place = splitter.place(2, 48 + 7);
        let page = 2 * 6 + 1;
        let expected =
            Place { die: 0, page, page_in_block: 1, plane: 0, last_of_page: true, slc: false };
        assert_eq!(place, expected);
    }

    #[test]
    fn planes_that_read_independently_take_the_pages_of_a_multi_plane_page_in_order() {
        let splitter = Splitter::new(&Geometry { independent_plane_reads: true, ..geometry(8) });
        let planes: Vec<u16> = (0..8).map(|offset| splitter.place(0, offset).plane).collect();
        assert_eq!(planes, [0, 0, 0, 0, 1, 1, 1, 1]);
        let [first, last, other] = [0, 3, 4].map(|offset| splitter.place(0, offset));
        assert!(first.same_page(last) && !first.same_page(other));
    }

    #[test]
    fn each_page_gets_its_units_once_and_the_last_completes_it() {
        for chunk in [1, 2, 4, 8, 16] {
            let geometry = geometry(chunk);
            let splitter = Splitter::new(&geometry);
            let mut filled = vec![0; (geometry.dies() * geometry.pages_per_block) as usize];
            for offset in 0..geometry.superblock_units() {
                let place = splitter.place(0, offset);
                let page = &mut filled[(place.die * 6 + place.page_in_block) as usize];
                *page += 1;
                assert_eq!(place.last_of_page, *page == geometry.multi_page_units());
            }
            assert!(filled.iter().all(|units| *units == geometry.multi_page_units()));
        }
    }

    #[test]
    fn a_die_takes_its_units_page_by_page_and_each_offset_belongs_to_one_die() {
        for chunk in [1, 2, 4, 8, 16] {
            let geometry = geometry(chunk);
            let splitter = Splitter::new(&geometry);
            let mut taken = vec![false; geometry.superblock_units() as usize];
            for die in 0..geometry.dies() {
                for on_die in 0..geometry.superblock_units() / geometry.dies() {
                    let offset = splitter.offset_on(die, on_die);
                    let place = splitter.place(0, offset);
                    let page = on_die / geometry.multi_page_units();
                    assert_eq!((place.die, place.page_in_block), (die, page));
                    assert!(!std::mem::replace(&mut taken[offset as usize], true));
                }
            }
        }
    }
}
