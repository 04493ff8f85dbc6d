//! `Page`: a data structure that a host is shown, put together field by field.

/// Bytes of a known length, zeros where nothing was put.
#[derive(Clone, Debug)]
pub struct Page(Vec<u8>);

impl Page {
    /// All zeros.
    pub fn new(length: usize) -> Self {
        Self(vec![0; length])
    }

    /// Puts one byte.
    pub fn u8(&mut self, at: usize, value: u8) -> &mut Self {
        self.put(at, &[value])
    }

    /// Puts two bytes.
    pub fn u16(&mut self, at: usize, value: u16) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    /// Puts four bytes.
    pub fn u32(&mut self, at: usize, value: u32) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    /// Puts eight bytes.
    pub fn u64(&mut self, at: usize, value: u64) -> &mut Self {
        self.put(at, &value.to_le_bytes())
    }

    /// Puts a number of sixteen bytes.
    pub fn u128(&mut self, at: usize, value: u64) -> &mut Self {
        self.put(at, &u128::from(value).to_le_bytes())
    }

    /// Puts bytes.
    pub fn put(&mut self, at: usize, bytes: &[u8]) -> &mut Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Puts ASCII, cut off or filled up with blanks.
    pub fn text(&mut self, at: usize, length: usize, text: &str) -> &mut Self {
        let visible = text.bytes().map(|byte| if byte.is_ascii_graphic() { byte } else { b' ' });
        let filled: Vec<u8> = visible.chain(std::iter::repeat(b' ')).take(length).collect();
        self.put(at, &filled)
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
