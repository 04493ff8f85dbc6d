//! Data structures of Identify.

use zerocopy::little_endian::{U16, U32, U64, U128};

use crate::layout;

/// Controller or Namespace Structure (CNS): which data structure Identify returns.
pub mod cns {
    pub const NAMESPACE: u8 = 0x00;
    pub const CONTROLLER: u8 = 0x01;
    pub const ACTIVE_NAMESPACES: u8 = 0x02;
    pub const NAMESPACE_IDENTIFICATION_DESCRIPTORS: u8 = 0x03;
    pub const IO_COMMAND_SET_NAMESPACE: u8 = 0x05;
    pub const IO_COMMAND_SET_CONTROLLER: u8 = 0x06;
    pub const IO_COMMAND_SET_ACTIVE_NAMESPACES: u8 = 0x07;
    pub const INDEPENDENT_NAMESPACE: u8 = 0x08;
    pub const ALLOCATED_NAMESPACES: u8 = 0x10;
    pub const ALLOCATED_NAMESPACE: u8 = 0x11;
    pub const CONTROLLERS_OF_NAMESPACE: u8 = 0x12;
    pub const CONTROLLERS_OF_SUBSYSTEM: u8 = 0x13;
    pub const IO_COMMAND_SETS: u8 = 0x1c;
}

/// All data structures of Identify have this length.
pub const IDENTIFY_BYTES: usize = 4096;

layout! {
    /// CNS 01h: Identify Controller.
    pub struct IdentifyController[IDENTIFY_BYTES] {
        pub unused_0: [u8; 4],
        pub sn: [u8; 20],
        pub mn: [u8; 40],
        pub fr: [u8; 8],
        pub unused_72: [u8; 5],
        /// Maximum Data Transfer Size, as a power of two of 4 KiB pages.
        pub mdts: u8,
        pub cntlid: U16,
        pub ver: U32,
        pub unused_84: [u8; 8],
        /// Optional Asynchronous Events Supported.
        pub oaes: U32,
        /// Controller Attributes.
        pub ctratt: U32,
        pub unused_100: [u8; 11],
        pub cntrltype: u8,
        pub unused_112: [u8; 144],
        /// Optional Admin Command Support.
        pub oacs: U16,
        /// Abort Command Limit, zeroes based.
        pub acl: u8,
        /// Asynchronous Event Request Limit, zeroes based.
        pub aerl: u8,
        pub frmw: u8,
        /// Log Page Attributes.
        pub lpa: u8,
        /// Error Log Page Entries, zeroes based.
        pub elpe: u8,
        pub unused_263: [u8; 3],
        /// Warning and critical composite temperature thresholds, in kelvin.
        pub wctemp: U16,
        pub cctemp: U16,
        pub unused_270: [u8; 10],
        /// Total and unallocated NVM capacity, in bytes.
        pub tnvmcap: U128,
        pub unvmcap: U128,
        pub unused_312: [u8; 8],
        /// Granularity of the Keep Alive Timer, in 100 ms.
        pub kas: U16,
        pub unused_322: [u8; 6],
        /// Sanitize Capabilities.
        pub sanicap: U32,
        pub unused_332: [u8; 8],
        pub endgidmax: U16,
        pub unused_342: [u8; 170],
        /// Required (bits 3:0) and maximum (bits 7:4) entry sizes, as powers of two.
        pub sqes: u8,
        pub cqes: u8,
        pub maxcmd: U16,
        pub nn: U32,
        /// Optional NVM Command Support.
        pub oncs: U16,
        pub fuses: U16,
        /// Format NVM Attributes.
        pub fna: u8,
        /// Volatile Write Cache.
        pub vwc: u8,
        pub unused_526: [u8; 8],
        /// Optional Copy Formats Supported; bit 0: format 0.
        pub ocfs: U16,
        pub sgls: U32,
        pub mnan: U32,
        pub unused_544: [u8; 224],
        pub subnqn: [u8; 256],
        pub unused_1024: [u8; 768],
        /// I/O queue command and response capsule sizes, in 16 bytes.
        pub ioccsz: U32,
        pub iorcsz: U32,
        pub unused_1800: [u8; 3],
        /// Maximum SGL Data Block Descriptors.
        pub msdbd: u8,
        pub unused_1804: [u8; 2292],
    }

    /// CNS 00h and 11h: Identify Namespace of the NVM command set.
    pub struct IdentifyNamespace[IDENTIFY_BYTES] {
        /// Size, capacity and utilization, in logical blocks.
        pub nsze: U64,
        pub ncap: U64,
        pub nuse: U64,
        pub nsfeat: u8,
        /// Number of LBA Formats, zeroes based.
        pub nlbaf: u8,
        /// Formatted LBA Size: number of the LBA format in use.
        pub flbas: u8,
        pub unused_27: [u8; 6],
        /// Deallocate Logical Block Features.
        pub dlfeat: u8,
        pub unused_34: [u8; 14],
        pub nvmcap: U128,
        /// Preferred write and deallocate granularity and alignment, and optimal write size, in
        /// logical blocks, zeroes based.
        pub npwg: U16,
        pub npwa: U16,
        pub npdg: U16,
        pub npda: U16,
        pub nows: U16,
        /// Limits of Copy: blocks of a source range, blocks in all, source ranges (zeroes based).
        pub mssrl: U16,
        pub mcl: U32,
        pub msrc: u8,
        pub unused_81: [u8; 21],
        pub endgid: U16,
        pub nguid: [u8; 16],
        pub eui64: [u8; 8],
        pub lbaf: [LbaFormat; 64],
        pub unused_384: [u8; 3712],
    }

    /// LBA Format.
    pub struct LbaFormat[4] {
        pub ms: U16,
        /// LBA Data Size: log2 of the logical block size.
        pub lbads: u8,
        /// Relative Performance: 0 is best.
        pub rp: u8,
    }

    /// CNS 08h: I/O Command Set Independent Identify Namespace.
    pub struct IndependentNamespace[IDENTIFY_BYTES] {
        pub unused_0: [u8; 12],
        pub endgid: U16,
        /// Namespace Status; bit 0: ready.
        pub nstat: u8,
        pub unused_15: [u8; 4081],
    }

    /// CNS 12h and 13h, and the data of Namespace Attachment: Controller List.
    pub struct ControllerList[IDENTIFY_BYTES] {
        pub numids: U16,
        pub ids: [U16; 2047],
    }
}

/// CNS 02h, 07h and 10h, and the Changed Namespace List log page: Namespace List.
pub type NamespaceList = [U32; 1024];

const _: () = assert!(size_of::<NamespaceList>() == IDENTIFY_BYTES);

/// Types of Namespace Identification Descriptors (NIDT).
pub mod nidt {
    pub const NGUID: u8 = 2;
    pub const UUID: u8 = 3;
    pub const CSI: u8 = 4;
}

layout! {
    /// Header of a Namespace Identification Descriptor (CNS 03h).
    pub struct NamespaceIdentificationDescriptor[4] {
        pub nidt: u8,
        /// Length of the identifier (NID), which follows.
        pub nidl: u8,
        pub unused_2: [u8; 2],
    }
}
