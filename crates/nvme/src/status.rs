//! `Status`: status codes of completions, by status code type (SCT) and status code (SC).

use ssdlab_engine::Operation;
use ssdlab_engine::errno::{EINVAL, EIO, ENOSPC, EOVERFLOW, EPERM};

/// Status of a completion: SC (bits 7:0), SCT (bits 10:8), Do Not Retry, DNR (bit 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

/// Do Not Retry: the same command would fail again.
const DNR: u16 = 1 << 14;

#[expect(missing_docs, reason = "the names are the specification's")]
impl Status {
    // Generic Command Status (SCT 0h).
    pub const SUCCESS: Self = Self(0);
    pub const INVALID_OPCODE: Self = Self(0x01 | DNR);
    pub const INVALID_FIELD: Self = Self(0x02 | DNR);
    /// A command with this CID is outstanding.
    pub const COMMAND_ID_CONFLICT: Self = Self(0x03 | DNR);
    pub const INTERNAL_ERROR: Self = Self(0x06);
    pub const COMMAND_ABORT_REQUESTED: Self = Self(0x07 | DNR);
    pub const INVALID_NAMESPACE_OR_FORMAT: Self = Self(0x0b | DNR);
    pub const COMMAND_SEQUENCE_ERROR: Self = Self(0x0c | DNR);
    /// The host's buffer is shorter than the data.
    pub const DATA_SGL_LENGTH_INVALID: Self = Self(0x0f | DNR);
    pub const SGL_DESCRIPTOR_TYPE_INVALID: Self = Self(0x11 | DNR);
    /// In-capsule data ends outside the capsule.
    pub const SGL_OFFSET_INVALID: Self = Self(0x16 | DNR);
    /// A wrong data digest.
    pub const TRANSIENT_TRANSPORT_ERROR: Self = Self(0x22);
    pub const FDP_DISABLED: Self = Self(0x29 | DNR);
    pub const INVALID_PLACEMENT_HANDLE_LIST: Self = Self(0x2a | DNR);
    pub const LBA_OUT_OF_RANGE: Self = Self(0x80 | DNR);
    // Command Specific Status (SCT 1h).
    pub const ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED: Self = Self(0x105 | DNR);
    pub const INVALID_LOG_PAGE: Self = Self(0x109 | DNR);
    pub const INVALID_FORMAT: Self = Self(0x10a | DNR);
    pub const FEATURE_NOT_SAVEABLE: Self = Self(0x10d | DNR);
    pub const FEATURE_NOT_CHANGEABLE: Self = Self(0x10e | DNR);
    pub const NAMESPACE_INSUFFICIENT_CAPACITY: Self = Self(0x115 | DNR);
    pub const NAMESPACE_IDENTIFIER_UNAVAILABLE: Self = Self(0x116 | DNR);
    pub const NAMESPACE_ALREADY_ATTACHED: Self = Self(0x118 | DNR);
    pub const NAMESPACE_NOT_ATTACHED: Self = Self(0x11a | DNR);
    pub const THIN_PROVISIONING_NOT_SUPPORTED: Self = Self(0x11b | DNR);
    pub const CONTROLLER_LIST_INVALID: Self = Self(0x11c | DNR);
    pub const IO_COMMAND_SET_NOT_SUPPORTED: Self = Self(0x129 | DNR);
    pub const ATTEMPTED_WRITE_TO_READ_ONLY_RANGE: Self = Self(0x182 | DNR);
    pub const COMMAND_SIZE_LIMIT_EXCEEDED: Self = Self(0x183 | DNR);
    // Command Specific Status of Fabrics commands.
    pub const CONNECT_INCOMPATIBLE_FORMAT: Self = Self(0x180 | DNR);
    /// No controller ID is free.
    pub const CONNECT_CONTROLLER_BUSY: Self = Self(0x181);
    pub const CONNECT_INVALID_PARAMETERS: Self = Self(0x182 | DNR);
    pub const AUTHENTICATION_REQUIRED: Self = Self(0x191 | DNR);
    // Media and Data Integrity Errors (SCT 2h).
    pub const WRITE_FAULT: Self = Self(0x280 | DNR);
    pub const UNRECOVERED_READ_ERROR: Self = Self(0x281 | DNR);
    pub const COMPARE_FAILURE: Self = Self(0x285 | DNR);
    pub const DEALLOCATED_OR_UNWRITTEN_BLOCK: Self = Self(0x287 | DNR);
}

impl Status {
    /// SCT and SC, without DNR.
    pub fn code(self) -> u16 {
        self.0 & !DNR
    }

    /// Status of a command that the engine refused or failed.
    pub fn from_errno(errno: i32, operation: Operation) -> Self {
        match (errno, operation) {
            (EPERM, _) => Self::ATTEMPTED_WRITE_TO_READ_ONLY_RANGE,
            (EIO, Operation::Read | Operation::Cache) => Self::UNRECOVERED_READ_ERROR,
            (EIO, _) => Self::WRITE_FAULT,
            (ENOSPC | EINVAL, _) => Self::LBA_OUT_OF_RANGE,
            (EOVERFLOW, _) => Self::INVALID_FIELD,
            _ => Self::INTERNAL_ERROR,
        }
    }

    /// The status field of a completion queue entry; the phase tag (bit 0) is reserved in Fabrics.
    pub fn field(self) -> u16 {
        self.0 << 1
    }

    /// Whether the command succeeded.
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// Whether the medium failed: such errors count as Media and Data Integrity Errors.
    pub fn is_media_error(self) -> bool {
        [Self::WRITE_FAULT, Self::UNRECOVERED_READ_ERROR].contains(&self)
    }
}

/// Why a command does not complete successfully.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// It completes with this status.
    Status(Status),
    /// The drive lost power: it never completes.
    PowerLost,
}

impl From<Status> for CommandError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}
