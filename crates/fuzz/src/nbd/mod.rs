//! NBD: the negotiation as it comes, and requests after a negotiation that succeeds.

mod replies;
mod requests;

use crate::bed::{Setup, check_alive, talk};
use replies::check;
use requests::{Request, repaired, sent_requests};

pub const OPTION: &[u8; 8] = b"IHAVEOPT";
pub const OPT_EXPORT_NAME: u32 = 1;
pub const OPT_ABORT: u32 = 2;
pub const OPT_GO: u32 = 7;
pub const OPT_STRUCTURED_REPLY: u32 = 8;
const OPT_SET_META_CONTEXT: u32 = 10;
const CONTEXTS: [&str; 3] = ["base:allocation", "x-ssdlab:valid", "x-ssdlab:wear"];

/// What a client says from its first byte on.
pub fn negotiation(input: &[u8]) {
    if let Some((setup, sent)) = Setup::of(input) {
        serve(setup, sent);
    }
}

/// Requests of a client that has negotiated. Bit 5 of the setup asks for structured replies and
/// contexts; without bit 6, magic numbers and cookies are repaired and lengths are limited.
pub fn session(input: &[u8]) {
    let Some((setup, requests)) = Setup::of(input) else { return };
    let mut sent = hello(setup.has(5));
    if setup.has(6) {
        sent.extend(requests);
    } else {
        sent.extend(repaired(requests));
    }
    serve(setup, &sent);
}

fn serve(setup: Setup, sent: &[u8]) {
    let server = setup.server(false);
    let heard = talk(|stream| server.nbd(stream), sent);
    if heard.is_all {
        check(setup, sent, &heard.bytes);
    }
    check_alive(&server);
}

/// A negotiation that chooses the export.
fn hello(structured: bool) -> Vec<u8> {
    let mut sent = 3_u32.to_be_bytes().to_vec();
    if structured {
        sent.extend(option(OPT_STRUCTURED_REPLY, &[]));
        let mut asked = 0_u32.to_be_bytes().to_vec();
        asked.extend((CONTEXTS.len() as u32).to_be_bytes());
        for context in CONTEXTS {
            asked.extend((context.len() as u32).to_be_bytes());
            asked.extend(context.as_bytes());
        }
        sent.extend(option(OPT_SET_META_CONTEXT, &asked));
    }
    // No name, and nothing more is asked for.
    sent.extend(option(OPT_GO, &[0; 6]));
    sent
}

fn option(number: u32, asked: &[u8]) -> Vec<u8> {
    let length = asked.len() as u32;
    [OPTION, &number.to_be_bytes()[..], &length.to_be_bytes(), asked].concat()
}

/// What a client sends that asks for each kind of command twice.
pub fn every_kind() -> Vec<u8> {
    let mut sent = hello(true);
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

/// What a client sends that reads the first block.
pub fn probe() -> Vec<u8> {
    let read = Request { kind: requests::READ, length: 512, ..Request::default() };
    [hello(false), read.bytes()].concat()
}

/// Whether a reply to it has the block.
pub fn probe_succeeded(heard: &[u8]) -> bool {
    let reply = [&replies::SIMPLE.to_be_bytes()[..], &[0; 12]].concat();
    heard.len() > 528 && heard[heard.len() - 528..][..16] == reply
}
