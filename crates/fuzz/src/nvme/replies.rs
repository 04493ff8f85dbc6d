//! Checks the PDUs that a host receives: well formed, with correct digests, and each belongs to a
//! command that was sent.

use std::collections::BTreeMap;

use ssdlab_testing::nvme::{
    C2H_DATA, C2H_TERM_REQ, CAPSULE_RESP, DATA_DIGEST, HEADER_DIGEST, ICREQ_BYTES, ICRESP, R2T,
    SUCCESS, u16_at, u32_at,
};

/// Length of the header of all PDUs that are checked.
const HEADER_BYTES: usize = 24;

/// Checks all PDUs. `commands` counts the commands that were sent, by command identifier.
pub fn check(commands: &BTreeMap<u16, usize>, mut received: &[u8]) {
    let mut agreed = 0;
    let mut completions: BTreeMap<u16, usize> = BTreeMap::new();
    while !received.is_empty() {
        let length = u32_at(received, 4) as usize;
        assert!(length >= HEADER_BYTES && length <= received.len(), "a PDU is truncated");
        let (pdu, rest) = received.split_at(length);
        received = rest;
        let (pdu_type, flags) = (pdu[0], pdu[1]);
        match pdu_type {
            ICRESP => {
                assert_eq!((usize::from(pdu[2]), length), (ICREQ_BYTES, ICREQ_BYTES));
                agreed = pdu[11];
                continue;
            }
            C2H_TERM_REQ => {
                assert!(pdu[2] == 24 && length <= HEADER_BYTES + 128);
                assert!(received.is_empty(), "PDUs after C2HTermReq");
                return;
            }
            _ => assert_eq!(usize::from(pdu[2]), HEADER_BYTES),
        }
        check_digests(pdu, agreed);
        let id = match pdu_type {
            CAPSULE_RESP => u16_at(pdu, 20),
            C2H_DATA | R2T => u16_at(pdu, 8),
            _ => panic!("a PDU of type {pdu_type}"),
        };
        assert!(commands.contains_key(&id), "no command has the identifier {id:x} of a PDU");
        if pdu_type == CAPSULE_RESP || pdu_type == C2H_DATA && flags & SUCCESS != 0 {
            *completions.entry(id).or_default() += 1;
        }
    }
    for (id, count) in completions {
        assert!(count <= commands[&id], "{count} completions of {} commands", commands[&id]);
    }
}

fn check_digests(pdu: &[u8], agreed: u8) {
    let has_data = pdu[3] != 0;
    let digests = if has_data { agreed } else { agreed & HEADER_DIGEST };
    assert_eq!(pdu[1] & (HEADER_DIGEST | DATA_DIGEST), digests);
    if digests & HEADER_DIGEST != 0 {
        assert_eq!(u32_at(pdu, HEADER_BYTES), crc32c::crc32c(&pdu[..HEADER_BYTES]));
    }
    if pdu[0] == C2H_DATA {
        let end = pdu.len() - if digests & DATA_DIGEST == 0 { 0 } else { 4 };
        let data = &pdu[pdu[3].into()..end];
        assert_eq!(data.len(), u32_at(pdu, 16) as usize);
        assert!(digests & DATA_DIGEST == 0 || u32_at(pdu, end) == crc32c::crc32c(data));
    } else {
        assert!(!has_data && pdu.len() == HEADER_BYTES + if digests == 0 { 0 } else { 4 });
    }
}
