//! Protocol data units as they stand on the wire: kinds, headers, lengths; numbers little-endian.

/// Kinds of unit.
pub const CONNECTION_REQUEST: u8 = 0x00;
pub const CONNECTION_RESPONSE: u8 = 0x01;
pub const HOST_TERMINATES: u8 = 0x02;
pub const DRIVE_TERMINATES: u8 = 0x03;
pub const COMMAND: u8 = 0x04;
pub const RESPONSE: u8 = 0x05;
pub const DATA_SENT: u8 = 0x06;
pub const DATA_RECEIVED: u8 = 0x07;
pub const READY: u8 = 0x09;

/// Flags of a unit: it has digests; it is the last of its data; the command ended well with it.
pub const HEADER_DIGEST: u8 = 1;
pub const DATA_DIGEST: u8 = 1 << 1;
pub const LAST: u8 = 1 << 2;
pub const SUCCESS: u8 = 1 << 3;

/// What every unit begins with.
pub const COMMON_BYTES: usize = 8;
/// The header of a connection's first units.
pub const CONNECTION_BYTES: usize = 128;
/// The header of a command: the submission stands in it.
pub const COMMAND_BYTES: usize = 72;
/// The headers of data, of a response, of a request for data and of a termination.
pub const SHORT_BYTES: usize = 24;
pub const DIGEST_BYTES: usize = 4;

/// The longest piece of data that a host may send.
pub const DATA_MAX: usize = 256 << 10;

/// Why a connection is terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A field of a header is wrong; where it stands.
    Header(u32),
    /// A unit that is not expected now.
    Sequence,
    /// The header's digest; what was received.
    HeaderDigest(u32),
    /// Data that nobody asked for; where its offset stands.
    OutOfRange(u32),
    /// More data than may be sent at once.
    TooLong,
    /// There is no memory for the data.
    NoMemory,
    /// What the host wants is not had here; where it says so.
    Unsupported(u32),
}

impl Reason {
    /// The fatal error status and its information.
    pub fn told(self) -> (u16, u32) {
        match self {
            Self::Header(at) => (1, at),
            Self::Sequence => (2, 0),
            Self::HeaderDigest(received) => (3, received),
            Self::OutOfRange(at) => (4, at),
            Self::TooLong | Self::NoMemory => (5, 0),
            Self::Unsupported(at) => (6, at),
        }
    }
}

/// What a unit says of itself first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    pub kind: u8,
    pub flags: u8,
    /// Bytes of its header.
    pub header: usize,
    /// Where its data begins; 0 where there is none.
    pub data_at: usize,
    /// Bytes of all of it.
    pub whole: usize,
}

impl Common {
    /// Reads it.
    pub fn parse(bytes: &[u8]) -> Self {
        Self {
            kind: bytes[0],
            flags: bytes[1],
            header: bytes[2].into(),
            data_at: bytes[3].into(),
            whole: long(bytes, 4) as usize,
        }
    }

    /// Bytes of its header with the digest.
    pub fn header_whole(&self) -> usize {
        self.header + self.digest(HEADER_DIGEST)
    }

    /// Bytes of its data, and where they stand.
    pub fn data(&self) -> (usize, usize) {
        let end = self.whole - self.digest(DATA_DIGEST);
        if self.data_at == 0 { (end, 0) } else { (self.data_at, end - self.data_at) }
    }

    /// Checks its lengths against each other; `digests` as were agreed on.
    ///
    /// # Errors
    /// Which field is wrong.
    pub fn check(&self, digests: u8, data_max: usize) -> Result<(), Reason> {
        let header = match self.kind {
            COMMAND => COMMAND_BYTES,
            CONNECTION_REQUEST => CONNECTION_BYTES,
            HOST_TERMINATES | DATA_SENT => SHORT_BYTES,
            _ => return Err(Reason::Header(0)),
        };
        if self.header != header {
            return Err(Reason::Header(2));
        }
        let has_digests = matches!(self.kind, COMMAND | DATA_SENT);
        // A unit without data has no digest of it.
        let wanted = if !has_digests {
            0
        } else if self.data_at == 0 {
            digests & HEADER_DIGEST
        } else {
            digests
        };
        let given = self.flags & (HEADER_DIGEST | DATA_DIGEST);
        if given != wanted {
            return Err(Reason::Header(1));
        }
        let least = self.header_whole().max(self.data_at) + self.digest(DATA_DIGEST);
        let begins = self.data_at == 0 || self.data_at >= self.header_whole();
        if !begins {
            return Err(Reason::Header(3));
        }
        // What terminates a connection repeats a header.
        let most = if self.kind == HOST_TERMINATES { SHORT_BYTES + 128 } else { least + data_max };
        let exact = self.data_at == 0 && self.kind != HOST_TERMINATES;
        if self.whole < least || self.whole > most || exact && self.whole != least {
            return Err(Reason::Header(4));
        }
        Ok(())
    }

    fn digest(&self, flag: u8) -> usize {
        let without_data = flag == DATA_DIGEST && self.data_at == 0;
        if self.flags & flag != 0 && !without_data { DIGEST_BYTES } else { 0 }
    }
}

/// The number of two bytes at a place.
pub fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The number of four bytes at a place.
pub fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
