//! fio's iolog, versions 2 and 3: `FILE action [offset length]`, in version 3 with a time in front.
//!
//! Source: fio's documentation, "Trace file format". Offsets and lengths are in bytes. The times of
//! version 3 are microseconds in fio 3.33, although the documentation differs. Version 2 has `wait`
//! lines instead, in microseconds.

use ssdlab_device::Op;
use ssdlab_time::Nanos;

use super::Parsed;
use crate::trace::Entry;
use crate::trace::fields::{Fields, Message, invalid};

#[derive(Default)]
pub struct Iolog {
    /// 2 or 3; 0 before the header.
    version: u8,
    /// In version 2, the sum of the waits so far.
    waited: Nanos,
    /// Names of the files, each of which is a volume.
    files: Vec<Vec<u8>>,
}

impl Iolog {
    pub fn line(&mut self, line: &[u8]) -> Parsed {
        if self.version == 0 {
            self.version = match line.trim_ascii() {
                b"fio version 2 iolog" => 2,
                b"fio version 3 iolog" => 3,
                _ => {
                    return Err(
                        "the first line must be `fio version 2 iolog` or `fio version 3 iolog`"
                            .into(),
                    );
                }
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
            _ => {
                return Err(invalid("action", action, "read, write, trim, sync, datasync or wait"));
            }
        };
        let volume = self.volume(file);
        let (offset, length) = if op == Op::Flush { (0, 0) } else { (offset, length) };
        Ok(Some(Entry { volume, ..Entry::new(at, op, offset, length) }))
    }

    fn volume(&mut self, file: &[u8]) -> u32 {
        let known = self.files.iter().position(|known| known == file);
        known.unwrap_or_else(|| {
            self.files.push(file.to_vec());
            self.files.len() - 1
        }) as u32
    }
}

fn micros(count: u64) -> Result<Nanos, Message> {
    let nanos = count.checked_mul(1000).filter(|nanos| *nanos <= u64::MAX / 4);
    nanos.map(Nanos::new).ok_or_else(|| "its time is too large for microseconds".to_owned())
}
