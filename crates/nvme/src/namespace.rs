//! `Namespace`: the only namespace of the drive; `NamespaceView`: what commands of a controller are
//! checked against.

use ssdlab_engine::{Command, Operation};

use super::sqe::Sqe;
use super::status::Status;

/// log2 of the logical block size, by number of the LBA format.
pub const LBA_FORMATS: [u32; 2] = [9, 12];

/// Fields of CDW12 of commands on logical blocks.
pub const FUA: u32 = 1 << 30;
pub const PRINFO: u32 = 0xf << 26;

/// The drive's namespace.
///
/// It is attached to all controllers or to none: controllers exist as long as their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    pub lba_format: usize,
    /// Its capacity in bytes; the rest of the drive is spare.
    pub bytes: u64,
    /// Number of placement handles: the first reclaim unit handles of the drive.
    pub handles: u32,
    pub is_attached: bool,
}

impl Namespace {
    /// log2 of the logical block size (LBADS).
    pub fn lbads(&self) -> u32 {
        LBA_FORMATS[self.lba_format]
    }

    pub fn blocks(&self) -> u64 {
        self.bytes >> self.lbads()
    }
}

/// The active namespace and the controller's features that apply to its commands.
#[derive(Clone, Copy, Debug)]
pub struct NamespaceView {
    /// Whether the controller is enabled and has I/O commands.
    pub(crate) is_ready: bool,
    /// log2 of the logical block size (LBADS).
    pub(crate) lbads: u32,
    /// Number of logical blocks; 0 without an active namespace.
    pub(crate) blocks: u64,
    /// MDTS in bytes.
    pub(crate) transfer_bytes_max: u32,
    /// Whether reads of deallocated or unwritten blocks fail.
    pub(crate) dulbe: bool,
    /// Whether every write is as with FUA: the volatile write cache is disabled.
    pub(crate) write_through: bool,
    /// Number of placement handles; 0 without FDP.
    pub(crate) handles: u32,
}

impl NamespaceView {
    /// Checks that a command transfers at most MDTS. This comes before the host's data is received
    /// and before memory is allocated for it.
    pub fn check_mdts(&self, is_admin: bool, sqe: &Sqe) -> Result<(), Status> {
        let bytes = sqe.transfer_bytes(is_admin, self.lbads);
        if bytes > self.transfer_bytes_max.into() { Err(Status::INVALID_FIELD) } else { Ok(()) }
    }

    /// The command of the drive on a command's logical blocks: SLBA, NLB and FUA.
    pub(crate) fn command(&self, operation: Operation, sqe: &Sqe) -> Result<Command, Status> {
        let cdw12 = sqe.cdw(12);
        if cdw12 & PRINFO != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let nlb = u64::from(cdw12 & 0xffff) + 1;
        let command = self.command_on(operation, sqe.cdw64(10), nlb)?;
        Ok(Command { durable: cdw12 & FUA != 0 || self.write_through, ..command })
    }

    /// The command of the drive on `blocks` logical blocks from `slba` on.
    pub(crate) fn command_on(
        &self,
        operation: Operation,
        slba: u64,
        blocks: u64,
    ) -> Result<Command, Status> {
        let is_inside = slba.checked_add(blocks).is_some_and(|end| end <= self.blocks);
        match u32::try_from(blocks << self.lbads) {
            Ok(bytes) if is_inside => Ok(Command::new(operation, slba << self.lbads, bytes)),
            _ => Err(Status::LBA_OUT_OF_RANGE),
        }
    }
}
