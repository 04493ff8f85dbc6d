//! CSV and ASCII formats: one request per line.

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::Parsed;
use crate::trace::Entry;
use crate::trace::fields::{Fields, Message, invalid};

/// The next field as a read or a write: one of two words in lower or upper case.
fn op(fields: &mut Fields, name: &str, words: [&[u8]; 2], allowed: &str) -> Result<Op, Message> {
    match fields.word(name)? {
        word if word.eq_ignore_ascii_case(words[0]) => Ok(Op::Read),
        word if word.eq_ignore_ascii_case(words[1]) => Ok(Op::Write),
        word => Err(invalid(name, word, allowed)),
    }
}

/// MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, without a header.
///
/// Source: SNIA IOTTA repository, trace 388. Times are in 100 ns since 1601, offset and size in
/// bytes.
pub fn msr(line: &[u8]) -> Parsed {
    let mut fields = Fields::by_commas(line);
    let ticks = fields.number("Timestamp")?;
    let at = ticks.checked_mul(100).ok_or("Timestamp is beyond the year 2185")?;
    fields.word("Hostname")?;
    let volume = fields.number("DiskNumber")? as u32;
    let op = op(&mut fields, "Type", [b"read", b"write"], "Read or Write")?;
    let offset = fields.bytes("Offset", 1)?;
    let length = fields.bytes("Size", 1)?;
    fields.number("ResponseTime")?;
    fields.end()?;
    Ok(Some(Entry { volume, ..Entry::new(Nanos::new(at), op, offset, length) }))
}

/// SPC trace file format 1.0.1: `ASU,LBA,Size,Opcode,Timestamp`, then optional fields.
///
/// Source: the format's specification, as the `UMass` trace repository uses it. Each application
/// storage unit has blocks of 512 bytes; sizes are in bytes, times in seconds since the start.
pub fn spc(line: &[u8]) -> Parsed {
    let mut fields = Fields::by_commas(line);
    let volume = fields.number("ASU")? as u32;
    let offset = fields.bytes("LBA", 512)?;
    let length = fields.bytes("Size", 1)?;
    let op = op(&mut fields, "Opcode", [b"r", b"w"], "r or w")?;
    let at = fields.seconds("Timestamp")?;
    Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
}

/// `MQSim`'s and `SSDSim`'s ASCII traces: `time device block blocks type`, separated by blanks.
///
/// Times are in nanoseconds, blocks have 512 bytes; type 1 is a read and 0 a write.
pub fn mqsim(line: &[u8]) -> Parsed {
    let mut fields = Fields::by_blanks(line);
    let at = Nanos::new(fields.number("time")?);
    let volume = fields.number("device")? as u32;
    let offset = fields.bytes("block", 512)?;
    let length = fields.bytes("blocks", 512)?;
    let op = op(&mut fields, "type", [b"1", b"0"], "0 (write) or 1 (read)")?;
    fields.end()?;
    Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
}

/// Alibaba's block traces of 2020: `device_id,opcode,offset,length,timestamp`, bytes and
/// microseconds.
pub fn alibaba(line: &[u8]) -> Parsed {
    if line.starts_with(b"device_id,") {
        return Ok(None);
    }
    let mut fields = Fields::by_commas(line);
    let volume = fields.number("device_id")? as u32;
    let op = op(&mut fields, "opcode", [b"r", b"w"], "R or W")?;
    let offset = fields.bytes("offset", 1)?;
    let length = fields.bytes("length", 1)?;
    let micros = fields.number("timestamp")?;
    let at = micros.checked_mul(1000).ok_or("timestamp is too large for microseconds")?;
    fields.end()?;
    Ok(Some(Entry { volume, ..Entry::new(Nanos::new(at), op, offset, length) }))
}

/// Tencent's cloud block storage: `timestamp,offset,size,type,volume`, seconds and blocks of 512
/// bytes, 0 is a read.
pub fn tencent(line: &[u8]) -> Parsed {
    let mut fields = Fields::by_commas(line);
    let at = fields.seconds("timestamp")?;
    let offset = fields.bytes("offset", 512)?;
    let length = fields.bytes("size", 512)?;
    let op = op(&mut fields, "type", [b"0", b"1"], "0 (read) or 1 (write)")?;
    let volume = fields.number("volume")? as u32;
    fields.end()?;
    Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
}

/// SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`, seconds and bytes. The header may
/// repeat, because files are often concatenated; `has_header` is set when it was read.
pub fn systor(line: &[u8], has_header: &mut bool) -> Parsed {
    if line.starts_with(b"Timestamp,Response,IOType,LUN") {
        *has_header = true;
        return Ok(None);
    }
    if !*has_header {
        return Err("the header Timestamp,Response,IOType,LUN,Offset,Size is missing".into());
    }
    let mut fields = Fields::by_commas(line);
    let at = fields.seconds("Timestamp")?;
    fields.word("Response")?;
    let op = op(&mut fields, "IOType", [b"r", b"w"], "R or W")?;
    let volume = fields.number("LUN")? as u32;
    let offset = fields.bytes("Offset", 1)?;
    let length = fields.bytes("Size", 1)?;
    fields.end()?;
    Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
}
