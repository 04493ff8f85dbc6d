//! `Stretch`: a slab's length of a drive, and what of it forks share.

use std::ops::Range;
use std::sync::Arc;

use crate::buffer_pool::{BufferPool, PooledBuffer};

/// A stretch has no more units.
pub const UNITS_MAX: u64 = u128::BITS as u64;

/// A slab and which units of it count, a bit each.
#[derive(Clone, Debug)]
struct Layer {
    slab: Arc<PooledBuffer>,
    held: u128,
}

/// A stretch of the drive: what a layer does not hold is as in the one under it, and zeros at last.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    /// Written where nobody else holds it.
    top: Option<Layer>,
    /// Of the time before a fork: only read, for others hold it too.
    under: Option<Layer>,
}

/// Where slabs come from, and how many bytes a unit has.
type Allocation<'a> = (&'a Arc<BufferPool>, usize);

impl Stretch {
    /// One that holds all of a slab.
    pub fn of(slab: PooledBuffer, unit: usize) -> Self {
        let held = bits(&(0..slab.len()), unit);
        Self { top: Some(Layer { slab: slab.into(), held }), under: None }
    }

    /// Whether it holds nothing.
    pub fn is_zeros(&self) -> bool {
        self.top.is_none() && self.under.is_none()
    }

    /// Where a unit's bytes are; none for zeros.
    pub fn slab_of(&self, unit: usize) -> Option<&Arc<PooledBuffer>> {
        let layers = [&self.top, &self.under].into_iter().flatten();
        layers.filter(|layer| layer.held >> unit & 1 != 0).map(|layer| &layer.slab).next()
    }

    /// A range by where its bytes are: which of a slab in a row, or how many zeros.
    pub fn runs(
        &self,
        range: Range<usize>,
        unit: usize,
    ) -> impl Iterator<Item = (Option<&Arc<PooledBuffer>>, Range<usize>)> {
        let (top, under) = (held(self.top.as_ref()), held(self.under.as_ref()));
        let mut at = range.start;
        std::iter::from_fn(move || {
            (at < range.end).then(|| {
                let first = at / unit;
                let slab = self.slab_of(first);
                let same = [top, under & !top, !(top | under)];
                let same = same.into_iter().find(|units| units >> first & 1 != 0);
                let count = (same.unwrap_or(0) >> first).trailing_ones() as usize;
                let run = at..range.end.min((first + count) * unit);
                at = run.end;
                (slab, run)
            })
        })
    }

    /// Puts bytes into a range.
    pub fn put(&mut self, range: Range<usize>, bytes: &[u8], making: Allocation<'_>) {
        let unit = making.1;
        if bytes.len() == making.0.slab_bytes() {
            // What is replaced need not be copied.
            self.under = None;
        }
        self.own(making);
        let (Some(top), under) = (&mut self.top, &mut self.under) else {
            unreachable!("made above")
        };
        let slab = Arc::get_mut(&mut top.slab).expect("nobody else holds it");
        for edge in edges(&range, unit) {
            let here = edge.start / unit * unit..edge.start / unit * unit + unit;
            let bit = bits(&edge, unit);
            if top.held & bit == 0 {
                match under.as_ref().filter(|under| under.held & bit != 0) {
                    Some(under) => slab[here.clone()].copy_from_slice(&under.slab[here]),
                    None => slab[here].fill(0),
                }
            }
        }
        top.held |= bits(&range, unit);
        slab[range].copy_from_slice(bytes);
        let held = top.held;
        *under = under.take().filter(|under| under.held & !held != 0);
    }

    /// Zeros a range.
    pub fn zero(&mut self, range: Range<usize>, zeros: &[u8], making: Allocation<'_>) {
        let unit = making.1;
        for edge in edges(&range, unit) {
            if self.slab_of(edge.start / unit).is_some() {
                let length = edge.len();
                self.put(edge, &zeros[..length], making);
            }
        }
        let whole = range.start.next_multiple_of(unit)..range.end / unit * unit;
        if whole.start < whole.end {
            for layer in [&mut self.top, &mut self.under] {
                *layer = layer.take().and_then(|Layer { slab, held }| {
                    let held = held & !bits(&whole, unit);
                    (held != 0).then_some(Layer { slab, held })
                });
            }
        }
    }

    /// Makes the top layer one that nobody else holds. What others hold stays under it; where they
    /// have let go of that, both become one.
    fn own(&mut self, (pool, unit): Allocation<'_>) {
        let unshared = self.under.take_if(|under| Arc::get_mut(&mut under.slab).is_some());
        if let Some(mut under) = unshared {
            let slab = Arc::get_mut(&mut under.slab).expect("nobody else holds it");
            self.top.iter().for_each(|top| top.copy_to(slab, unit));
            under.held |= held(self.top.as_ref());
            self.top = Some(under);
        }
        let is_own = self.top.as_mut().is_some_and(|top| Arc::get_mut(&mut top.slab).is_some());
        if is_own {
            return;
        }
        let mut slab = pool.take();
        let shared = self.top.take();
        let mut now_held = 0;
        if self.under.is_none() {
            self.under = shared;
        } else if let Some(shared) = shared {
            shared.copy_to(&mut slab, unit);
            now_held = shared.held;
        }
        self.top = Some(Layer { slab: slab.into(), held: now_held });
    }
}

impl Layer {
    /// Copies what it holds to its place in another slab.
    fn copy_to(&self, slab: &mut PooledBuffer, unit: usize) {
        let mut left = self.held;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let end = first + (left >> first).trailing_ones() as usize;
            let run = first * unit..end * unit;
            slab[run.clone()].copy_from_slice(&self.slab[run.clone()]);
            left &= !bits(&run, unit);
        }
    }
}

fn held(layer: Option<&Layer>) -> u128 {
    layer.map_or(0, |layer| layer.held)
}

/// The bits of the units that a range touches.
fn bits(range: &Range<usize>, unit: usize) -> u128 {
    let (first, end) = (range.start / unit, range.end.div_ceil(unit));
    (u128::MAX >> (u128::BITS as usize - (end - first))) << first
}

/// The parts of a range that do not fill their unit.
fn edges(range: &Range<usize>, unit: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = range.clone();
    let first = start..end.min(start.next_multiple_of(unit));
    let last = first.end.max(end / unit * unit)..end;
    [first, last].into_iter().filter(|edge| !edge.is_empty())
}
