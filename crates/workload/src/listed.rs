//! `Listed`: requests that a job names one by one: where, how long, and what each says of itself.

use serde::Deserialize;
use ssdlab_device::{Hint, Lba, Op, Request};

/// A request of a list: first byte on the device, length in bytes, what a write says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Listed(pub u64, pub u64, pub Said);

/// What a listed write lets the drive know; a read says nothing, whatever stands here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Nothing.
    Nothing,
    /// It replaces content of a file in its place.
    Overwrite,
    /// It goes on in a file after the block that holds this byte.
    After(u64),
    /// It belongs to the stream of this number, 0 to 255.
    Stream(u8),
}

impl Said {
    fn hint(self) -> Hint {
        match self {
            Self::Nothing => Hint::None,
            Self::Overwrite => Hint::Overwrite,
            Self::After(byte) => Hint::AppendAfter(Lba::new(byte / 512)),
            Self::Stream(number) => Hint::Stream(number),
        }
    }
}

/// The list of a job, gone through in order, again from the start after the last.
pub struct Listing {
    list: Vec<Listed>,
    next: usize,
}

impl Listing {
    /// A list that was checked: not empty.
    pub fn new(list: &[Listed]) -> Self {
        Self { list: list.to_vec(), next: 0 }
    }

    /// Turns a request that has its kind into the next one of the list.
    pub fn place(&mut self, request: &mut Request) {
        let Listed(first, bytes, said) = self.list[self.next];
        self.next = (self.next + 1) % self.list.len();
        request.lba = Lba::from_bytes(first);
        request.blocks = (bytes / 512) as u32;
        request.hint = if request.op == Op::Write { said.hint() } else { Hint::None };
    }
}
