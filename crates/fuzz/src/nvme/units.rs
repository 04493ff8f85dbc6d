//! Units that a host hears: well formed, with correct digests, each for a command that was sent.

use std::collections::BTreeMap;

use super::host::CONNECTION_BYTES;

const CONNECTION_RESPONSE: u8 = 1;
const TERMINATION: u8 = 3;
const RESPONSE: u8 = 5;
const DATA: u8 = 7;
const READY: u8 = 9;
const HEADER_DIGEST: u8 = 1;
const DATA_DIGEST: u8 = 2;
const SUCCESS: u8 = 8;
const HEADER_BYTES: usize = 24;

/// Checks all units; `commands` are those that were sent by id.
pub fn check(commands: &BTreeMap<u16, usize>, mut heard: &[u8]) {
    let mut agreed = 0;
    let mut completed: BTreeMap<u16, usize> = BTreeMap::new();
    while !heard.is_empty() {
        let whole = long(heard, 4) as usize;
        assert!(whole >= HEADER_BYTES && whole <= heard.len(), "a unit is cut short");
        let (unit, rest) = heard.split_at(whole);
        heard = rest;
        let (kind, flags) = (unit[0], unit[1]);
        match kind {
            CONNECTION_RESPONSE => {
                assert_eq!((usize::from(unit[2]), whole), (CONNECTION_BYTES, CONNECTION_BYTES));
                agreed = unit[11];
                continue;
            }
            TERMINATION => {
                assert!(unit[2] == 24 && whole <= HEADER_BYTES + 128);
                assert!(heard.is_empty(), "units after the end of a connection");
                return;
            }
            _ => assert_eq!(usize::from(unit[2]), HEADER_BYTES),
        }
        check_digests(unit, agreed);
        let id = match kind {
            RESPONSE => short(unit, 20),
            DATA | READY => short(unit, 8),
            _ => panic!("a unit of kind {kind}"),
        };
        assert!(commands.contains_key(&id), "a unit for no command: {id:x}");
        if kind == RESPONSE || kind == DATA && flags & SUCCESS != 0 {
            *completed.entry(id).or_default() += 1;
        }
    }
    for (id, count) in completed {
        assert!(count <= commands[&id], "{count} completions of {} commands", commands[&id]);
    }
}

fn check_digests(unit: &[u8], agreed: u8) {
    let has_data = unit[3] != 0;
    let digests = if has_data { agreed } else { agreed & HEADER_DIGEST };
    assert_eq!(unit[1] & (HEADER_DIGEST | DATA_DIGEST), digests);
    if digests & HEADER_DIGEST != 0 {
        assert_eq!(long(unit, HEADER_BYTES), crc32c::crc32c(&unit[..HEADER_BYTES]));
    }
    if unit[0] == DATA {
        let end = unit.len() - if digests & DATA_DIGEST == 0 { 0 } else { 4 };
        let data = &unit[unit[3].into()..end];
        assert_eq!(data.len(), long(unit, 16) as usize);
        assert!(digests & DATA_DIGEST == 0 || long(unit, end) == crc32c::crc32c(data));
    } else {
        assert!(!has_data && unit.len() == HEADER_BYTES + if digests == 0 { 0 } else { 4 });
    }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).expect("a unit is cut short");
    u32::from_le_bytes(word.try_into().expect("four bytes"))
}
