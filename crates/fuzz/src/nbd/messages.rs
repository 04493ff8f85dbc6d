//! Parses and repairs the requests of an input, and checks the replies: well formed, each to a
//! request that was sent, with the data that was written.

use std::collections::BTreeMap;

use crate::harness::Setup;
use ssdlab_testing::nbd::{
    CMD_BLOCK_STATUS, CMD_DISC, CMD_FLUSH, CMD_READ, CMD_TRIM, CMD_WRITE, CMD_WRITE_ZEROES,
    OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_STRUCTURED_REPLY, OPTION_MAGIC, OPTION_REPLY_MAGIC,
    REP_ACK, REQUEST_BYTES, REQUEST_MAGIC, Request, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC,
    number,
};
use ssdlab_testing::{CAPACITY, UNIT};

const CHUNK_NONE: u16 = 0;
const CHUNK_DATA: u16 = 1;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = 0x8001;
/// The server disconnects a client that sends more options, or a longer export name.
const OPTIONS_MAX: usize = 1000;
const OPTION_BYTES_MAX: usize = 64 << 10;
/// The server closes the connection at a write with a longer payload.
const PAYLOAD_MAX: u32 = 64 << 20;
/// Total length of the reads of a repaired input: longer ones only take time.
const READS_MAX: u32 = 4 << 20;

/// Parses a request; returns its magic number and the request.
fn parse(bytes: &[u8]) -> Option<(u32, Request)> {
    (bytes.len() >= REQUEST_BYTES).then(|| {
        let request = Request {
            flags: number(&bytes[4..6]) as u16,
            kind: number(&bytes[6..8]) as u16,
            cookie: number(&bytes[8..16]),
            offset: number(&bytes[16..24]),
            length: number(&bytes[24..28]) as u32,
        };
        (number(&bytes[..4]) as u32, request)
    })
}

fn payload_length(request: &Request) -> u32 {
    if request.kind == CMD_WRITE { request.length } else { 0 }
}

/// The requests of `input`, with correct magic numbers and unique cookies.
pub fn repaired(input: &[u8]) -> Vec<u8> {
    let (mut rest, mut out, mut cookie, mut reads) = (input, Vec::new(), 0, READS_MAX);
    while let Some((_, mut request)) = parse(rest) {
        cookie += 1;
        request.cookie = cookie;
        if request.kind == CMD_READ {
            request.length = request.length.min(reads);
            reads -= request.length;
        }
        out.extend(request.bytes());
        rest = &rest[REQUEST_BYTES..];
        let payload = (payload_length(&request) as usize).min(rest.len());
        out.extend(&rest[..payload]);
        rest = &rest[payload..];
    }
    out.extend(rest);
    out
}

/// The requests that the server parses, each with its payload, and whether the connection ends
/// properly: with a disconnect, or after the last byte of a request.
fn sent_requests(mut rest: &[u8]) -> (Vec<(Request, &[u8])>, bool) {
    let mut requests = Vec::new();
    while let Some((magic, request)) = parse(rest) {
        if magic != REQUEST_MAGIC {
            return (requests, false);
        }
        if request.kind == CMD_DISC {
            return (requests, true);
        }
        rest = &rest[REQUEST_BYTES..];
        let payload = payload_length(&request);
        if payload > PAYLOAD_MAX || payload as usize > rest.len() {
            return (requests, false);
        }
        let (data, after) = rest.split_at(payload as usize);
        requests.push((request, data));
        rest = after;
    }
    (requests, rest.is_empty())
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, count: usize) -> Option<u64> {
        self.take(count).map(number)
    }

    fn word(&mut self) -> Option<u32> {
        self.number(4).map(|word| word as u32)
    }
}

#[derive(Default)]
struct Reply<'a> {
    errno: u32,
    data: &'a [u8],
    is_complete: bool,
}

/// Checks the bytes that a client received against those that it sent.
pub fn check(setup: Setup, sent: &[u8], received: &[u8]) {
    let (mut sent, mut received) = (Bytes(sent), Bytes(received));
    let Some(structured) = negotiated(&mut sent, &mut received) else {
        assert!(received.0.is_empty(), "replies after the end of the negotiation");
        return;
    };
    let (requests, in_order) = sent_requests(sent.0);
    let by_cookie: BTreeMap<u64, Request> =
        requests.iter().map(|(request, _)| (request.cookie, *request)).collect();
    if by_cookie.len() < requests.len() {
        // Two requests share a cookie: their replies cannot be matched.
        return;
    }
    let mut replies: BTreeMap<u64, Reply<'_>> = BTreeMap::new();
    while !received.0.is_empty() {
        reply(&mut received, structured, &by_cookie, &mut replies).expect("a reply is truncated");
    }
    assert!(!in_order || requests.len() == replies.len(), "a request without a reply");
    assert!(replies.values().all(|reply| reply.is_complete), "a reply without its last chunk");
    check_content(setup, &requests, &replies);
}

/// Parses the negotiation. Returns whether replies are structured; `None` if it did not complete.
fn negotiated(sent: &mut Bytes<'_>, received: &mut Bytes<'_>) -> Option<bool> {
    assert_eq!(received.take(16), Some(&b"NBDMAGICIHAVEOPT"[..]));
    assert_eq!(received.number(2), Some(3));
    let flags = sent.word()?;
    if flags & !3 != 0 || flags & 1 == 0 {
        return None;
    }
    let mut structured = false;
    for _ in 0..OPTIONS_MAX {
        if sent.take(8)? != OPTION_MAGIC {
            return None;
        }
        let (option, length) = (sent.word()?, sent.word()? as usize);
        if length > OPTION_BYTES_MAX && option == OPT_EXPORT_NAME {
            return None;
        }
        let data = sent.take(length)?;
        if option == OPT_EXPORT_NAME {
            if !data.is_empty() && data != b"toy" {
                return None;
            }
            assert_eq!(received.number(8), Some(CAPACITY));
            let zeros = if flags & 2 == 0 { 124 } else { 0 };
            assert!(received.take(2 + zeros).is_some());
            return Some(structured);
        }
        let is_done = option_reply(received, option).expect("an option reply is truncated");
        match option {
            OPT_ABORT => return None,
            OPT_GO if is_done => return Some(structured),
            OPT_STRUCTURED_REPLY => structured |= is_done,
            _ => {}
        }
    }
    None
}

/// Parses all replies to an option. Returns whether the last one acknowledges it.
fn option_reply(received: &mut Bytes<'_>, option: u32) -> Option<bool> {
    loop {
        assert_eq!(received.number(8)?, OPTION_REPLY_MAGIC);
        assert_eq!(received.word()?, option);
        let (kind, length) = (received.word()?, received.word()?);
        received.take(length as usize)?;
        if kind == REP_ACK || kind >> 31 == 1 {
            return Some(kind == REP_ACK);
        }
    }
}

/// Parses a reply, or a chunk of one; `None` if it is truncated.
fn reply<'a>(
    received: &mut Bytes<'a>,
    structured: bool,
    requests: &BTreeMap<u64, Request>,
    replies: &mut BTreeMap<u64, Reply<'a>>,
) -> Option<()> {
    let magic = received.word()?;
    let is_simple = magic == SIMPLE_REPLY_MAGIC;
    assert!(
        is_simple || magic == STRUCTURED_REPLY_MAGIC && structured,
        "{magic:x} is not the magic number of a reply"
    );
    let (first, second) = if is_simple {
        (received.word()?, 0)
    } else {
        (received.number(2)? as u32, received.number(2)? as u16)
    };
    let cookie = received.number(8)?;
    let request = requests.get(&cookie).expect("a request has the cookie of the reply");
    let reply = replies.entry(cookie).or_default();
    assert!(!reply.is_complete, "a request has two replies");
    if is_simple {
        let has_data = request.kind == CMD_READ && first == 0;
        assert!(
            !structured || !matches!(request.kind, CMD_READ | CMD_BLOCK_STATUS),
            "must be structured"
        );
        let data = received.take(if has_data { request.length as usize } else { 0 })?;
        *reply = Reply { errno: first, data, is_complete: true };
        return Some(());
    }
    let length = received.word()? as usize;
    let mut chunk = Bytes(received.take(length)?);
    reply.is_complete = first & 1 == 1;
    match (second, request.kind) {
        (CHUNK_NONE, _) => {}
        (CHUNK_DATA, CMD_READ) => {
            assert_eq!(chunk.number(8)?, request.offset);
            assert_eq!(chunk.0.len(), request.length as usize);
            reply.data = chunk.take(request.length as usize)?;
        }
        (CHUNK_BLOCK_STATUS, CMD_BLOCK_STATUS) => {
            chunk.word()?;
            let (mut described, mut extents) = (0, 0);
            while !chunk.0.is_empty() {
                described += u64::from(chunk.word()?);
                extents += 1;
                chunk.word()?;
            }
            assert!(extents > 0 && described <= request.length.into());
        }
        (CHUNK_ERROR, _) => {
            reply.errno = chunk.word()?;
            assert!(reply.errno != 0);
            let words = chunk.number(2)?;
            chunk.take(words as usize)?;
        }
        _ => panic!("a chunk of kind {second} to a request of kind {}", request.kind),
    }
    assert!(chunk.0.is_empty(), "a chunk has trailing bytes");
    Some(())
}

/// The end of the range of a request, exclusive.
fn end(request: &Request) -> u64 {
    request.offset.saturating_add(request.length.into())
}

/// Checks that reads return the data that the same connection wrote before.
fn check_content(setup: Setup, requests: &[(Request, &[u8])], replies: &BTreeMap<u64, Reply<'_>>) {
    let mut content = vec![0; CAPACITY as usize];
    for (request, data) in requests {
        // A flush has no range.
        let has_range = request.kind != CMD_FLUSH;
        let reply = replies.get(&request.cookie).filter(|reply| has_range && reply.errno == 0);
        let Some(reply) = reply else { continue };
        assert!(request.length == 0 || end(request) <= CAPACITY, "beyond the end: {request:?}");
        let units = (request.offset.next_multiple_of(UNIT), end(request) / UNIT * UNIT);
        let (start, end) = if request.kind == CMD_TRIM {
            (units.0, if setup.trims_to_zeros() { units.1.max(units.0) } else { units.0 })
        } else {
            (request.offset, end(request))
        };
        let Some(here) = content.get_mut(start as usize..end as usize) else { continue };
        match request.kind {
            CMD_READ => {
                assert!(here == reply.data, "not the written data: {request:?}");
            }
            CMD_WRITE => here.copy_from_slice(data),
            CMD_TRIM | CMD_WRITE_ZEROES => here.fill(0),
            _ => {}
        }
    }
}
