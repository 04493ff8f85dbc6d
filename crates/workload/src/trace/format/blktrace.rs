//! The binary records of `blktrace`, one file per CPU: 48 bytes each, then a payload.
//!
//! Source: `linux/blktrace_api.h`, version 7, little-endian. Only issue events are used. Sectors
//! have 512 bytes.

use std::io::{ErrorKind, Read};

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use crate::trace::Entry;
use crate::trace::fields::Message;

/// The magic number and version of a record.
const MAGIC: u32 = 0x6561_7407;
const RECORD: usize = 48;
const ISSUE: u32 = 7;
// Categories, in the upper half of an action.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const PASS_THROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

/// Whether a file starts with a record.
pub fn has_magic(prefix: &[u8]) -> bool {
    prefix.starts_with(&MAGIC.to_le_bytes())
}

pub enum Record {
    /// An issued request.
    Entry(Entry),
    Other,
    End,
}

pub fn next(bytes: &mut impl Read) -> Result<Record, Message> {
    let mut record = [0; RECORD];
    match read(bytes, &mut record)? {
        0 => return Ok(Record::End),
        RECORD => {}
        some => return Err(format!("the file ends {some} bytes into it")),
    }
    let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("4 bytes"));
    let long = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("8 bytes"));
    if word(0) != MAGIC {
        return Err(format!("it begins with {:#010x}, not {MAGIC:#010x}", word(0)));
    }
    let more = usize::from(u16::from_le_bytes([record[46], record[47]]));
    let mut rest = vec![0; more];
    if read(bytes, &mut rest)? < more {
        return Err("the file ends within it".to_owned());
    }
    let (action, volume) = (word(28), word(36));
    let categories = action >> 16;
    if action & 0xffff != ISSUE || categories & (NOTIFY | PASS_THROUGH) != 0 {
        return Ok(Record::Other);
    }
    let (at, length) = (Nanos::new(long(8)), u64::from(word(24)));
    let op = if categories & DISCARD != 0 {
        Op::Trim
    } else if length == 0 && categories & FLUSH != 0 {
        Op::Flush
    } else if categories & WRITE != 0 {
        Op::Write
    } else {
        Op::Read
    };
    let offset = long(16).checked_mul(512).filter(|offset| *offset < 1 << 56);
    let offset = if op == Op::Flush { Some(0) } else { offset };
    let offset = offset.ok_or_else(|| format!("its sector is {}, beyond 64 PiB", long(16)))?;
    let durable = op == Op::Write && categories & FUA != 0;
    Ok(Record::Entry(Entry { volume, durable, ..Entry::new(at, op, offset, length) }))
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
fn read(bytes: &mut impl Read, into: &mut [u8]) -> Result<usize, Message> {
    let mut filled = 0;
    while filled < into.len() {
        match bytes.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("it cannot be read: {error}")),
        }
    }
    Ok(filled)
}
