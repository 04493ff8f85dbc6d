//! `Identity`: the names of a drive, the same whenever the same drive is served.

use ssdlab_time::Random;

/// The name of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// What a drive is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// As on its label.
    pub model: String,
    /// 20 characters.
    pub serial: String,
    /// What hosts connect to.
    pub subnqn: String,
    /// The namespace's identifier.
    pub namespace: [u8; 16],
}

impl Identity {
    /// That of a model; another one for another `origin`: what tells this drive from others.
    pub fn new(model: &str, origin: &str) -> Self {
        let seed = model.bytes().chain([0]).chain(origin.bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
        let mut random = Random::new(seed, "identity");
        let serial = format!("SSDLAB{:014X}", random.next_u64() >> 8);
        let (mut subsystem, mut namespace) = ([0; 16], [0; 16]);
        random.fill(&mut subsystem);
        random.fill(&mut namespace);
        let subnqn = format!("nqn.2014-08.org.nvmexpress:uuid:{}", uuid(&mut subsystem));
        uuid(&mut namespace);
        Self { model: model.into(), serial, subnqn, namespace }
    }
}

/// One step of the FNV-1a hash.
fn mix(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Makes random bytes a UUID (version 4), and writes it down.
fn uuid(bytes: &mut [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |part: &[u8]| -> String {
        let digit = |byte: u8| char::from_digit(byte.into(), 16).expect("four bits");
        part.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    };
    [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-")
}
