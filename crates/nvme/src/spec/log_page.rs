//! Log pages.

use zerocopy::little_endian::{U16, U32, U64, U128};

use crate::layout;

/// Log page identifiers (LID).
pub mod lid {
    pub const SUPPORTED_LOG_PAGES: u8 = 0x00;
    pub const ERROR_INFORMATION: u8 = 0x01;
    pub const SMART: u8 = 0x02;
    pub const FIRMWARE_SLOT: u8 = 0x03;
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    pub const COMMANDS_SUPPORTED_AND_EFFECTS: u8 = 0x05;
    pub const ENDURANCE_GROUP: u8 = 0x09;
    pub const FDP_CONFIGURATIONS: u8 = 0x20;
    pub const RECLAIM_UNIT_HANDLE_USAGE: u8 = 0x21;
    pub const FDP_STATISTICS: u8 = 0x22;
    pub const FDP_EVENTS: u8 = 0x23;
    pub const DISCOVERY: u8 = 0x70;
    pub const SANITIZE_STATUS: u8 = 0x81;
    /// SMART / Health Information Extended of the Open Compute Project (OCP).
    pub const OCP_SMART: u8 = 0xc0;
}

/// LID 00h: Supported Log Pages, by LID; bit 0: LSUPP.
pub type SupportedLogPages = [U32; 256];

const _: () = assert!(size_of::<SupportedLogPages>() == 1024);

layout! {
    /// LID 01h: an entry of Error Information.
    pub struct ErrorInformation[64] {
        pub error_count: U64,
        pub sqid: U16,
        pub cid: U16,
        pub status: U16,
        pub parameter_error_location: U16,
        pub lba: U64,
        pub nsid: U32,
        pub unused_28: [u8; 36],
    }

    /// LID 02h: SMART / Health Information.
    pub struct Smart[512] {
        pub critical_warning: u8,
        pub composite_temperature: U16,
        pub available_spare: u8,
        pub available_spare_threshold: u8,
        pub percentage_used: u8,
        pub endurance_group_critical_warning: u8,
        pub unused_7: [u8; 25],
        pub data_units_read: U128,
        pub data_units_written: U128,
        pub host_read_commands: U128,
        pub host_write_commands: U128,
        pub controller_busy_time: U128,
        pub power_cycles: U128,
        pub power_on_hours: U128,
        pub unsafe_shutdowns: U128,
        pub media_errors: U128,
        pub error_log_entries: U128,
        pub unused_192: [u8; 8],
        pub temperature_sensors: [U16; 8],
        pub unused_216: [u8; 296],
    }

    /// LID 03h: Firmware Slot Information.
    pub struct FirmwareSlot[512] {
        /// Active Firmware Info; bits 2:0: active slot.
        pub afi: u8,
        pub unused_1: [u8; 7],
        /// Firmware revisions of slots 1 to 7.
        pub frs: [[u8; 8]; 7],
        pub unused_64: [u8; 448],
    }

    /// LID 05h: Commands Supported and Effects, by opcode.
    pub struct CommandsSupportedAndEffects[4096] {
        pub acs: [U32; 256],
        pub iocs: [U32; 256],
        pub unused_2048: [u8; 2048],
    }
}

/// Effects of a command: supported, logical block content change, namespace capability change,
/// namespace inventory change.
pub mod effects {
    pub const CSUPP: u32 = 1;
    pub const LBCC: u32 = 1 << 1;
    pub const NCC: u32 = 1 << 2;
    pub const NIC: u32 = 1 << 3;
}

layout! {
    /// LID 09h: Endurance Group Information.
    pub struct EnduranceGroup[512] {
        pub critical_warning: u8,
        pub unused_1: [u8; 2],
        pub available_spare: u8,
        pub available_spare_threshold: u8,
        pub percentage_used: u8,
        pub unused_6: [u8; 42],
        pub data_units_read: U128,
        pub data_units_written: U128,
        pub media_units_written: U128,
        pub host_read_commands: U128,
        pub host_write_commands: U128,
        pub media_errors: U128,
        pub error_log_entries: U128,
        /// Total and unallocated capacity of the endurance group, in bytes.
        pub tegcap: U128,
        pub uegcap: U128,
        pub unused_192: [u8; 320],
    }

    /// LID 20h: header of FDP Configurations.
    pub struct FdpConfigurations[16] {
        pub unused_0: [u8; 4],
        /// Length of the log page in bytes.
        pub size: U32,
        pub unused_8: [u8; 8],
    }

    /// FDP Configuration Descriptor; a reclaim unit handle descriptor for each handle follows.
    pub struct FdpConfiguration[64] {
        /// Descriptor size in bytes.
        pub dsze: U16,
        /// FDP Attributes.
        pub fdpa: u8,
        pub vss: u8,
        /// Number of reclaim groups and of reclaim unit handles.
        pub nrg: U32,
        pub nruh: U16,
        /// Maximum Placement Identifiers, zeroes based.
        pub maxpids: U16,
        /// Number of namespaces supported.
        pub nnss: U32,
        /// Reclaim Unit Nominal Size, in bytes.
        pub runs: U64,
        pub unused_24: [u8; 40],
    }

    /// Reclaim Unit Handle Descriptor.
    pub struct ReclaimUnitHandle[4] {
        /// Reclaim Unit Handle Type: 1 initially isolated, 2 persistently isolated.
        pub ruht: u8,
        pub unused_1: [u8; 3],
    }

    /// LID 21h: header of Reclaim Unit Handle Usage.
    pub struct ReclaimUnitHandleUsage[8] {
        pub nruh: U16,
        pub unused_2: [u8; 6],
    }

    /// Reclaim Unit Handle Usage Descriptor.
    pub struct ReclaimUnitHandleUse[8] {
        /// Reclaim Unit Handle Attributes: 1 host specified.
        pub ruha: u8,
        pub unused_1: [u8; 7],
    }

    /// LID 22h: FDP Statistics: bytes that hosts wrote, that were programmed, that were erased.
    pub struct FdpStatistics[64] {
        pub hbmw: U128,
        pub mbmw: U128,
        pub mbe: U128,
        pub unused_48: [u8; 16],
    }

    /// LID 23h: header of FDP Events.
    pub struct FdpEvents[64] {
        pub n: U32,
        pub unused_4: [u8; 60],
    }

    /// FDP Event.
    pub struct FdpEvent[64] {
        pub event_type: u8,
        /// FDP Event Flags: placement identifier, NSID and location valid.
        pub fdpef: u8,
        pub pid: U16,
        /// Timestamp in milliseconds (48 bits) and its attributes.
        pub timestamp: U64,
        pub nsid: U32,
        pub unused_16: [u8; 18],
        pub ruhid: U16,
        pub unused_36: [u8; 28],
    }
}

/// FDP event types.
pub mod fdp_event {
    /// Reclaim Unit Not Fully Written To Capacity.
    pub const RU_NOT_FULLY_WRITTEN: u8 = 0x00;
    /// Invalid Placement Identifier.
    pub const INVALID_PLACEMENT_IDENTIFIER: u8 = 0x03;
}

layout! {
    /// LID 70h: header of the discovery log page.
    pub struct Discovery[1024] {
        pub genctr: U64,
        pub numrec: U64,
        pub unused_16: [u8; 1008],
    }

    /// Discovery Log Page Entry.
    pub struct DiscoveryEntry[1024] {
        pub trtype: u8,
        pub adrfam: u8,
        pub subtype: u8,
        /// Transport Requirements.
        pub treq: u8,
        pub portid: U16,
        pub cntlid: U16,
        /// Admin Max SQ Size.
        pub asqsz: U16,
        pub unused_10: [u8; 22],
        /// Transport Service Identifier: the TCP port.
        pub trsvcid: [u8; 32],
        pub unused_64: [u8; 192],
        pub subnqn: [u8; 256],
        pub traddr: [u8; 256],
        pub tsas: [u8; 256],
    }

    /// LID 81h: Sanitize Status.
    pub struct SanitizeStatus[512] {
        pub sprog: U16,
        pub sstat: U16,
        pub scdw10: U32,
        /// Estimated times in seconds: overwrite, block erase, crypto erase; then the same without
        /// deallocation afterwards.
        pub estimated_times: [U32; 6],
        pub unused_32: [u8; 480],
    }

    /// LID C0h: SMART / Health Information Extended (Datacenter `NVMe` SSD Specification). Not
    /// counted: media reads, bad blocks, recovered errors, throttling, shutdowns.
    pub struct OcpSmart[512] {
        pub physical_media_units_written: U128,
        pub unused_16: [u8; 40],
        pub uncorrectable_read_error_count: U64,
        pub unused_64: [u8; 88],
        /// Namespace utilization (NUSE) of all namespaces, in 512 bytes.
        pub total_nuse: U64,
        pub unused_160: [u8; 334],
        pub log_page_version: U16,
        pub log_page_guid: [u8; 16],
    }
}
