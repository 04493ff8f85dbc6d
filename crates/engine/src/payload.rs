//! `Payload`: the bytes that a write brings.

use std::borrow::Cow;

use crate::store::ReceiveMemory;

/// A write's bytes.
pub enum Payload<'a> {
    /// One after the other, to be copied.
    Row(&'a [u8]),
    /// In memory of `Engine::landing`, which becomes the drive's.
    Landed(ReceiveMemory),
}

impl<'a> Payload<'a> {
    /// One after the other.
    pub fn in_a_row(self) -> Cow<'a, [u8]> {
        match self {
            Self::Row(bytes) => bytes.into(),
            Self::Landed(landing) => landing.in_a_row().into(),
        }
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Row(bytes)
    }
}
