//! Parses and repairs the requests of an input.

use ssdlab_testing::nbd::{
    CMD_DISC, CMD_READ, CMD_WRITE, REQUEST_BYTES, REQUEST_MAGIC, Request, number,
};

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
pub fn sent_requests(mut rest: &[u8]) -> (Vec<(Request, &[u8])>, bool) {
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
