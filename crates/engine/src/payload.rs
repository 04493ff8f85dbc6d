//! `Payload`: the bytes that a write brings.

use std::borrow::Cow;

use crate::store::ReceiveMemory;

/// A write's bytes.
pub enum Payload<'a> {
    /// One after the other, to be copied.
    Slice(&'a [u8]),
    /// In memory of `Engine::receive_memory`, which becomes the drive's.
    Received(ReceiveMemory),
}

impl<'a> Payload<'a> {
    /// One after the other.
    pub fn into_contiguous(self) -> Cow<'a, [u8]> {
        match self {
            Self::Slice(bytes) => bytes.into(),
            Self::Received(received) => received.to_vec().into(),
        }
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Slice(bytes)
    }
}
