//! Feature identifiers (FID) of Get Features and Set Features.

pub const ARBITRATION: u8 = 0x01;
pub const POWER_MANAGEMENT: u8 = 0x02;
pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
pub const ERROR_RECOVERY: u8 = 0x05;
pub const VOLATILE_WRITE_CACHE: u8 = 0x06;
pub const NUMBER_OF_QUEUES: u8 = 0x07;
pub const WRITE_ATOMICITY_NORMAL: u8 = 0x0a;
pub const ASYNC_EVENT_CONFIGURATION: u8 = 0x0b;
pub const KEEP_ALIVE_TIMER: u8 = 0x0f;
pub const FLEXIBLE_DATA_PLACEMENT: u8 = 0x1d;
pub const FDP_EVENTS: u8 = 0x1e;
pub const HOST_IDENTIFIER: u8 = 0x81;
