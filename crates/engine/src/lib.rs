//! A served drive without a protocol: commands in, their effect on the drive and on its bytes.
//!
//! `Engine` joins a `Drive` (a device in virtual time that can lose power) and a `Store` (the
//! content). Protocols give it commands in batches; it returns when each may be answered.

pub mod buffer_pool;
mod command;
mod drive;
mod engine;
pub mod errno;
pub mod failpoints;
mod fault;
mod latency_compensation;
mod meter;
pub mod pacing;
mod payload;
mod power;
mod restore;
mod send_buffer;
mod state;
mod store;
pub mod sync;
pub mod wait;

pub use command::{Command, CommandResult, DriveParameters, Operation, TRANSFER_MAX};
pub use drive::{Counter, Drive, Geometry, Health, LostWrites, PowerCutLoss};
pub use engine::{BlockStatusFn, DriveStatus, Engine, ExtentQuery};
pub use fault::{FaultSpec, FaultStatus, Kind as FaultKind, OperationKind};
pub use latency_compensation::{LatencyCompensation, SHORT_REPLY_BYTES};
pub use meter::OperationStats;
pub use pacing::{Clock, Pace, ReplyLateness};
pub use payload::Payload;
pub use power::{Epoch, PowerCutPlan, PowerStatus};
pub use restore::restore;
pub use send_buffer::{PIECES_MAX, SendBuffer, SendPosition};
pub use state::Accepted;
pub use store::{MARK_MAX, ReceiveMemory, Store, WriteLog};
