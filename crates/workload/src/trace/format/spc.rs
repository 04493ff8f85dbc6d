//! SPC trace file format 1.0.1: `ASU,LBA,Size,Opcode,Timestamp`, then what else a maker adds.
//!
//! Source: the format's specification, as the `UMass` trace repository uses it. Blocks of 512 bytes
//! for each application storage unit, sizes in bytes, times in seconds from the first one on.

use ssdlab_device::Op;

use super::Parse;
use crate::trace::Entry;
use crate::trace::fields::{Fields, Wrong, wrong};

pub struct Spc;

impl Parse for Spc {
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Wrong> {
        let mut fields = Fields::by_commas(line);
        let volume = fields.number("ASU")? as u32;
        let offset = fields.bytes("LBA", 512)?;
        let length = fields.bytes("Size", 1)?;
        let op = match fields.word("Opcode")? {
            b"r" | b"R" => Op::Read,
            b"w" | b"W" => Op::Write,
            word => return Err(wrong("Opcode", word, "r or w")),
        };
        let at = fields.seconds("Timestamp")?;
        Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
    }
}
