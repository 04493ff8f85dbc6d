//! Opcodes of admin, I/O and Fabrics commands.

/// Opcode of all Fabrics commands; the type of command is FCTYPE.
pub const FABRICS: u8 = 0x7f;

/// Opcodes of admin commands.
pub mod admin {
    #![expect(missing_docs, reason = "the names are the specification's")]

    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const IDENTIFY: u8 = 0x06;
    pub const ABORT: u8 = 0x08;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_FEATURES: u8 = 0x0a;
    pub const ASYNC_EVENT_REQUEST: u8 = 0x0c;
    pub const NAMESPACE_MANAGEMENT: u8 = 0x0d;
    pub const NAMESPACE_ATTACHMENT: u8 = 0x15;
    pub const KEEP_ALIVE: u8 = 0x18;
    pub const FORMAT_NVM: u8 = 0x80;
    pub const SANITIZE: u8 = 0x84;
    pub const GET_LBA_STATUS: u8 = 0x86;
}

/// Opcodes of I/O commands.
pub mod io {
    #![expect(missing_docs, reason = "the names are the specification's")]

    pub const FLUSH: u8 = 0x00;
    pub const WRITE: u8 = 0x01;
    pub const READ: u8 = 0x02;
    pub const COMPARE: u8 = 0x05;
    pub const WRITE_ZEROES: u8 = 0x08;
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    pub const VERIFY: u8 = 0x0c;
    pub const IO_MANAGEMENT_RECEIVE: u8 = 0x12;
    pub const COPY: u8 = 0x19;
    pub const IO_MANAGEMENT_SEND: u8 = 0x1d;

    /// Supported commands, and whether they change logical block content.
    pub(crate) const SUPPORTED: [(u8, bool); 10] = [
        (FLUSH, false),
        (WRITE, true),
        (READ, false),
        (COMPARE, false),
        (WRITE_ZEROES, true),
        (DATASET_MANAGEMENT, true),
        (VERIFY, false),
        (IO_MANAGEMENT_RECEIVE, false),
        (COPY, true),
        (IO_MANAGEMENT_SEND, false),
    ];

    /// Whether a command is for flexible data placement only.
    pub(crate) fn is_fdp(opcode: u8) -> bool {
        [IO_MANAGEMENT_RECEIVE, IO_MANAGEMENT_SEND].contains(&opcode)
    }
}

/// Types of Fabrics commands (FCTYPE).
pub mod fctype {
    #![expect(missing_docs, reason = "the names are the specification's")]

    pub const PROPERTY_SET: u8 = 0x00;
    pub const CONNECT: u8 = 0x01;
    pub const PROPERTY_GET: u8 = 0x04;
    pub const AUTHENTICATION_SEND: u8 = 0x05;
    pub const AUTHENTICATION_RECEIVE: u8 = 0x06;
}
