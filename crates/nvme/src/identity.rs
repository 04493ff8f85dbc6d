//! `Identity`: names and identifiers of a drive, the same whenever the same drive is served.

use ssdlab_time::{Random, fnv_1a};

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
        let mut random = Random::new(fnv_1a(text), "identity");
        let serial = format!("SSDLAB{:014X}", random.next_u64() >> 8);
        let subsystem = random_uuid(&mut random);
        let subnqn = format!("nqn.2014-08.org.nvmexpress:uuid:{}", hyphenated(subsystem));
        Self { model: model.into(), serial, subnqn, uuid: random_uuid(&mut random) }
    }
}

/// A random UUID (version 4).
fn random_uuid(random: &mut Random) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

fn hyphenated(uuid: [u8; 16]) -> String {
    let number = u128::from_be_bytes(uuid);
    let (first, last) = (number >> 96, number & 0xffff_ffff_ffff);
    let group = |shift: u32| number >> shift & 0xffff;
    format!("{first:08x}-{:04x}-{:04x}-{:04x}-{last:012x}", group(80), group(64), group(48))
}
