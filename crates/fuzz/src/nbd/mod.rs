//! NBD: arbitrary bytes from the negotiation on, and requests after a successful negotiation.

mod replies;
mod requests;

use crate::harness::{Protocol, Setup, TestServer};
use replies::check;
use requests::{Request, repaired, sent_requests};

pub const OPTION: &[u8; 8] = b"IHAVEOPT";
pub const OPT_EXPORT_NAME: u32 = 1;
pub const OPT_ABORT: u32 = 2;
pub const OPT_GO: u32 = 7;
pub const OPT_STRUCTURED_REPLY: u32 = 8;
const OPT_SET_META_CONTEXT: u32 = 10;
const CONTEXTS: [&str; 3] = ["base:allocation", "x-ssdlab:valid", "x-ssdlab:wear"];

/// The bytes that a client sends, from the first on.
pub fn negotiation(input: &[u8]) {
    if let Some((setup, sent)) = Setup::parse(input) {
        exchange(setup, sent);
    }
}

/// Requests after a negotiation. With bit 5 of the setup the client negotiates structured replies
/// and metadata contexts. Without bit 6, magic numbers and cookies are repaired and the lengths of
/// reads are limited.
pub fn session(input: &[u8]) {
    let Some((setup, requests)) = Setup::parse(input) else { return };
    let mut sent = negotiate(setup.has(5));
    if setup.has(6) {
        sent.extend(requests);
    } else {
        sent.extend(repaired(requests));
    }
    exchange(setup, &sent);
}

fn exchange(setup: Setup, sent: &[u8]) {
    let server = setup.server(false);
    let replies = server.exchange(Protocol::Nbd, sent);
    if replies.is_complete {
        check(setup, sent, &replies.bytes);
    }
    check_alive(&server);
}

/// The client's side of a negotiation that selects the default export.
fn negotiate(structured: bool) -> Vec<u8> {
    let mut sent = 3_u32.to_be_bytes().to_vec();
    if structured {
        sent.extend(option(OPT_STRUCTURED_REPLY, &[]));
        let mut data = 0_u32.to_be_bytes().to_vec();
        data.extend((CONTEXTS.len() as u32).to_be_bytes());
        for context in CONTEXTS {
            data.extend((context.len() as u32).to_be_bytes());
            data.extend(context.as_bytes());
        }
        sent.extend(option(OPT_SET_META_CONTEXT, &data));
    }
    // An empty name, and no information requests.
    sent.extend(option(OPT_GO, &[0; 6]));
    sent
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    [OPTION, &number.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

/// A client that sends each kind of command twice.
pub fn every_kind() -> Vec<u8> {
    let mut sent = negotiate(true);
    for cookie in 0..16 {
        let kind = cookie as u16 % 8;
        if kind == requests::DISCONNECT {
            continue;
        }
        let (offset, length) = if kind == requests::FLUSH { (0, 0) } else { (4096, 8192) };
        sent.extend(Request { flags: 0, kind, cookie, offset, length }.bytes());
        if kind == requests::WRITE {
            sent.extend([cookie as u8; 8192]);
        }
    }
    sent
}

/// Checks that the drive still serves a client, which reads the first block.
pub fn check_alive(server: &TestServer) {
    let read = Request { kind: requests::READ, length: 512, ..Request::default() };
    let replies = server.exchange(Protocol::Nbd, &[negotiate(false), read.bytes()].concat()).bytes;
    let header = [&replies::SIMPLE.to_be_bytes()[..], &[0; 12]].concat();
    let is_read = replies.len() > 528 && replies[replies.len() - 528..][..16] == header;
    assert!(is_read, "the drive no longer serves clients");
}
