//! `Status`: how a command ended, in the protocol's numbers.

use ssdlab_engine::Operation;
use ssdlab_engine::errno::{EINVAL, EIO, ENOSPC, EOVERFLOW, EPERM};

/// A status: its code (bits 7:0), the code's type (10:8), and whether to try again is in vain (14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

const IN_VAIN: u16 = 1 << 14;

impl Status {
    /// Done.
    pub const SUCCESS: Self = Self(0);
    /// There is no such command here.
    pub const INVALID_OPCODE: Self = Self(0x01 | IN_VAIN);
    /// A field of it cannot be so.
    pub const INVALID_FIELD: Self = Self(0x02 | IN_VAIN);
    /// Its id is that of a command in progress.
    pub const ID_CONFLICT: Self = Self(0x03 | IN_VAIN);
    /// The power is going.
    pub const POWER_LOSS: Self = Self(0x05);
    /// The drive failed within.
    pub const INTERNAL: Self = Self(0x06);
    /// It was given up as its host asked.
    pub const ABORTED: Self = Self(0x07 | IN_VAIN);
    /// There is no such namespace.
    pub const INVALID_NAMESPACE: Self = Self(0x0b | IN_VAIN);
    /// It cannot come now.
    pub const SEQUENCE: Self = Self(0x0c | IN_VAIN);
    /// Its host set aside too little for its data.
    pub const DATA_LENGTH: Self = Self(0x0f | IN_VAIN);
    /// Its data is described in a way that is not known here.
    pub const DATA_KIND: Self = Self(0x11 | IN_VAIN);
    /// Its data is not where it should be in the capsule.
    pub const DATA_OFFSET: Self = Self(0x16 | IN_VAIN);
    /// Data that was changed on its way; it may come through the next time.
    pub const BROKEN_DATA: Self = Self(0x22);
    /// Nothing is placed: that was turned off.
    pub const NO_PLACEMENT: Self = Self(0x29 | IN_VAIN);
    /// There are no such handles of placement.
    pub const HANDLE_LIST: Self = Self(0x2a | IN_VAIN);
    /// It goes beyond the last block.
    pub const LBA_RANGE: Self = Self(0x80 | IN_VAIN);

    /// Too many requests for events wait.
    pub const EVENT_LIMIT: Self = Self(0x105 | IN_VAIN);
    /// There is no such log.
    pub const INVALID_LOG: Self = Self(0x109 | IN_VAIN);
    /// There is no such format.
    pub const INVALID_FORMAT: Self = Self(0x10a | IN_VAIN);
    /// The feature cannot be saved.
    pub const NOT_SAVEABLE: Self = Self(0x10d | IN_VAIN);
    /// The feature cannot be changed.
    pub const NOT_CHANGEABLE: Self = Self(0x10e | IN_VAIN);
    /// What is not set aside is less than that.
    pub const NO_CAPACITY: Self = Self(0x115 | IN_VAIN);
    /// There are as many namespaces as there can be.
    pub const NO_IDENTIFIER: Self = Self(0x116 | IN_VAIN);
    /// The namespace is attached already.
    pub const ATTACHED: Self = Self(0x118 | IN_VAIN);
    /// The namespace is not attached.
    pub const NOT_ATTACHED: Self = Self(0x11a | IN_VAIN);
    /// A namespace has what it can take.
    pub const NOT_THIN: Self = Self(0x11b | IN_VAIN);
    /// These are not controllers.
    pub const CONTROLLER_LIST: Self = Self(0x11c | IN_VAIN);
    /// There is no such I/O command set here.
    pub const COMMAND_SET: Self = Self(0x129 | IN_VAIN);
    /// The drive takes no more writes.
    pub const READ_ONLY: Self = Self(0x182 | IN_VAIN);
    /// It has too many ranges, or too long ones.
    pub const SIZE_LIMIT: Self = Self(0x183 | IN_VAIN);

    /// A connection is asked for in an unknown form.
    pub const CONNECT_FORMAT: Self = Self(0x180 | IN_VAIN);
    /// No controller is free; one may be later.
    pub const CONNECT_BUSY: Self = Self(0x181);
    /// A connection cannot be had as it is asked for.
    pub const CONNECT_PARAMETER: Self = Self(0x182 | IN_VAIN);

    /// First its host has to prove that it may.
    pub const PROOF_REQUIRED: Self = Self(0x191 | IN_VAIN);

    /// The medium did not take it.
    pub const WRITE_FAULT: Self = Self(0x280 | IN_VAIN);
    /// The medium did not give it.
    pub const READ_ERROR: Self = Self(0x281 | IN_VAIN);
    /// What is there is not what was compared to it.
    pub const COMPARE_FAILED: Self = Self(0x285 | IN_VAIN);
    /// It was never written, or was trimmed.
    pub const UNWRITTEN: Self = Self(0x287 | IN_VAIN);

    /// Its type and code, without what is said of trying again.
    pub fn code(self) -> u16 {
        self.0 & !IN_VAIN
    }

    /// That of a command that the engine refused or failed.
    pub fn of_errno(errno: i32, operation: Operation) -> Self {
        match (errno, operation) {
            (EPERM, _) => Self::READ_ONLY,
            (EIO, Operation::Read | Operation::Cache) => Self::READ_ERROR,
            (EIO, _) => Self::WRITE_FAULT,
            (ENOSPC | EINVAL, _) => Self::LBA_RANGE,
            (EOVERFLOW, _) => Self::INVALID_FIELD,
            _ => Self::INTERNAL,
        }
    }

    /// As it stands in a completion, beside the phase, which only memory-based queues have.
    pub fn field(self) -> u16 {
        self.0 << 1
    }

    /// Whether it is good.
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// Whether the medium failed.
    pub fn is_media_error(self) -> bool {
        [Self::WRITE_FAULT, Self::READ_ERROR].contains(&self)
    }
}
