//! `Extent`: as many bytes of a drive as a pooled buffer has, shared with clones by copy on write.

use std::ops::Range;
use std::sync::Arc;

use crate::buffer_pool::{BufferPool, PooledBuffer};

pub const UNITS_MAX: u64 = u128::BITS as u64;

/// A buffer, and the units of it that are valid: one bit for each.
#[derive(Clone, Debug)]
struct Image {
    buffer: Arc<PooledBuffer>,
    valid: u128,
}

/// The content of an extent. Units that are not valid in the top image are read from the backing
/// image, as in qcow2; units that are valid in neither are zeros.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// Written if no clone shares it.
    top: Option<Image>,
    /// Content from before a clone; shared with it, and only read.
    backing: Option<Image>,
}

/// Where an extent allocates buffers, and the bytes of a unit.
#[derive(Clone, Copy)]
pub struct Allocator<'a> {
    pub pool: &'a Arc<BufferPool>,
    pub unit_bytes: usize,
}

impl Extent {
    /// An extent whose content is a whole buffer.
    pub fn of(buffer: PooledBuffer, unit_bytes: usize) -> Self {
        let valid = bits(&(0..buffer.len()), unit_bytes);
        Self { top: Some(Image { buffer: buffer.into(), valid }), backing: None }
    }

    /// Whether it has no buffer, so that all of it is zeros.
    pub fn is_zeros(&self) -> bool {
        self.top.is_none() && self.backing.is_none()
    }

    /// The buffer with a unit's content; `None` for zeros.
    pub fn buffer_of(&self, unit: usize) -> Option<&Arc<PooledBuffer>> {
        let mut images = [&self.top, &self.backing].into_iter().flatten();
        images.find(|image| image.valid >> unit & 1 != 0).map(|image| &image.buffer)
    }

    /// Splits a range where its buffer changes; a part without a buffer is zeros.
    pub fn pieces(
        &self,
        range: Range<usize>,
        unit_bytes: usize,
    ) -> impl Iterator<Item = (Option<&Arc<PooledBuffer>>, Range<usize>)> {
        let (top, backing) = (valid(self.top.as_ref()), valid(self.backing.as_ref()));
        let mut at = range.start;
        std::iter::from_fn(move || {
            (at < range.end).then(|| {
                let first = at / unit_bytes;
                let buffer = self.buffer_of(first);
                let same = [top, backing & !top, !(top | backing)];
                let same = same.into_iter().find(|units| units >> first & 1 != 0);
                let count = (same.unwrap_or(0) >> first).trailing_ones() as usize;
                let piece = at..range.end.min((first + count) * unit_bytes);
                at = piece.end;
                (buffer, piece)
            })
        })
    }

    pub fn write(&mut self, range: Range<usize>, bytes: &[u8], allocator: Allocator<'_>) {
        let unit_bytes = allocator.unit_bytes;
        if bytes.len() == allocator.pool.buffer_bytes {
            // Everything is replaced: nothing need be copied.
            self.backing = None;
        }
        self.make_top_writable(allocator);
        let (Some(top), backing) = (&mut self.top, &mut self.backing) else {
            unreachable!("the top image was just made writable")
        };
        let buffer = Arc::get_mut(&mut top.buffer).expect("the top image is not shared");
        for edge in edges(&range, unit_bytes) {
            let start = edge.start / unit_bytes * unit_bytes;
            let unit = start..start + unit_bytes;
            let bit = bits(&edge, unit_bytes);
            if top.valid & bit == 0 {
                match backing.as_ref().filter(|backing| backing.valid & bit != 0) {
                    Some(backing) => {
                        buffer[unit.clone()].copy_from_slice(&backing.buffer[unit]);
                    }
                    None => buffer[unit].fill(0),
                }
            }
        }
        top.valid |= bits(&range, unit_bytes);
        buffer[range].copy_from_slice(bytes);
        let valid = top.valid;
        *backing = backing.take().filter(|backing| backing.valid & !valid != 0);
    }

    pub fn zero(&mut self, range: Range<usize>, zeros: &[u8], allocator: Allocator<'_>) {
        let unit_bytes = allocator.unit_bytes;
        for edge in edges(&range, unit_bytes) {
            if self.buffer_of(edge.start / unit_bytes).is_some() {
                let length = edge.len();
                self.write(edge, &zeros[..length], allocator);
            }
        }
        let whole = range.start.next_multiple_of(unit_bytes)..range.end / unit_bytes * unit_bytes;
        if whole.start < whole.end {
            for image in [&mut self.top, &mut self.backing] {
                *image = image.take().and_then(|Image { buffer, valid }| {
                    let valid = valid & !bits(&whole, unit_bytes);
                    (valid != 0).then_some(Image { buffer, valid })
                });
            }
        }
    }

    /// Makes the top image one that is not shared. A shared top image becomes the backing image; a
    /// backing image that is no longer shared is merged with the top image.
    fn make_top_writable(&mut self, Allocator { pool, unit_bytes }: Allocator<'_>) {
        let unshared = self.backing.take_if(|backing| Arc::get_mut(&mut backing.buffer).is_some());
        if let Some(mut backing) = unshared {
            let buffer = Arc::get_mut(&mut backing.buffer).expect("the image is not shared");
            self.top.iter().for_each(|top| top.copy_to(buffer, unit_bytes));
            backing.valid |= valid(self.top.as_ref());
            self.top = Some(backing);
        }
        let is_writable =
            self.top.as_mut().is_some_and(|top| Arc::get_mut(&mut top.buffer).is_some());
        if is_writable {
            return;
        }
        let mut buffer = pool.take();
        let shared = self.top.take();
        let mut copied = 0;
        if self.backing.is_none() {
            self.backing = shared;
        } else if let Some(shared) = shared {
            shared.copy_to(&mut buffer, unit_bytes);
            copied = shared.valid;
        }
        self.top = Some(Image { buffer: buffer.into(), valid: copied });
    }
}

impl Image {
    /// Copies its valid units to the same place in another buffer.
    fn copy_to(&self, buffer: &mut PooledBuffer, unit_bytes: usize) {
        let mut left = self.valid;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let end = first + (left >> first).trailing_ones() as usize;
            let range = first * unit_bytes..end * unit_bytes;
            buffer[range.clone()].copy_from_slice(&self.buffer[range.clone()]);
            left &= !bits(&range, unit_bytes);
        }
    }
}

fn valid(image: Option<&Image>) -> u128 {
    image.map_or(0, |image| image.valid)
}

/// The bits of the units that a range touches.
fn bits(range: &Range<usize>, unit_bytes: usize) -> u128 {
    let (first, end) = (range.start / unit_bytes, range.end.div_ceil(unit_bytes));
    (u128::MAX >> (u128::BITS as usize - (end - first))) << first
}

/// The parts of a range that do not fill their unit.
fn edges(range: &Range<usize>, unit_bytes: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = range.clone();
    let first = start..end.min(start.next_multiple_of(unit_bytes));
    let last = first.end.max(end / unit_bytes * unit_bytes)..end;
    [first, last].into_iter().filter(|edge| !edge.is_empty())
}
