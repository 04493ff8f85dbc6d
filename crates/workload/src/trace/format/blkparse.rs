//! `blkparse` output: `maj,min cpu sequence seconds pid action rwbs sector + sectors [name]`.
//!
//! Source: blkparse(1), the default format. Only events of action `D` (issued to the driver) are
//! used, because these reach the drive. Sectors have 512 bytes. The summary after the events is
//! skipped.

use ssdlab_device::Op;

use super::Parsed;
use crate::trace::Entry;
use crate::trace::fields::{Fields, invalid};

#[derive(Default)]
pub struct Blkparse {
    /// Whether the summary at the end was reached.
    is_summary: bool,
}

impl Blkparse {
    pub fn line(&mut self, line: &[u8]) -> Parsed {
        self.is_summary |= line.starts_with(b"CPU") || line.starts_with(b"Total");
        if self.is_summary {
            return Ok(None);
        }
        let mut fields = Fields::by_blanks(line);
        let device = fields.word("device")?;
        let volume = device_number(device).ok_or_else(|| invalid("device", device, "8,0"))?;
        fields.number("cpu")?;
        fields.number("sequence")?;
        let at = fields.seconds("time")?;
        fields.number("pid")?;
        if fields.word("action")? != b"D" {
            return Ok(None);
        }
        let letters = fields.word("rwbs")?;
        let Some(op) = op(letters) else { return Ok(None) };
        if op == Op::Flush {
            return Ok(Some(Entry { volume, ..Entry::new(at, op, 0, 0) }));
        }
        let offset = fields.bytes("sector", 512)?;
        match fields.word("+")? {
            b"+" => {}
            word => return Err(invalid("the field after the sector", word, "+")),
        }
        let length = fields.bytes("sectors", 512)?;
        // An F after the W is FUA.
        let durable =
            op == Op::Write && letters.iter().skip_while(|at| **at != b'W').any(|at| *at == b'F');
        Ok(Some(Entry { volume, durable, ..Entry::new(at, op, offset, length) }))
    }
}

/// Parses `major,minor` into the kernel's device number.
fn device_number(word: &[u8]) -> Option<u32> {
    let mut parts = Fields::by_commas(word);
    let (major, minor) = (parts.number("").ok()?, parts.number("").ok()?);
    parts.end().ok()?;
    Some(((major as u32) << 20) | minor as u32)
}

/// The operation of the letters in `rwbs`; `None` for commands without data other than a flush.
fn op(letters: &[u8]) -> Option<Op> {
    let has = |letter: u8| letters.contains(&letter);
    if has(b'D') {
        Some(Op::Trim)
    } else if has(b'W') {
        Some(Op::Write)
    } else if has(b'R') {
        Some(Op::Read)
    } else {
        has(b'F').then_some(Op::Flush)
    }
}
