//! The negotiation: from a client's connection to an export that it has chosen.

use std::io::{self, Read, Write};

use super::protocol::{
    EXPORT_FLAGS, FIXED_NEWSTYLE, GREETING, INFO_BLOCK_SIZE, INFO_DESCRIPTION, INFO_EXPORT,
    INFO_NAME, NO_ZEROES, OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST,
    OPT_LIST_META_CONTEXT, OPT_SET_META_CONTEXT, OPT_START_TLS, OPT_STRUCTURED_REPLY, OPTION,
    OPTION_REPLY, REP_ACK, REP_ERR_INVALID, REP_ERR_TLS_REQUIRED, REP_ERR_TOO_BIG, REP_ERR_UNKNOWN,
    REP_ERR_UNSUP, REP_INFO, REP_META_CONTEXT, REP_SERVER,
};
use crate::export::{Export, MetaContext};
use ssdlab_engine::TRANSFER_MAX;
use ssdlab_wire::ReceiveBuffer;

/// The longest option that is read; longer ones are refused.
const OPTION_MAX: u32 = 64 << 10;
/// A client that has not chosen after so many options never will.
const OPTIONS_MAX: usize = 1000;

/// What a client and the server agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Whether replies are structured.
    pub structured: bool,
    /// What block status tells, by the number that stands in replies.
    pub contexts: Vec<MetaContext>,
}

/// How the two greeted each other.
#[derive(Clone, Copy, Debug)]
pub struct Greeting {
    no_zeroes: bool,
}

/// How a negotiation ended.
#[derive(Debug)]
pub enum Negotiated {
    /// The client has chosen; the reply that says so is still to be sent.
    Agreed(Agreed, Vec<u8>),
    /// It negotiates anew, encrypted.
    StartTls,
    /// It went away in good order.
    Left,
}

/// Greets a client.
///
/// # Errors
/// As `negotiate`.
pub fn greet<R: Read, W: Write>(
    input: &mut ReceiveBuffer<R>,
    output: &mut W,
) -> io::Result<Greeting> {
    let mut hello = Vec::new();
    hello.extend(GREETING.to_be_bytes());
    hello.extend(OPTION.to_be_bytes());
    hello.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    output.write_all(&hello)?;
    let flags = u32::from_be_bytes(input.array()?);
    let known = u32::from(FIXED_NEWSTYLE | NO_ZEROES);
    if flags & !known != 0 || flags & u32::from(FIXED_NEWSTYLE) == 0 {
        return Err(bad("a client without fixed newstyle negotiation"));
    }
    Ok(Greeting { no_zeroes: flags & u32::from(NO_ZEROES) != 0 })
}

/// Negotiates; nothing but encryption where it `needs_tls`.
///
/// # Errors
/// The stream's, and a client that does not speak the protocol.
pub fn negotiate<R: Read, W: Write>(
    input: &mut ReceiveBuffer<R>,
    output: &mut W,
    export: &Export,
    greeting: Greeting,
    needs_tls: bool,
) -> io::Result<Negotiated> {
    let mut talk = Talk { export, needs_tls, agreed: Agreed::default(), reply: Vec::new() };
    for _ in 0..OPTIONS_MAX {
        if !input.wait_for(16)? {
            return Ok(Negotiated::Left);
        }
        let next = talk.option(input, greeting.no_zeroes)?;
        if let Next::Go = next {
            return Ok(Negotiated::Agreed(talk.agreed, talk.reply));
        }
        output.write_all(&talk.reply)?;
        talk.reply.clear();
        match next {
            Next::Ask | Next::Go => {}
            Next::StartTls => return Ok(Negotiated::StartTls),
            Next::Leave => return Ok(Negotiated::Left),
        }
    }
    Err(bad("a client that asks without end"))
}

/// What comes after an option.
enum Next {
    Ask,
    Go,
    StartTls,
    Leave,
}

/// A negotiation in progress.
struct Talk<'a> {
    export: &'a Export,
    needs_tls: bool,
    agreed: Agreed,
    reply: Vec<u8>,
}

impl Talk<'_> {
    fn option<R: Read>(
        &mut self,
        input: &mut ReceiveBuffer<R>,
        no_zeroes: bool,
    ) -> io::Result<Next> {
        if u64::from_be_bytes(input.array()?) != OPTION {
            return Err(bad("an option without its magic number"));
        }
        let option = u32::from_be_bytes(input.array()?);
        let length = u32::from_be_bytes(input.array()?);
        if length > OPTION_MAX {
            if option == OPT_EXPORT_NAME {
                return Err(bad("an export's name that is too long"));
            }
            input.skip(length as usize)?;
            self.answer(option, REP_ERR_TOO_BIG, b"");
            return Ok(Next::Ask);
        }
        if length > 0 && !input.wait_for(length as usize)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let place = input.take(length as usize);
        let asked = input.at(place, length as usize).to_vec();
        input.release();
        self.decide(option, &asked, no_zeroes)
    }

    fn decide(&mut self, option: u32, asked: &[u8], no_zeroes: bool) -> io::Result<Next> {
        if self.needs_tls && option != OPT_ABORT {
            return self.before_tls(option, asked);
        }
        match option {
            OPT_EXPORT_NAME => {
                if !self.export.is_named(asked) {
                    return Err(bad("an export that there is not"));
                }
                self.reply.extend(self.export.capacity().to_be_bytes());
                self.reply.extend(EXPORT_FLAGS.to_be_bytes());
                if !no_zeroes {
                    self.reply.extend([0; 124]);
                }
                return Ok(Next::Go);
            }
            OPT_ABORT => {
                self.answer(option, REP_ACK, b"");
                return Ok(Next::Leave);
            }
            OPT_LIST if asked.is_empty() => self.list(),
            OPT_INFO | OPT_GO => return Ok(self.info(option, asked)),
            OPT_STRUCTURED_REPLY if asked.is_empty() => {
                self.agreed.structured = true;
                self.answer(option, REP_ACK, b"");
            }
            OPT_LIST_META_CONTEXT | OPT_SET_META_CONTEXT => self.contexts(option, asked),
            OPT_LIST | OPT_STRUCTURED_REPLY => {
                self.answer(option, REP_ERR_INVALID, b"it has no data");
            }
            _ => self.answer(option, REP_ERR_UNSUP, b""),
        }
        Ok(Next::Ask)
    }

    fn before_tls(&mut self, option: u32, asked: &[u8]) -> io::Result<Next> {
        match option {
            OPT_START_TLS if asked.is_empty() => {
                self.answer(option, REP_ACK, b"");
                return Ok(Next::StartTls);
            }
            OPT_START_TLS => self.answer(option, REP_ERR_INVALID, b"it has no data"),
            // It has no reply that could say so.
            OPT_EXPORT_NAME => return Err(bad("a client that does not encrypt")),
            _ => self.answer(option, REP_ERR_TLS_REQUIRED, b"this server wants encryption"),
        }
        Ok(Next::Ask)
    }

    fn list(&mut self) {
        let name = self.export.name().as_bytes();
        let entry = [&(name.len() as u32).to_be_bytes(), name].concat();
        self.answer(OPT_LIST, REP_SERVER, &entry);
        self.answer(OPT_LIST, REP_ACK, b"");
    }

    fn info(&mut self, option: u32, asked: &[u8]) -> Next {
        let Some((name, kinds)) = name_and_rest(asked) else {
            self.answer(option, REP_ERR_INVALID, b"");
            return Next::Ask;
        };
        let whole = kinds.len() >= 2
            && kinds.len() - 2 == 2 * usize::from(u16::from_be_bytes([kinds[0], kinds[1]]));
        if !whole {
            self.answer(option, REP_ERR_INVALID, b"");
            return Next::Ask;
        }
        if !self.export.is_named(name) {
            self.answer(option, REP_ERR_UNKNOWN, b"there is no such export");
            return Next::Ask;
        }
        let mut export = INFO_EXPORT.to_be_bytes().to_vec();
        export.extend(self.export.capacity().to_be_bytes());
        export.extend(EXPORT_FLAGS.to_be_bytes());
        self.answer(option, REP_INFO, &export);
        let mut sizes = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
        for size in [512, self.export.preferred_bytes(), TRANSFER_MAX] {
            sizes.extend(size.to_be_bytes());
        }
        self.answer(option, REP_INFO, &sizes);
        for (kind, text) in
            [(INFO_NAME, self.export.name()), (INFO_DESCRIPTION, self.export.description())]
        {
            if kinds[2..].chunks_exact(2).any(|each| each == kind.to_be_bytes()) {
                let told = [&kind.to_be_bytes(), text.as_bytes()].concat();
                self.answer(option, REP_INFO, &told);
            }
        }
        self.answer(option, REP_ACK, b"");
        if option == OPT_GO { Next::Go } else { Next::Ask }
    }

    fn contexts(&mut self, option: u32, asked: &[u8]) {
        let Some((name, queries)) = parse_queries(asked) else {
            self.answer(option, REP_ERR_INVALID, b"");
            return;
        };
        if option == OPT_SET_META_CONTEXT {
            self.agreed.contexts.clear();
            if !self.agreed.structured {
                self.answer(option, REP_ERR_INVALID, b"structured replies come first");
                return;
            }
        }
        if !self.export.is_named(name) {
            self.answer(option, REP_ERR_UNKNOWN, b"there is no such export");
            return;
        }
        let listing = option == OPT_LIST_META_CONTEXT;
        let chosen: Vec<MetaContext> = MetaContext::ALL
            .into_iter()
            .filter(|context| {
                (listing && queries.is_empty())
                    || queries.iter().any(|query| context.is_asked(query, listing))
            })
            .collect();
        for (number, context) in chosen.iter().enumerate() {
            let number = if listing { 0 } else { number as u32 };
            let told = [&number.to_be_bytes(), context.name().as_bytes()].concat();
            self.answer(option, REP_META_CONTEXT, &told);
        }
        if !listing {
            self.agreed.contexts = chosen;
        }
        self.answer(option, REP_ACK, b"");
    }

    fn answer(&mut self, option: u32, kind: u32, told: &[u8]) {
        self.reply.extend(OPTION_REPLY.to_be_bytes());
        self.reply.extend(option.to_be_bytes());
        self.reply.extend(kind.to_be_bytes());
        self.reply.extend((told.len() as u32).to_be_bytes());
        self.reply.extend(told);
    }
}

/// A name with its length before it, and what follows.
fn name_and_rest(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// An export's name and queries of contexts.
fn parse_queries(bytes: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (name, rest) = name_and_rest(bytes)?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut queries = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let (query, after) = name_and_rest(rest)?;
        queries.push(query);
        rest = after;
    }
    rest.is_empty().then_some((name, queries))
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
