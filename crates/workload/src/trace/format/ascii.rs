//! `MQSim`'s and `SSDSim`'s ASCII traces: `time device block blocks type`, separated by blanks.
//!
//! Times are in nanoseconds, blocks have 512 bytes; type 1 is a read and 0 a write.

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::Parse;
use crate::trace::Entry;
use crate::trace::fields::{Fields, Message, invalid};

pub struct Ascii;

impl Parse for Ascii {
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Message> {
        let mut fields = Fields::by_blanks(line);
        let at = Nanos::new(fields.number("time")?);
        let volume = fields.number("device")? as u32;
        let offset = fields.bytes("block", 512)?;
        let length = fields.bytes("blocks", 512)?;
        let op = match fields.word("type")? {
            b"1" => Op::Read,
            b"0" => Op::Write,
            word => return Err(invalid("type", word, "0 (write) or 1 (read)")),
        };
        fields.end()?;
        Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
    }
}
