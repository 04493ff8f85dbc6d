//! The twin: a flash drive in virtual time, described by a profile.
//!
//! `Ssd` keeps the `Device` contract. It holds no data, only where data would lie and when what is
//! busy: it tells times and counts, and whoever serves it to real programs keeps the bytes.

mod ahead;
mod cause;
mod config;
mod counters;
mod flight;
mod ftl;
mod inside;
mod nand;
mod plan;
mod ssd;
mod study;

pub use config::{
    Buffer, Collection, ConfigError, Failure, Interface, Link, PlacementRule, Profile, ReadsBack,
    Relocation, Slc, SlcMode, Trim, VictimPolicy, WearLevelling,
};
pub use counters::{Counters, Wear};
pub use ftl::{LostUnit, Service};
pub use inside::{Superblock, SuperblockState, Whereabouts};
pub use nand::{Geometry, Timing};
pub use ssd::{PowerCut, Ssd};
pub use study::Study;
