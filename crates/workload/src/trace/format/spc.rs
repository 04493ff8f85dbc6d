//! SPC trace file format 1.0.1: `ASU,LBA,Size,Opcode,Timestamp`, then optional fields.
//!
//! Source: the format's specification, as the `UMass` trace repository uses it. Each application
//! storage unit has blocks of 512 bytes; sizes are in bytes, times in seconds since the start.

use ssdlab_device::Op;

use super::Parse;
use crate::trace::Entry;
use crate::trace::fields::{Fields, Message, invalid};

pub struct Spc;

impl Parse for Spc {
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Message> {
        let mut fields = Fields::by_commas(line);
        let volume = fields.number("ASU")? as u32;
        let offset = fields.bytes("LBA", 512)?;
        let length = fields.bytes("Size", 1)?;
        let op = match fields.word("Opcode")? {
            b"r" | b"R" => Op::Read,
            b"w" | b"W" => Op::Write,
            word => return Err(invalid("Opcode", word, "r or w")),
        };
        let at = fields.seconds("Timestamp")?;
        Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
    }
}
