//! The twin: a flash drive in virtual time, described by a profile.
//!
//! `Ssd` implements the `Device` contract. It stores no data, only where each unit is stored and
//! when each part of the drive is busy. It reports times and counters; a server that uses it for
//! real programs stores the data.

mod config;
mod counters;
mod ftl;
mod in_flight;
mod mirror;
mod nand;
mod read_ahead;
mod read_plan;
mod ssd;
mod study;

pub use config::{
    Buffer, Collection, ConfigError, Failure, Interface, Link, PlacementRule, PowerState, Profile,
    ReadsBack, Relocation, Slc, SlcMode, Thermal, ThrottleStep, Trim, VictimPolicy, WearLevelling,
};
pub use counters::{Cause, Counters};
pub use ftl::{LastWrite, LostUnit, Service, Superblock, SuperblockState, Wear};
pub use mirror::Mirror;
pub use nand::{ActivityLog, DieActivity, Geometry, Move, Operation, OperationKind, Timing};
pub use ssd::{PowerCut, Space, Ssd, Temperature, UnitLocation, die_rows, superblock_rows};
pub use study::Study;
