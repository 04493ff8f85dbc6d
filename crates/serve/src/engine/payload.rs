//! `Payload`: the bytes that a write brings.

use std::borrow::Cow;

use crate::message::Page;

/// A write's bytes.
pub enum Payload<'a> {
    /// One after the other, to be copied.
    Row(&'a [u8]),
    /// In pages of a mapping unit each, which become the drive's: those of `Engine::pages_for`.
    Pages(Vec<Page>),
}

impl<'a> Payload<'a> {
    /// One after the other.
    pub fn in_a_row(self) -> Cow<'a, [u8]> {
        match self {
            Self::Row(bytes) => bytes.into(),
            Self::Pages(pages) => pages.concat().into(),
        }
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Row(bytes)
    }
}
