//! Error numbers, which are the same in the NBD protocol and in Linux.

/// A write to a read-only drive.
pub const EPERM: i32 = 1;
/// A medium error.
pub const EIO: i32 = 5;
/// An invalid request.
pub const EINVAL: i32 = 22;
/// A write beyond the end.
pub const ENOSPC: i32 = 28;
/// A request that is too long.
pub const EOVERFLOW: i32 = 75;
