//! `Features`: values of the features that a controller keeps.

use std::time::Duration;

/// Deallocated or Unwritten Logical Block Error Enable: bit 16 of Error Recovery.
pub const DULBE: u32 = 1 << 16;
/// Default over temperature threshold, in kelvin.
const OVER_TEMPERATURE: u16 = 343;

/// Feature values of one controller. None is saved across controllers.
#[derive(Clone, Debug)]
pub struct Features {
    pub arbitration: u32,
    /// DULBE (bit 16) and TLER (bits 15:0).
    pub error_recovery: u32,
    pub write_atomicity: u32,
    /// Volatile write cache enabled (WCE).
    pub write_cache: bool,
    /// Keep Alive Timeout (KATO); zero disables it.
    pub kato: Duration,
    /// Over and under temperature thresholds, in kelvin.
    pub over_temperature: u16,
    pub under_temperature: u16,
}

impl Features {
    pub fn new(kato: Duration) -> Self {
        Self {
            arbitration: 0,
            error_recovery: 0,
            write_atomicity: 0,
            write_cache: true,
            kato,
            over_temperature: OVER_TEMPERATURE,
            under_temperature: 0,
        }
    }

    pub fn dulbe(&self) -> bool {
        self.error_recovery & DULBE != 0
    }
}
