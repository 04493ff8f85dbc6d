//! A served drive without a protocol: executes commands on the drive and on its content.
//!
//! `Engine` joins a `Drive`, which is a device in virtual time that can lose power, and a `Store`,
//! which has the content. Protocols submit commands in batches; the engine returns when each of
//! them may be answered. `state.rs` says what sees each command: faults, statistics, power cuts and
//! the write log.

pub mod buffer_pool;
mod command;
mod content;
mod drive;
mod engine;
pub mod errno;
pub mod failpoints;
mod fault;
mod layer;
mod meter;
pub mod pacing;
mod power;
mod send_buffer;
mod state;
mod store;
pub mod sync;
pub mod wait;
mod write_log;

pub use command::{
    Accepted, Command, CommandResult, Operation, OperationKind, TRANSFER_MAX, WriteCorruption,
};
pub use content::{Content, Payload};
pub use drive::{
    Counter, Drive, DriveParameters, Geometry, Health, Inside, LostWrites, PowerCutLoss, restore,
};
pub use engine::{BlockStatusFn, Engine, ExtentQuery, PowerControl};
pub use fault::{Fault, FaultSpec, Faults, Kind as FaultKind};
pub use meter::{Meter, OperationStats};
pub use pacing::{Clock, LatencyCompensation, Pace, ReplyLateness, SHORT_REPLY_BYTES};
pub use power::{Epoch, PowerCutPlan, PowerStatus};
pub use send_buffer::{PIECES_MAX, SendBuffer, SendPosition};
pub use state::{DriveState, DriveStatus};
pub use store::{ReceiveMemory, Store};
pub use write_log::{MARK_MAX, WriteLog};
