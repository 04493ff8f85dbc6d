//! `Features`: what a host sets and asks of a controller by Set Features and Get Features.

use std::time::Duration;

use super::controller::{Controller, QUEUES_MAX};
use super::sqe::{Completion, HostData, Sqe};
use super::status::Status;
use super::subsystem::{ALL, NAMESPACE};

const ARBITRATION: u8 = 0x01;
const POWER_STATE: u8 = 0x02;
const TEMPERATURE_THRESHOLD: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const WRITE_CACHE: u8 = 0x06;
const QUEUES: u8 = 0x07;
const WRITE_ATOMICITY: u8 = 0x0a;
const EVENTS: u8 = 0x0b;
const KEEP_ALIVE: u8 = 0x0f;
const PLACEMENT: u8 = 0x1d;
const PLACEMENT_EVENTS: u8 = 0x1e;
const HOST: u8 = 0x81;

/// A read of what is not mapped fails: bit 16 of error recovery.
const UNWRITTEN_FAILS: u32 = 1 << 16;
/// Warnings at these temperatures, in kelvin, where nobody sets others.
const HOT: u16 = 343;
/// Which value of a feature is asked for.
const CURRENT: u32 = 0;
const DEFAULT: u32 = 1;
const SAVED: u32 = 2;
const CAPABILITIES: u32 = 3;
/// Of a capability: it is the namespace's own, it can be changed.
const OF_NAMESPACE: u32 = 1 << 1;
const CHANGEABLE: u32 = 1 << 2;

/// The settings of one controller; none outlives it.
#[derive(Clone, Debug)]
pub struct Features {
    arbitration: u32,
    error_recovery: u32,
    write_atomicity: u32,
    /// Whether the write cache may answer for the flash.
    pub write_cache: bool,
    /// The host is gone if nothing is heard of it for so long; zero: never.
    pub patience: Duration,
    /// From here on it is too hot, and up to here too cold, in kelvin.
    pub hot: u16,
    pub cold: u16,
}

impl Features {
    /// As they are where nothing was set.
    pub fn new(patience: Duration) -> Self {
        Self {
            arbitration: 0,
            error_recovery: 0,
            write_atomicity: 0,
            write_cache: true,
            patience,
            hot: HOT,
            cold: 0,
        }
    }

    /// Whether to read what is not mapped is an error.
    pub fn unwritten_fails(&self) -> bool {
        self.error_recovery & UNWRITTEN_FAILS != 0
    }
}

impl Controller {
    /// Answers Get Features.
    pub(crate) fn get_feature(
        &self,
        sqe: &Sqe,
        data: &mut dyn HostData,
    ) -> Result<Completion, Status> {
        let (feature, select) = (sqe.cdw(10) as u8, sqe.cdw(10) >> 8 & 7);
        let changes = self.changes(feature)?;
        match select {
            CAPABILITIES => return Ok(Completion::with_dw0(changes)),
            CURRENT | DEFAULT | SAVED => {}
            _ => return Err(Status::INVALID_FIELD),
        }
        if feature == PLACEMENT_EVENTS {
            return self.get_events(sqe, data);
        }
        if feature == HOST {
            if data.length() < self.hostid.len() {
                return Err(Status::DATA_SGL_LENGTH_INVALID);
            }
            data.send(&self.hostid);
            return Ok(Completion::SUCCESS);
        }
        // Nothing is saved: what is saved is what it is at first.
        let fresh = Features::new(self.lock().features.patience);
        let features = if select == CURRENT { self.lock().features.clone() } else { fresh };
        self.feature(feature, sqe.cdw(11), &features).map(Completion::with_dw0)
    }

    /// A feature's value.
    fn feature(&self, feature: u8, asked: u32, features: &Features) -> Result<u32, Status> {
        Ok(match feature {
            ARBITRATION => features.arbitration,
            ERROR_RECOVERY => features.error_recovery,
            WRITE_ATOMICITY => features.write_atomicity,
            WRITE_CACHE => u32::from(features.write_cache),
            QUEUES => (QUEUES_MAX - 1) | (QUEUES_MAX - 1) << 16,
            EVENTS => self.lock().events.told,
            KEEP_ALIVE => features.patience.as_millis() as u32,
            TEMPERATURE_THRESHOLD => match (asked >> 16 & 0xf, asked >> 20 & 3) {
                (0, 0) => features.hot.into(),
                (0, 1) => features.cold.into(),
                _ => return Err(Status::INVALID_FIELD),
            },
            PLACEMENT if asked != 1 => return Err(Status::INVALID_FIELD),
            // On or off, by the only configuration.
            PLACEMENT => u32::from(self.subsystem.streams() > 0),
            // The power state: there is one.
            _ => 0,
        })
    }

    /// Does Set Features.
    pub(crate) fn set_feature(&self, sqe: &Sqe, sent: &[u8]) -> Result<Completion, Status> {
        let (feature, value) = (sqe.cdw(10) as u8, sqe.cdw(11));
        let changes = self.changes(feature)?;
        if sqe.cdw(10) >> 31 != 0 {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        if changes & CHANGEABLE == 0 {
            return Err(match feature {
                HOST => Status::COMMAND_SEQUENCE_ERROR,
                _ => Status::FEATURE_NOT_CHANGEABLE,
            });
        }
        let named = [0, NAMESPACE, ALL].contains(&sqe.nsid());
        if !named || changes & OF_NAMESPACE != 0 && sqe.nsid() == 0 {
            return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
        }
        match feature {
            PLACEMENT => return self.set_placement(sqe),
            PLACEMENT_EVENTS => return self.set_events(sqe, sent),
            _ => {}
        }
        let mut state = self.lock();
        match feature {
            ARBITRATION => state.features.arbitration = value,
            ERROR_RECOVERY => state.features.error_recovery = value & (UNWRITTEN_FAILS | 0xffff),
            WRITE_ATOMICITY => state.features.write_atomicity = value & 1,
            WRITE_CACHE => state.features.write_cache = value & 1 != 0,
            EVENTS => state.events.told = value,
            KEEP_ALIVE => state.features.patience = Duration::from_millis(value.into()),
            TEMPERATURE_THRESHOLD => match (value >> 16 & 0xf, value >> 20 & 3) {
                (0 | 0xf, 0) => state.features.hot = value as u16,
                (0 | 0xf, 1) => state.features.cold = value as u16,
                _ => return Err(Status::INVALID_FIELD),
            },
            POWER_STATE if value & 0x1f != 0 => return Err(Status::INVALID_FIELD),
            QUEUES if value as u16 == u16::MAX || value >> 16 == 0xffff => {
                return Err(Status::INVALID_FIELD);
            }
            QUEUES => {
                let most = |asked: u32| asked.min(QUEUES_MAX - 1);
                let given = most(value & 0xffff) | most(value >> 16) << 16;
                return Ok(Completion::with_dw0(given));
            }
            _ => {}
        }
        Ok(Completion::SUCCESS)
    }

    /// What can be done with a feature.
    ///
    /// # Errors
    /// There is no such one here.
    fn changes(&self, feature: u8) -> Result<u32, Status> {
        let places = self.subsystem.geometry.streams > 0;
        match feature {
            PLACEMENT | PLACEMENT_EVENTS if !places => Err(Status::INVALID_FIELD),
            ERROR_RECOVERY | PLACEMENT_EVENTS => Ok(CHANGEABLE | OF_NAMESPACE),
            WRITE_CACHE if !self.subsystem.is_volatile => Err(Status::INVALID_FIELD),
            ARBITRATION
            | POWER_STATE
            | TEMPERATURE_THRESHOLD
            | WRITE_CACHE
            | QUEUES
            | WRITE_ATOMICITY
            | EVENTS
            | KEEP_ALIVE
            | PLACEMENT => Ok(CHANGEABLE),
            HOST => Ok(0),
            _ => Err(Status::INVALID_FIELD),
        }
    }
}
