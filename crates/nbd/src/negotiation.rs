//! The handshake: a client negotiates options until it chooses the export.

use std::io::{self, Write};
use std::mem::take;

use super::protocol::{
    EXPORT_FLAGS, IHAVEOPT, NBD_FLAG_FIXED_NEWSTYLE, NBD_FLAG_NO_ZEROES, NBD_INFO_BLOCK_SIZE,
    NBD_INFO_DESCRIPTION, NBD_INFO_EXPORT, NBD_INFO_NAME, NBD_OPT_ABORT, NBD_OPT_EXPORT_NAME,
    NBD_OPT_GO, NBD_OPT_INFO, NBD_OPT_LIST, NBD_OPT_LIST_META_CONTEXT, NBD_OPT_SET_META_CONTEXT,
    NBD_OPT_STARTTLS, NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK, NBD_REP_ERR_INVALID,
    NBD_REP_ERR_TLS_REQD, NBD_REP_ERR_TOO_BIG, NBD_REP_ERR_UNKNOWN, NBD_REP_ERR_UNSUP,
    NBD_REP_INFO, NBD_REP_META_CONTEXT, NBD_REP_SERVER, NBDMAGIC, OPTION_REPLY_MAGIC, invalid,
};
use crate::export::{Export, MetaContext};
use ssdlab_engine::TRANSFER_MAX;
use ssdlab_wire::{Connection, Input};

/// Bytes of data of an option; longer options are refused.
const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Maximum number of options before a client chooses the export.
const OPTIONS_MAX: usize = 1000;

/// The options that a client has negotiated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    pub structured_replies: bool,
    /// The metadata contexts; the index is the ID in replies.
    pub contexts: Vec<MetaContext>,
}

/// How a negotiation ended.
#[derive(Debug)]
pub enum Outcome {
    /// The transmission phase begins, after this last reply has been sent.
    Transmission(Negotiated, Vec<u8>),
    /// The client negotiates again, over TLS.
    StartTls,
    /// The client ended the connection.
    Aborted,
}

/// Exchanges handshake flags; returns whether the client's include `NBD_FLAG_C_NO_ZEROES`.
pub fn exchange_flags(input: &mut Input, output: &mut Connection) -> io::Result<bool> {
    let known = NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES;
    let mut handshake = Vec::new();
    handshake.extend(NBDMAGIC.to_be_bytes());
    handshake.extend(IHAVEOPT.to_be_bytes());
    handshake.extend(known.to_be_bytes());
    output.write_all(&handshake)?;
    let flags = u32::from_be_bytes(input.read_array()?);
    if flags & !u32::from(known) != 0 || flags & u32::from(NBD_FLAG_FIXED_NEWSTYLE) == 0 {
        return Err(invalid("the client does not support fixed newstyle negotiation"));
    }
    Ok(flags & u32::from(NBD_FLAG_NO_ZEROES) != 0)
}

/// Negotiates options; if the client `needs_tls`, only `NBD_OPT_STARTTLS`.
pub fn negotiate(
    input: &mut Input,
    output: &mut Connection,
    export: &Export,
    no_zeroes: bool,
    needs_tls: bool,
) -> io::Result<Outcome> {
    let (negotiated, reply) = Default::default();
    let mut negotiation = Negotiation { export, no_zeroes, needs_tls, negotiated, reply };
    for _ in 0..OPTIONS_MAX {
        if !input.wait_for(16)? {
            return Ok(Outcome::Aborted);
        }
        let outcome = negotiation.option(input)?;
        output.write_all(&negotiation.reply)?;
        negotiation.reply.clear();
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
    }
    Err(invalid("the client sent too many options"))
}

struct Negotiation<'a> {
    export: &'a Export,
    no_zeroes: bool,
    needs_tls: bool,
    negotiated: Negotiated,
    reply: Vec<u8>,
}

impl Negotiation<'_> {
    /// Receives an option and replies to it; returns the outcome if it was the last.
    fn option(&mut self, input: &mut Input) -> io::Result<Option<Outcome>> {
        if u64::from_be_bytes(input.read_array()?) != IHAVEOPT {
            return Err(invalid("the option does not start with IHAVEOPT"));
        }
        let option = u32::from_be_bytes(input.read_array()?);
        let length = u32::from_be_bytes(input.read_array()?);
        if option == NBD_OPT_SET_META_CONTEXT {
            // It replaces the contexts that were set before, even if it fails.
            self.negotiated.contexts.clear();
        }
        if length > OPTION_BYTES_MAX {
            if option == NBD_OPT_EXPORT_NAME {
                return Err(invalid("the name of the export is too long"));
            }
            input.discard(length as usize)?;
            self.reply(option, NBD_REP_ERR_TOO_BIG, b"");
            return Ok(None);
        }
        if length > 0 && !input.wait_for(length as usize)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let place = input.consume(length as usize);
        let data = input.consumed(place, length as usize).to_vec();
        input.release();
        self.perform(option, &data)
    }

    fn perform(&mut self, option: u32, data: &[u8]) -> io::Result<Option<Outcome>> {
        if self.needs_tls && option != NBD_OPT_ABORT {
            return self.before_tls(option, data);
        }
        match option {
            NBD_OPT_EXPORT_NAME => {
                if !self.export.is_named(data) {
                    return Err(invalid("the client chose an unknown export"));
                }
                self.reply.extend(self.export.capacity.to_be_bytes());
                self.reply.extend(EXPORT_FLAGS.to_be_bytes());
                if !self.no_zeroes {
                    self.reply.extend([0; 124]);
                }
                return Ok(Some(self.transmission()));
            }
            NBD_OPT_ABORT => {
                self.reply(option, NBD_REP_ACK, b"");
                return Ok(Some(Outcome::Aborted));
            }
            NBD_OPT_LIST if data.is_empty() => self.list(),
            NBD_OPT_INFO | NBD_OPT_GO => return Ok(self.info(option, data)),
            NBD_OPT_STRUCTURED_REPLY if data.is_empty() => {
                self.negotiated.structured_replies = true;
                self.reply(option, NBD_REP_ACK, b"");
            }
            NBD_OPT_LIST_META_CONTEXT | NBD_OPT_SET_META_CONTEXT => self.contexts(option, data),
            NBD_OPT_LIST | NBD_OPT_STRUCTURED_REPLY => {
                self.reply(option, NBD_REP_ERR_INVALID, b"the option takes no data");
            }
            _ => self.reply(option, NBD_REP_ERR_UNSUP, b""),
        }
        Ok(None)
    }

    fn before_tls(&mut self, option: u32, data: &[u8]) -> io::Result<Option<Outcome>> {
        match option {
            NBD_OPT_STARTTLS if data.is_empty() => {
                self.reply(option, NBD_REP_ACK, b"");
                return Ok(Some(Outcome::StartTls));
            }
            NBD_OPT_STARTTLS => {
                self.reply(option, NBD_REP_ERR_INVALID, b"the option takes no data");
            }
            // This option has no error reply.
            NBD_OPT_EXPORT_NAME => return Err(invalid("the client chose the export without TLS")),
            _ => self.reply(option, NBD_REP_ERR_TLS_REQD, b"the server requires TLS"),
        }
        Ok(None)
    }

    /// Ends the negotiation; the caller sends the reply.
    fn transmission(&mut self) -> Outcome {
        Outcome::Transmission(take(&mut self.negotiated), take(&mut self.reply))
    }

    fn list(&mut self) {
        let name = self.export.name.as_bytes();
        let entry = [&(name.len() as u32).to_be_bytes(), name].concat();
        self.reply(NBD_OPT_LIST, NBD_REP_SERVER, &entry);
        self.reply(NBD_OPT_LIST, NBD_REP_ACK, b"");
    }

    fn info(&mut self, option: u32, data: &[u8]) -> Option<Outcome> {
        let Some((name, infos)) = name_and_rest(data) else {
            self.reply(option, NBD_REP_ERR_INVALID, b"");
            return None;
        };
        let is_valid = infos.len() >= 2
            && infos.len() - 2 == 2 * usize::from(u16::from_be_bytes([infos[0], infos[1]]));
        if !is_valid {
            self.reply(option, NBD_REP_ERR_INVALID, b"");
            return None;
        }
        if !self.export.is_named(name) {
            self.reply(option, NBD_REP_ERR_UNKNOWN, b"no export has this name");
            return None;
        }
        let mut export = NBD_INFO_EXPORT.to_be_bytes().to_vec();
        export.extend(self.export.capacity.to_be_bytes());
        export.extend(EXPORT_FLAGS.to_be_bytes());
        self.reply(option, NBD_REP_INFO, &export);
        let mut sizes = NBD_INFO_BLOCK_SIZE.to_be_bytes().to_vec();
        for size in [512, self.export.preferred_bytes, TRANSFER_MAX] {
            sizes.extend(size.to_be_bytes());
        }
        self.reply(option, NBD_REP_INFO, &sizes);
        let Export { name, description, .. } = self.export;
        for (info, text) in [(NBD_INFO_NAME, name), (NBD_INFO_DESCRIPTION, description)] {
            if infos[2..].chunks_exact(2).any(|each| each == info.to_be_bytes()) {
                let text = [&info.to_be_bytes(), text.as_bytes()].concat();
                self.reply(option, NBD_REP_INFO, &text);
            }
        }
        self.reply(option, NBD_REP_ACK, b"");
        (option == NBD_OPT_GO).then(|| self.transmission())
    }

    fn contexts(&mut self, option: u32, data: &[u8]) {
        let Some((name, queries)) = parse_queries(data) else {
            self.reply(option, NBD_REP_ERR_INVALID, b"");
            return;
        };
        if option == NBD_OPT_SET_META_CONTEXT && !self.negotiated.structured_replies {
            self.reply(option, NBD_REP_ERR_INVALID, b"negotiate structured replies first");
            return;
        }
        if !self.export.is_named(name) {
            self.reply(option, NBD_REP_ERR_UNKNOWN, b"no export has this name");
            return;
        }
        let listing = option == NBD_OPT_LIST_META_CONTEXT;
        let chosen: Vec<MetaContext> = MetaContext::ALL
            .into_iter()
            .filter(|context| {
                (listing && queries.is_empty())
                    || queries.iter().any(|query| context.matches(query, listing))
            })
            .collect();
        for (number, context) in chosen.iter().enumerate() {
            let number = if listing { 0 } else { number as u32 };
            let text = [&number.to_be_bytes(), context.name().as_bytes()].concat();
            self.reply(option, NBD_REP_META_CONTEXT, &text);
        }
        if !listing {
            self.negotiated.contexts = chosen;
        }
        self.reply(option, NBD_REP_ACK, b"");
    }

    fn reply(&mut self, option: u32, reply_type: u32, data: &[u8]) {
        self.reply.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        self.reply.extend(option.to_be_bytes());
        self.reply.extend(reply_type.to_be_bytes());
        self.reply.extend((data.len() as u32).to_be_bytes());
        self.reply.extend(data);
    }
}

/// Splits off a name, which follows its length.
fn name_and_rest(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// The export name and the queries of `NBD_OPT_SET_META_CONTEXT`.
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
