//! `Authentication`: DH-HMAC-CHAP on one queue; the host proves that it knows the key.
//!
//! Source: the Base Specification 2.0, section 8.13.5, with its names. SHA-256, and the NULL group
//! (no Diffie-Hellman). Differs from other controllers: a host cannot authenticate the controller.

use ring::rand::{SecureRandom, SystemRandom};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::key::{Challenge, DhchapKey, HASH_BYTES};
use ssdlab_nvme::layout;

/// `AUTH_TYPE`: common messages, DH-HMAC-CHAP messages.
const COMMON: u8 = 0x00;
const DHCHAP: u8 = 0x01;
/// `AUTH_ID` of common messages.
const AUTH_NEGOTIATE: u8 = 0x00;
const AUTH_FAILURE2: u8 = 0xf0;
const AUTH_FAILURE1: u8 = 0xf1;
/// `AUTH_ID` of DH-HMAC-CHAP messages.
const DHCHAP_CHALLENGE: u8 = 0x01;
const DHCHAP_REPLY: u8 = 0x02;
const DHCHAP_SUCCESS1: u8 = 0x03;
/// `AuthID` of a protocol descriptor.
const DH_HMAC_CHAP: u8 = 0x01;
/// `HashID`.
const SHA_256: u8 = 0x01;
/// `DHgID`: the NULL group.
const DH_NULL: u8 = 0x00;
/// Reason code of a failure.
const AUTHENTICATION_FAILURE: u8 = 0x01;
/// Entries of each of the two lists in a protocol descriptor.
const IDS_MAX: usize = 30;

/// Reason code explanation of `AUTH_Failure1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Explanation {
    AuthenticationFailed = 1,
    ProtocolNotUsable = 2,
    SecureChannelConcatenationMismatch = 3,
    HashNotUsable = 4,
    DhGroupNotUsable = 5,
    IncorrectPayload = 6,
    IncorrectMessage = 7,
}

layout! {
    /// The start of each message.
    struct Header[6] {
        auth_type: u8,
        auth_id: u8,
        reserved: U16,
        /// `T_ID`, the transaction.
        t_id: U16,
    }

    /// `AUTH_Negotiate`; `napd` protocol descriptors follow.
    struct Negotiate[8] {
        header: Header,
        /// Secure channel concatenation.
        sc_c: u8,
        napd: u8,
    }

    /// A protocol that a host offers.
    struct ProtocolDescriptor[64] {
        auth_id: u8,
        reserved: u8,
        halen: u8,
        dhlen: u8,
        hash_ids: [u8; IDS_MAX],
        dhg_ids: [u8; IDS_MAX],
    }

    /// DH-HMAC-CHAP_Challenge with its challenge value.
    struct ChallengeMessage[48] {
        header: Header,
        /// HL: bytes of the hash.
        hl: u8,
        reserved: u8,
        hash_id: u8,
        dhg_id: u8,
        dhvlen: U16,
        seqnum: U32,
        cval: [u8; HASH_BYTES],
    }

    /// DH-HMAC-CHAP_Reply; its response value and room for the host's challenge value follow.
    struct Reply[16] {
        header: Header,
        hl: u8,
        reserved: u8,
        /// Whether the host challenges the controller.
        cvalid: u8,
        reserved_2: u8,
        dhvlen: U16,
        seqnum: U32,
    }

    /// DH-HMAC-CHAP_Success1.
    struct Success1[16] {
        header: Header,
        hl: u8,
        reserved: u8,
        rvalid: u8,
        reserved_2: [u8; 7],
    }

    struct Failure1[8] {
        header: Header,
        rescode: u8,
        rescode_exp: u8,
    }
}

/// The message that the host receives next.
#[derive(Debug)]
enum State {
    None,
    Challenge(Challenge),
    Success1(u16),
    Failure1(u16, Explanation),
}

/// What a message means for the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It continues with another message.
    Continues,
    /// The host knows the key.
    Authenticated,
    /// It does not; it may receive the reason.
    Failed,
}

/// The authentication of a host on one queue.
#[derive(Debug)]
pub struct Authentication {
    hostnqn: Vec<u8>,
    state: State,
    pub is_authenticated: bool,
}

impl Authentication {
    pub fn new(hostnqn: &[u8]) -> Self {
        Self { hostnqn: hostnqn.into(), state: State::None, is_authenticated: false }
    }

    /// Handles a message of Authentication Send.
    pub fn send(&mut self, message: &[u8], key: &DhchapKey, subnqn: &[u8]) -> Progress {
        let t_id = message.get(4..6).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        let challenge = match std::mem::replace(&mut self.state, State::None) {
            State::Challenge(challenge) => Some(challenge),
            _ => None,
        };
        let next = match (message.get(..2), challenge) {
            (Some(&[COMMON, AUTH_NEGOTIATE]), _) => {
                check_negotiate(message).map(|()| State::Challenge(new_challenge(t_id)))
            }
            (Some(&[DHCHAP, DHCHAP_REPLY]), Some(challenge)) => response(message, &challenge)
                .and_then(|response| {
                    key.verify(&self.hostnqn, subnqn, &challenge, response)
                        .then_some(State::Success1(t_id))
                        .ok_or(Explanation::AuthenticationFailed)
                }),
            (Some(&[COMMON, AUTH_FAILURE2]), _) => Ok(State::None),
            _ => Err(Explanation::IncorrectMessage),
        };
        self.state = next.unwrap_or_else(|explanation| State::Failure1(t_id, explanation));
        let was_authenticated = self.is_authenticated;
        // During reauthentication the host stays authenticated.
        self.is_authenticated = match self.state {
            State::Success1(_) => true,
            State::Challenge(_) => was_authenticated,
            State::None | State::Failure1(..) => false,
        };
        match self.state {
            State::Success1(_) => Progress::Authenticated,
            State::Failure1(..) => Progress::Failed,
            // The host gives up a reauthentication.
            State::None if was_authenticated => Progress::Failed,
            State::None | State::Challenge(_) => Progress::Continues,
        }
    }

    /// The message for Authentication Receive, if the host has one to receive, and whether the
    /// connection ends with it.
    pub fn receive(&mut self) -> Option<(Vec<u8>, bool)> {
        let (message, is_last) = match &self.state {
            State::None => return None,
            // The host may receive it again.
            State::Challenge(challenge) => {
                let message = ChallengeMessage {
                    header: header(DHCHAP, DHCHAP_CHALLENGE, challenge.t_id),
                    hl: HASH_BYTES as u8,
                    hash_id: SHA_256,
                    dhg_id: DH_NULL,
                    seqnum: challenge.seqnum.into(),
                    cval: challenge.cval,
                    ..ChallengeMessage::new_zeroed()
                };
                return Some((message.as_bytes().into(), false));
            }
            State::Success1(t_id) => {
                let header = header(DHCHAP, DHCHAP_SUCCESS1, *t_id);
                let hl = HASH_BYTES as u8;
                (Success1 { header, hl, ..Success1::new_zeroed() }.as_bytes().into(), false)
            }
            State::Failure1(t_id, explanation) => {
                let header = header(COMMON, AUTH_FAILURE1, *t_id);
                let (rescode, rescode_exp) = (AUTHENTICATION_FAILURE, *explanation as u8);
                (Failure1 { header, rescode, rescode_exp }.as_bytes().into(), true)
            }
        };
        self.state = State::None;
        Some((message, is_last))
    }
}

fn header(auth_type: u8, auth_id: u8, t_id: u16) -> Header {
    Header { auth_type, auth_id, reserved: 0.into(), t_id: t_id.into() }
}

/// Checks that a host offers DH-HMAC-CHAP with SHA-256 and the NULL group.
fn check_negotiate(message: &[u8]) -> Result<(), Explanation> {
    let (negotiate, rest) =
        Negotiate::ref_from_prefix(message).map_err(|_| Explanation::IncorrectPayload)?;
    if negotiate.sc_c != 0 {
        return Err(Explanation::SecureChannelConcatenationMismatch);
    }
    let descriptors =
        <[ProtocolDescriptor]>::ref_from_prefix_with_elems(rest, negotiate.napd.into());
    let (descriptors, _) = descriptors.map_err(|_| Explanation::IncorrectPayload)?;
    let mut descriptors = descriptors.iter();
    let dhchap = descriptors.find(|descriptor| descriptor.auth_id == DH_HMAC_CHAP);
    let dhchap = dhchap.ok_or(Explanation::ProtocolNotUsable)?;
    let hash_ids = dhchap.hash_ids.get(..dhchap.halen.into());
    let dhg_ids = dhchap.dhg_ids.get(..dhchap.dhlen.into());
    let (Some(hash_ids), Some(dhg_ids)) = (hash_ids, dhg_ids) else {
        return Err(Explanation::IncorrectPayload);
    };
    if !hash_ids.contains(&SHA_256) {
        return Err(Explanation::HashNotUsable);
    }
    if !dhg_ids.contains(&DH_NULL) {
        return Err(Explanation::DhGroupNotUsable);
    }
    Ok(())
}

fn new_challenge(t_id: u16) -> Challenge {
    let (mut cval, mut seqnum) = ([0; HASH_BYTES], [0; 4]);
    let random = SystemRandom::new();
    let filled = random.fill(&mut cval).and_then(|()| random.fill(&mut seqnum));
    filled.expect("the system has a random number generator");
    // Zero means that there is no sequence number.
    Challenge { t_id, seqnum: u32::from_le_bytes(seqnum).max(1), cval }
}

/// The response value of a DH-HMAC-CHAP_Reply.
fn response<'a>(message: &'a [u8], challenge: &Challenge) -> Result<&'a [u8], Explanation> {
    let (reply, values) =
        Reply::ref_from_prefix(message).map_err(|_| Explanation::IncorrectPayload)?;
    if reply.header.t_id.get() != challenge.t_id {
        return Err(Explanation::IncorrectMessage);
    }
    if usize::from(reply.hl) != HASH_BYTES || reply.dhvlen.get() != 0 {
        return Err(Explanation::IncorrectPayload);
    }
    if reply.cvalid != 0 {
        return Err(Explanation::AuthenticationFailed);
    }
    // The response value, then room for the host's challenge value.
    let values = values.get(..2 * HASH_BYTES).ok_or(Explanation::IncorrectPayload)?;
    Ok(&values[..HASH_BYTES])
}
