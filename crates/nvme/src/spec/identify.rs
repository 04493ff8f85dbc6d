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
        pub vid: U16,
        pub ssvid: U16,
        pub sn: [u8; 20],
        pub mn: [u8; 40],
        pub fr: [u8; 8],
        pub rab: u8,
        pub ieee: [u8; 3],
        pub cmic: u8,
        /// Maximum Data Transfer Size, as a power of two of 4 KiB pages.
        pub mdts: u8,
        pub cntlid: U16,
        pub ver: U32,
        pub rtd3r: U32,
        pub rtd3e: U32,
        /// Optional Asynchronous Events Supported.
        pub oaes: U32,
        /// Controller Attributes.
        pub ctratt: U32,
        pub rrls: U16,
        pub reserved_102: [u8; 9],
        pub cntrltype: u8,
        pub fguid: [u8; 16],
        pub crdt: [U16; 3],
        pub reserved_134: [u8; 119],
        pub nvmsr: u8,
        pub vwci: u8,
        pub mec: u8,
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
        pub npss: u8,
        pub avscc: u8,
        pub apsta: u8,
        /// Warning and critical composite temperature thresholds, in kelvin.
        pub wctemp: U16,
        pub cctemp: U16,
        pub mtfa: U16,
        pub hmpre: U32,
        pub hmmin: U32,
        /// Total and unallocated NVM capacity, in bytes.
        pub tnvmcap: U128,
        pub unvmcap: U128,
        pub rpmbs: U32,
        pub edstt: U16,
        pub dsto: u8,
        pub fwug: u8,
        /// Granularity of the Keep Alive Timer, in 100 ms.
        pub kas: U16,
        pub hctma: U16,
        pub mntmt: U16,
        pub mxtmt: U16,
        /// Sanitize Capabilities.
        pub sanicap: U32,
        pub hmminds: U32,
        pub hmmaxd: U16,
        pub nsetidmax: U16,
        pub endgidmax: U16,
        pub anatt: u8,
        pub anacap: u8,
        pub anagrpmax: U32,
        pub nanagrpid: U32,
        pub pels: U32,
        pub domain_identifier: U16,
        pub reserved_358: [u8; 10],
        pub megcap: U128,
        pub reserved_384: [u8; 128],
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
        pub awun: U16,
        pub awupf: U16,
        pub icsvscc: u8,
        pub nwpc: u8,
        pub acwu: U16,
        /// Optional Copy Formats Supported; bit 0: format 0.
        pub ocfs: U16,
        pub sgls: U32,
        pub mnan: U32,
        pub maxdna: U128,
        pub maxcna: U32,
        pub reserved_564: [u8; 204],
        pub subnqn: [u8; 256],
        pub reserved_1024: [u8; 768],
        /// I/O queue command and response capsule sizes, in 16 bytes.
        pub ioccsz: U32,
        pub iorcsz: U32,
        pub icdoff: U16,
        pub fcatt: u8,
        /// Maximum SGL Data Block Descriptors.
        pub msdbd: u8,
        pub ofcs: U16,
        pub reserved_1806: [u8; 242],
        pub psd: [PowerStateDescriptor; 32],
        pub vendor_specific: [u8; 1024],
    }

    /// Power State Descriptor.
    pub struct PowerStateDescriptor[32] {
        pub mp: U16,
        pub reserved_2: u8,
        pub mxps_nops: u8,
        pub enlat: U32,
        pub exlat: U32,
        pub rrt: u8,
        pub rrl: u8,
        pub rwt: u8,
        pub rwl: u8,
        pub idlp: U16,
        pub ips: u8,
        pub reserved_19: u8,
        pub actp: U16,
        pub apw_aps: u8,
        pub reserved_23: [u8; 9],
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
        pub mc: u8,
        pub dpc: u8,
        pub dps: u8,
        pub nmic: u8,
        pub rescap: u8,
        pub fpi: u8,
        /// Deallocate Logical Block Features.
        pub dlfeat: u8,
        pub nawun: U16,
        pub nawupf: U16,
        pub nacwu: U16,
        pub nabsn: U16,
        pub nabo: U16,
        pub nabspf: U16,
        pub noiob: U16,
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
        pub reserved_81: [u8; 11],
        pub anagrpid: U32,
        pub reserved_96: [u8; 3],
        pub nsattr: u8,
        pub nvmsetid: U16,
        pub endgid: U16,
        pub nguid: [u8; 16],
        pub eui64: [u8; 8],
        pub lbaf: [LbaFormat; 64],
        pub vendor_specific: [u8; 3712],
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
        pub nsfeat: u8,
        pub nmic: u8,
        pub rescap: u8,
        pub fpi: u8,
        pub anagrpid: U32,
        pub nsattr: u8,
        pub reserved_9: u8,
        pub nvmsetid: U16,
        pub endgid: U16,
        /// Namespace Status; bit 0: ready.
        pub nstat: u8,
        pub reserved_15: [u8; 4081],
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

/// CNS 1Ch: I/O Command Set Vectors.
pub type IoCommandSets = [U64; 512];

const _: () = assert!(size_of::<IoCommandSets>() == IDENTIFY_BYTES);

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
        pub reserved_2: [u8; 2],
    }
}
