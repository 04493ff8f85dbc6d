//! Data of commands other than Identify and Get Log Page.

use zerocopy::little_endian::{U16, U32, U64};

use crate::layout;

layout! {
    /// Namespace Management: what a host specifies for a namespace to create.
    pub struct NamespaceManagement[4096] {
        pub nsze: U64,
        pub ncap: U64,
        pub unused_16: [u8; 10],
        pub flbas: u8,
        pub unused_27: [u8; 2],
        pub dps: u8,
        pub nmic: u8,
        pub unused_31: [u8; 61],
        pub anagrpid: U32,
        pub unused_96: [u8; 4],
        pub nvmsetid: U16,
        pub endgid: U16,
        pub unused_104: [u8; 288],
        /// Number of Placement Handles.
        pub nphndls: U16,
        pub unused_394: [u8; 118],
        /// Placement Handle List: reclaim unit handle identifiers.
        pub phndl: [U16; 1792],
    }

    /// Dataset Management: a range.
    pub struct DatasetManagementRange[16] {
        pub cattr: U32,
        pub nlb: U32,
        pub slba: U64,
    }

    /// Copy: a source range entry of descriptor format 0.
    pub struct CopySourceRange[32] {
        pub unused_0: [u8; 8],
        pub slba: U64,
        /// Number of Logical Blocks, zeroes based.
        pub nlb: U16,
        pub unused_18: [u8; 14],
    }

    /// Get LBA Status: header of the LBA Status Descriptor List.
    pub struct LbaStatusDescriptorList[8] {
        pub nlsd: U32,
        /// Completion Condition.
        pub cmpc: u8,
        pub unused_5: [u8; 3],
    }

    /// Get LBA Status: LBA Status Descriptor.
    pub struct LbaStatusDescriptor[16] {
        pub dslba: U64,
        pub nlb: U32,
        pub unused_12: [u8; 4],
    }

    /// I/O Management Receive: header of Reclaim Unit Handle Status.
    pub struct ReclaimUnitHandleStatus[16] {
        pub unused_0: [u8; 14],
        pub nruhsd: U16,
    }

    /// Reclaim Unit Handle Status Descriptor.
    pub struct ReclaimUnitHandleStatusDescriptor[32] {
        pub pid: U16,
        pub ruhid: U16,
        pub earutr: U32,
        /// Reclaim Unit Available Media Writes, in logical blocks.
        pub ruamw: U64,
        pub unused_16: [u8; 16],
    }

    /// Get Features of FDP Events: Supported FDP Event Descriptor.
    pub struct FdpEventDescriptor[2] {
        pub event_type: u8,
        /// Bit 0: the event is enabled.
        pub fdpeta: u8,
    }
}
