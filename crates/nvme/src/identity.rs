//! `Identity`: names and identifiers of a drive, the same whenever the same drive is served.

use ssdlab_time::Random;

/// NQN of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Names and identifiers of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Model number (MN).
    pub model: String,
    /// Serial number (SN): 20 characters.
    pub serial: String,
    /// NQN of the NVM subsystem (SUBNQN).
    pub subnqn: String,
    /// UUID and NGUID of the namespace.
    pub uuid: [u8; 16],
}

impl Identity {
    /// The identity of a drive of this model; `origin` distinguishes drives of the same model.
    pub fn new(model: &str, origin: &str) -> Self {
        let text = model.bytes().chain([0]).chain(origin.bytes());
        let mut random = Random::new(text.fold(0xcbf2_9ce4_8422_2325, fnv_1a), "identity");
        let serial = format!("SSDLAB{:014X}", random.next_u64() >> 8);
        let subsystem = random_uuid(&mut random);
        let subnqn = format!("nqn.2014-08.org.nvmexpress:uuid:{}", hyphenated(&subsystem));
        Self { model: model.into(), serial, subnqn, uuid: random_uuid(&mut random) }
    }
}

/// One step of the FNV-1a hash.
fn fnv_1a(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// A random UUID (version 4).
fn random_uuid(random: &mut Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// The text form of a UUID.
fn hyphenated(bytes: &[u8; 16]) -> String {
    let hex = |part: &[u8]| -> String {
        let digit = |byte: u8| char::from_digit(byte.into(), 16).expect("four bits");
        part.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    };
    [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-")
}
