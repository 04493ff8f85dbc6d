//! `Proof`: how a host proves on a connection that it knows the drive's secret.
//!
//! Negotiate, challenge, reply, success: DH-HMAC-CHAP of the Base Specification 2.0 with SHA-256
//! and without Diffie-Hellman. Differs from other drives: the drive proves nothing of itself.

use ring::rand::{SecureRandom, SystemRandom};

use super::secret::{Challenge, HASH_BYTES, Secret};

/// Kinds of message: common ones, and those of DH-HMAC-CHAP.
const COMMON: u8 = 0;
const CHAP: u8 = 1;
const NEGOTIATE: u8 = 0x00;
const CHALLENGE: u8 = 0x01;
const REPLY: u8 = 0x02;
const SUCCESS: u8 = 0x03;
const HOST_FAILS: u8 = 0xf0;
const FAILS: u8 = 0xf1;
/// The protocol, its hash and its group: SHA-256, none.
const PROTOCOL: u8 = 1;
const SHA_256: u8 = 1;
const NO_GROUP: u8 = 0;
/// A header, and what a negotiation says of a protocol, have so many bytes.
const HEADER: usize = 8;
const OFFERED: usize = 64;
/// Hashes that a host can offer, and groups behind them.
const IDS: usize = 30;
/// A challenge's and a reply's values begin here.
const VALUE: usize = 16;

/// Why a proof failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Failed = 1,
    NoProtocol = 2,
    Concatenation = 3,
    Hash = 4,
    Group = 5,
    Payload = 6,
    SendBuffer = 7,
}

/// What is told when the host asks.
#[derive(Debug)]
enum Stage {
    Nothing,
    Asks(Challenge),
    Succeeds(u16),
    Fails(u16, Reason),
}

/// What a message of a host means for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The proof goes on.
    More,
    /// The host has proved that it knows the secret.
    Proved,
    /// It has not; the reason can be asked for.
    Failed,
}

/// A host's proof on one connection.
#[derive(Debug)]
pub struct Proof {
    host: Vec<u8>,
    stage: Stage,
    pub is_given: bool,
}

impl Proof {
    /// One that has not begun, of a host of this name.
    pub fn new(host: &[u8]) -> Self {
        Self { host: host.into(), stage: Stage::Nothing, is_given: false }
    }

    /// Takes a message of the host.
    pub fn hear(&mut self, message: &[u8], secret: &Secret, drive: &[u8]) -> Heard {
        let transaction = message.get(4..6).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        let asked = match std::mem::replace(&mut self.stage, Stage::Nothing) {
            Stage::Asks(challenge) => Some(challenge),
            _ => None,
        };
        let heard = match (message.get(..2), asked) {
            (Some(&[COMMON, NEGOTIATE]), _) => negotiated(message).map(|()| ask(transaction)),
            (Some(&[CHAP, REPLY]), Some(asked)) => answer(message, &asked).and_then(|answer| {
                let is_proved = secret.proves(&self.host, drive, &asked, answer);
                if is_proved { Ok(Stage::Succeeds(transaction)) } else { Err(Reason::Failed) }
            }),
            (Some(&[COMMON, HOST_FAILS]), _) => Ok(Stage::Nothing),
            _ => Err(Reason::SendBuffer),
        };
        self.stage = heard.unwrap_or_else(|reason| Stage::Fails(transaction, reason));
        let was_given = self.is_given;
        self.is_given = match self.stage {
            Stage::Succeeds(_) => true,
            // Who proves it again has proved it meanwhile.
            Stage::Asks(_) => self.is_given,
            Stage::Nothing | Stage::Fails(..) => false,
        };
        match self.stage {
            Stage::Succeeds(_) => Heard::Proved,
            Stage::Fails(..) => Heard::Failed,
            // Who has proved it before and gives up now has lost its queue.
            Stage::Nothing if was_given => Heard::Failed,
            Stage::Nothing | Stage::Asks(_) => Heard::More,
        }
    }

    /// The next message for the host, if there is one, and whether it is the last.
    pub fn tell(&mut self) -> Option<(Vec<u8>, bool)> {
        Some(match &self.stage {
            Stage::Nothing => return None,
            Stage::Asks(challenge) => (challenge_of(challenge), false),
            Stage::Succeeds(transaction) => {
                let mut message = header(CHAP, SUCCESS, *transaction, HASH_BYTES as u8);
                message.resize(VALUE, 0);
                self.stage = Stage::Nothing;
                (message, false)
            }
            Stage::Fails(transaction, reason) => {
                let mut message = header(COMMON, FAILS, *transaction, 1);
                message[7] = *reason as u8;
                self.stage = Stage::Nothing;
                (message, true)
            }
        })
    }
}

fn header(kind: u8, message: u8, transaction: u16, word: u8) -> Vec<u8> {
    let [low, high] = transaction.to_le_bytes();
    vec![kind, message, 0, 0, low, high, word, 0]
}

/// Whether a host offers what the drive takes.
fn negotiated(message: &[u8]) -> Result<(), Reason> {
    let head = message.first_chunk::<HEADER>().ok_or(Reason::Payload)?;
    if head[6] != 0 {
        return Err(Reason::Concatenation);
    }
    let count = usize::from(head[7]);
    let offered = message[HEADER..].get(..count * OFFERED).ok_or(Reason::Payload)?;
    let mut ours = offered.chunks_exact(OFFERED).filter(|each| each[0] == PROTOCOL);
    let ours = ours.next().ok_or(Reason::NoProtocol)?;
    let (hashes, groups) = (usize::from(ours[2]), usize::from(ours[3]));
    if hashes > IDS || groups > IDS {
        return Err(Reason::Payload);
    }
    if !ours[4..4 + hashes].contains(&SHA_256) {
        return Err(Reason::Hash);
    }
    if !ours[4 + IDS..4 + IDS + groups].contains(&NO_GROUP) {
        return Err(Reason::Group);
    }
    Ok(())
}

/// A challenge that nobody has heard before.
fn ask(transaction: u16) -> Stage {
    let (mut value, mut sequence) = ([0; HASH_BYTES], [0; 4]);
    let random = SystemRandom::new();
    random.fill(&mut value).and_then(|()| random.fill(&mut sequence)).expect("chance is there");
    // Zero would say that there is no sequence.
    let sequence = u32::from_le_bytes(sequence).max(1);
    Stage::Asks(Challenge { transaction, sequence, value })
}

fn challenge_of(challenge: &Challenge) -> Vec<u8> {
    let mut message = header(CHAP, CHALLENGE, challenge.transaction, HASH_BYTES as u8);
    message.extend([SHA_256, NO_GROUP, 0, 0]);
    message.extend(challenge.sequence.to_le_bytes());
    message.extend(challenge.value);
    message
}

/// The answer in a reply, which must ask nothing of the drive.
fn answer<'a>(message: &'a [u8], asked: &Challenge) -> Result<&'a [u8], Reason> {
    let head = message.first_chunk::<VALUE>().ok_or(Reason::Payload)?;
    if u16::from_le_bytes([head[4], head[5]]) != asked.transaction {
        return Err(Reason::SendBuffer);
    }
    if usize::from(head[6]) != HASH_BYTES || head[10..12] != [0, 0] {
        return Err(Reason::Payload);
    }
    if head[8] != 0 {
        return Err(Reason::Failed);
    }
    // Behind it there is room for what a host would ask.
    let values = message[VALUE..].get(..2 * HASH_BYTES).ok_or(Reason::Payload)?;
    Ok(&values[..HASH_BYTES])
}
