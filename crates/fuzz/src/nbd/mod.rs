//! NBD: arbitrary bytes from the negotiation on, and requests after a successful negotiation.

mod messages;

use crate::harness::{Protocol, Setup, TestServer};
use messages::{check, repaired};
use ssdlab_testing::nbd::{
    CMD_DISC, CMD_FLUSH, CMD_READ, CMD_WRITE, OPT_GO, OPT_SET_META_CONTEXT, OPT_STRUCTURED_REPLY,
    Request, SIMPLE_REPLY_MAGIC, go_data, meta_context_data, option,
};

const CONTEXTS: [&[u8]; 3] = [b"base:allocation", b"x-ssdlab:valid", b"x-ssdlab:wear"];

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
        sent.extend(option(OPT_SET_META_CONTEXT, &meta_context_data(b"", &CONTEXTS)));
    }
    sent.extend(option(OPT_GO, &go_data(b"")));
    sent
}

/// A client that sends each kind of command twice.
pub fn every_kind() -> Vec<u8> {
    let mut sent = negotiate(true);
    for cookie in 0..16 {
        let kind = cookie as u16 % 8;
        if kind == CMD_DISC {
            continue;
        }
        let (offset, length) = if kind == CMD_FLUSH { (0, 0) } else { (4096, 8192) };
        sent.extend(Request { flags: 0, kind, cookie, offset, length }.bytes());
        if kind == CMD_WRITE {
            sent.extend([cookie as u8; 8192]);
        }
    }
    sent
}

/// Checks that the drive still serves a client, which reads the first block.
pub fn check_alive(server: &TestServer) {
    let read = Request { kind: CMD_READ, length: 512, ..Request::default() };
    let replies = server.exchange(Protocol::Nbd, &[negotiate(false), read.bytes()].concat()).bytes;
    let header = [&SIMPLE_REPLY_MAGIC.to_be_bytes()[..], &[0; 12]].concat();
    let is_read = replies.len() > 528 && replies[replies.len() - 528..][..16] == header;
    assert!(is_read, "the drive no longer serves clients");
}
