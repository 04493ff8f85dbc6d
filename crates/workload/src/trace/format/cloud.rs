//! Cloud traces in CSV: Alibaba 2020, Tencent CBS, SYSTOR '17.
//!
//! Alibaba: `device_id,opcode,offset,length,timestamp`, bytes and microseconds. Tencent:
//! `timestamp,offset,size,type,volume`, seconds and blocks of 512 bytes, 0 is a read.
//! SYSTOR: `Timestamp,Response,IOType,LUN,Offset,Size` with a header; seconds and bytes.

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::Parse;
use crate::trace::Entry;
use crate::trace::fields::{Fields, Message, invalid};

pub struct Alibaba;

impl Parse for Alibaba {
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Message> {
        if line.starts_with(b"device_id,") {
            return Ok(None);
        }
        let mut fields = Fields::by_commas(line);
        let volume = fields.number("device_id")? as u32;
        let op = letter(fields.word("opcode")?, "opcode")?;
        let offset = fields.bytes("offset", 1)?;
        let length = fields.bytes("length", 1)?;
        let micros = fields.number("timestamp")?;
        let at = micros.checked_mul(1000).ok_or("timestamp is too large for microseconds")?;
        fields.end()?;
        Ok(Some(Entry { volume, ..Entry::new(Nanos::new(at), op, offset, length) }))
    }
}

pub struct Tencent;

impl Parse for Tencent {
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Message> {
        let mut fields = Fields::by_commas(line);
        let at = fields.seconds("timestamp")?;
        let offset = fields.bytes("offset", 512)?;
        let length = fields.bytes("size", 512)?;
        let op = match fields.word("type")? {
            b"0" => Op::Read,
            b"1" => Op::Write,
            word => return Err(invalid("type", word, "0 (read) or 1 (write)")),
        };
        let volume = fields.number("volume")? as u32;
        fields.end()?;
        Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
    }
}

/// The header may repeat, because files are often concatenated.
#[derive(Default)]
pub struct Systor {
    has_header: bool,
}

impl Parse for Systor {
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Message> {
        if line.starts_with(b"Timestamp,Response,IOType,LUN") {
            self.has_header = true;
            return Ok(None);
        }
        if !self.has_header {
            return Err("the header Timestamp,Response,IOType,LUN,Offset,Size is missing".into());
        }
        let mut fields = Fields::by_commas(line);
        let at = fields.seconds("Timestamp")?;
        fields.word("Response")?;
        let op = letter(fields.word("IOType")?, "IOType")?;
        let volume = fields.number("LUN")? as u32;
        let offset = fields.bytes("Offset", 1)?;
        let length = fields.bytes("Size", 1)?;
        fields.end()?;
        Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
    }
}

fn letter(word: &[u8], name: &str) -> Result<Op, Message> {
    match word {
        b"R" | b"r" => Ok(Op::Read),
        b"W" | b"w" => Ok(Op::Write),
        _ => Err(invalid(name, word, "R or W")),
    }
}
