//! Error numbers, the same in the NBD protocol and in Linux.

/// A write to a drive that takes none.
pub const EPERM: i32 = 1;
/// The medium failed.
pub const EIO: i32 = 5;
/// A request that makes no sense.
pub const EINVAL: i32 = 22;
/// A write beyond the end.
pub const ENOSPC: i32 = 28;
/// A request that is too long.
pub const EOVERFLOW: i32 = 75;
