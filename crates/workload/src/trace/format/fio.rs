//! fio's iolog, versions 2 and 3: `FILE action [offset length]`; version 3 has a time before it.
//!
//! Source: fio's documentation, "Trace file format". Bytes; the times of version 3 are microseconds
//! in fio 3.33, whatever its documentation says. Version 2 has waits instead, each in microseconds
//! after the one before.

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::Parse;
use crate::trace::Entry;
use crate::trace::fields::{Fields, Wrong, wrong};

#[derive(Default)]
pub struct Iolog {
    /// 2 or 3; 0 before the header.
    version: u8,
    /// Of version 2: how long was waited so far.
    waited: Nanos,
    /// Each is a volume.
    files: Vec<Vec<u8>>,
}

impl Parse for Iolog {
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, Wrong> {
        if self.version == 0 {
            self.version = match line.trim_ascii() {
                b"fio version 2 iolog" => 2,
                b"fio version 3 iolog" => 3,
                _ => return Err("the first line is no `fio version 2 iolog`, or 3".into()),
            };
            return Ok(None);
        }
        let mut fields = Fields::by_blanks(line);
        let at = if self.version == 3 { micros(fields.number("time")?)? } else { self.waited };
        let file = fields.word("file")?;
        let action = fields.word("action")?;
        if let b"add" | b"open" | b"close" = action {
            return fields.end().map(|()| None);
        }
        let (offset, length) = (fields.bytes("offset", 1)?, fields.bytes("length", 1)?);
        fields.end()?;
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" => Op::Flush,
            b"wait" if self.version == 2 => {
                self.waited += micros(offset)?;
                return Ok(None);
            }
            _ => return Err(wrong("action", action, "read, write, trim, sync, datasync or wait")),
        };
        let volume = self.volume(file);
        let (offset, length) = if op == Op::Flush { (0, 0) } else { (offset, length) };
        Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
    }
}

impl Iolog {
    fn volume(&mut self, file: &[u8]) -> u32 {
        let known = self.files.iter().position(|known| known == file);
        known.unwrap_or_else(|| {
            self.files.push(file.to_vec());
            self.files.len() - 1
        }) as u32
    }
}

fn micros(count: u64) -> Result<Nanos, Wrong> {
    let nanos = count.checked_mul(1000).filter(|nanos| *nanos <= u64::MAX / 4);
    nanos.map(Nanos::new).ok_or_else(|| "its time is too large for microseconds".to_owned())
}
