//! `Submission`: a command as hosts send it, and `Completion`: what they hear of it.

use super::status::Status;
use super::{admin, io};

/// A submission queue entry: 64 bytes, numbers little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission([u8; 64]);

/// Which way a command's data goes, by the lowest bits of its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// There is none.
    None,
    /// From the host.
    Sent,
    /// To the host.
    Received,
    /// Both: no command here does that.
    Both,
}

impl Submission {
    /// One of these bytes.
    pub fn new(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// What it asks.
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Fused operation and kind of data pointer.
    pub fn flags(&self) -> u8 {
        self.0[1]
    }

    /// By which its completion is told from others.
    pub fn id(&self) -> u16 {
        u16::from_le_bytes([self.0[2], self.0[3]])
    }

    /// The namespace.
    pub fn namespace(&self) -> u32 {
        self.word(1)
    }

    /// A double word by its number: CDW0 to CDW15.
    pub fn word(&self, number: usize) -> u32 {
        u32::from_le_bytes(self.0[4 * number..4 * number + 4].try_into().expect("four bytes"))
    }

    /// Two double words as one number.
    pub fn long(&self, number: usize) -> u64 {
        u64::from(self.word(number)) | u64::from(self.word(number + 1)) << 32
    }

    /// The type of Fabrics command; only such a one has it.
    pub fn fabrics_type(&self) -> u8 {
        self.0[4]
    }

    /// The address of its data, as its one SGL descriptor has it.
    pub fn data_address(&self) -> u64 {
        self.long(6)
    }

    /// How long its data is, as its one SGL descriptor says.
    pub fn data_bytes(&self) -> u32 {
        self.word(8)
    }

    /// The kind of its SGL descriptor.
    pub fn data_kind(&self) -> u8 {
        self.0[39]
    }

    /// The data that it moves, in bytes: as many as its own fields say, or its host's descriptor of
    /// what it sends. `shift` is the block size as a power of two.
    pub fn moved_bytes(&self, is_admin: bool, shift: u32) -> u64 {
        let words = |count: u64| (count + 1) * 4;
        let asked = match (is_admin, self.opcode()) {
            (true, admin::GET_LOG) => {
                words(u64::from(self.word(10) >> 16) | u64::from(self.word(11) as u16) << 16)
            }
            (true, admin::BLOCKS) => words(self.word(12).into()),
            (false, io::READ | io::WRITE | io::COMPARE) => {
                (u64::from(self.word(12) & 0xffff) + 1) << shift
            }
            (false, io::MANAGEMENT_RECEIVE) => words(self.word(11).into()),
            _ => 0,
        };
        // All that a host describes is asked for; of what it has room for, only what comes.
        let sends = self.direction() == Direction::Sent;
        if sends { asked.max(self.data_bytes().into()) } else { asked }
    }

    /// Which way its data goes.
    pub fn direction(&self) -> Direction {
        let code = if self.opcode() == FABRICS { self.fabrics_type() } else { self.opcode() };
        match code & 3 {
            0 => Direction::None,
            1 => Direction::Sent,
            2 => Direction::Received,
            _ => Direction::Both,
        }
    }
}

/// The opcode of all Fabrics commands.
pub const FABRICS: u8 = 0x7f;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The first two double words.
    pub result: u64,
    /// How it ended.
    pub status: Status,
}

impl Completion {
    /// Done, with nothing to tell.
    pub const DONE: Self = Self { result: 0, status: Status::SUCCESS };

    /// Done, with a result.
    pub fn told(result: u32) -> Self {
        Self { result: result.into(), ..Self::DONE }
    }
}

impl From<Status> for Completion {
    fn from(status: Status) -> Self {
        Self { result: 0, status }
    }
}

/// The data of one submission, wherever its host keeps it.
pub trait HostData {
    /// How many bytes the host set aside for what it sends or receives.
    fn room(&self) -> usize;

    /// What the host sends; empty where it sends nothing.
    fn sent(&self) -> &[u8];

    /// Adds to what the host receives; at most `room` bytes in all.
    fn give(&mut self, bytes: &[u8]);
}
