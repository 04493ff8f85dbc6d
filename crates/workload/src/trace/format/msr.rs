//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, without a header.
//!
//! Source: SNIA IOTTA repository, trace 388. Times are in 100 ns since 1601, offset and size in
//! bytes.

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::Parse;
use crate::trace::Entry;
use crate::trace::fields::{Fields, Message, invalid};

pub struct Msr;

impl Parse for Msr {
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Message> {
        let mut fields = Fields::by_commas(line);
        let ticks = fields.number("Timestamp")?;
        let at = ticks.checked_mul(100).ok_or("Timestamp is beyond the year 2185")?;
        fields.word("Hostname")?;
        let volume = fields.number("DiskNumber")? as u32;
        let word = fields.word("Type")?;
        let op = if word.eq_ignore_ascii_case(b"read") {
            Op::Read
        } else if word.eq_ignore_ascii_case(b"write") {
            Op::Write
        } else {
            return Err(invalid("Type", word, "Read or Write"));
        };
        let offset = fields.bytes("Offset", 1)?;
        let length = fields.bytes("Size", 1)?;
        fields.number("ResponseTime")?;
        fields.end()?;
        Ok(Some(Entry { volume, ..Entry::new(Nanos::new(at), op, offset, length) }))
    }
}
