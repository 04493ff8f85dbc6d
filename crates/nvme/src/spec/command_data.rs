//! Data of commands other than Identify and Get Log Page.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Namespace Management: what a host specifies for a namespace to create.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct NamespaceManagement {
    pub nsze: U64,
    pub ncap: U64,
    pub reserved_16: [u8; 10],
    pub flbas: u8,
    pub reserved_27: [u8; 2],
    pub dps: u8,
    pub nmic: u8,
    pub reserved_31: [u8; 61],
    pub anagrpid: U32,
    pub reserved_96: [u8; 4],
    pub nvmsetid: U16,
    pub endgid: U16,
    pub reserved_104: [u8; 280],
    pub lbstm: U64,
    /// Number of Placement Handles.
    pub nphndls: U16,
    pub reserved_394: [u8; 118],
    /// Placement Handle List: reclaim unit handle identifiers.
    pub phndl: [U16; 1792],
}

const _: () = assert!(size_of::<NamespaceManagement>() == 4096);

/// Dataset Management: a range.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DatasetManagementRange {
    pub cattr: U32,
    pub nlb: U32,
    pub slba: U64,
}

const _: () = assert!(size_of::<DatasetManagementRange>() == 16);

/// Copy: a source range entry of descriptor format 0.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CopySourceRange {
    pub reserved_0: [u8; 8],
    pub slba: U64,
    /// Number of Logical Blocks, zeroes based.
    pub nlb: U16,
    pub reserved_18: [u8; 6],
    pub eilbrt: U32,
    pub elbat: U16,
    pub elbatm: U16,
}

const _: () = assert!(size_of::<CopySourceRange>() == 32);

/// Get LBA Status: header of the LBA Status Descriptor List.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct LbaStatusDescriptorList {
    pub nlsd: U32,
    /// Completion Condition.
    pub cmpc: u8,
    pub reserved_5: [u8; 3],
}

const _: () = assert!(size_of::<LbaStatusDescriptorList>() == 8);

/// Get LBA Status: LBA Status Descriptor.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct LbaStatusDescriptor {
    pub dslba: U64,
    pub nlb: U32,
    pub reserved_12: u8,
    pub status: u8,
    pub reserved_14: [u8; 2],
}

const _: () = assert!(size_of::<LbaStatusDescriptor>() == 16);

/// I/O Management Receive: header of Reclaim Unit Handle Status.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ReclaimUnitHandleStatus {
    pub reserved_0: [u8; 14],
    pub nruhsd: U16,
}

const _: () = assert!(size_of::<ReclaimUnitHandleStatus>() == 16);

/// Reclaim Unit Handle Status Descriptor.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ReclaimUnitHandleStatusDescriptor {
    pub pid: U16,
    pub ruhid: U16,
    pub earutr: U32,
    /// Reclaim Unit Available Media Writes, in logical blocks.
    pub ruamw: U64,
    pub reserved_16: [u8; 16],
}

const _: () = assert!(size_of::<ReclaimUnitHandleStatusDescriptor>() == 32);

/// Get Features of FDP Events: Supported FDP Event Descriptor.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FdpEventDescriptor {
    pub event_type: u8,
    /// Bit 0: the event is enabled.
    pub fdpeta: u8,
}

const _: () = assert!(size_of::<FdpEventDescriptor>() == 2);
