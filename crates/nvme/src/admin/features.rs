//! Get Features and Set Features.

use std::time::Duration;

use zerocopy::IntoBytes;

use crate::controller::{Context, Controller, IO_QUEUES_MAX};
use crate::features::{DULBE, Features};
use crate::spec::command_data::FdpEventDescriptor;
use crate::spec::{BROADCAST_NSID, NSID};
use crate::sqe::{Completion, Sqe};
use crate::status::Status;
use crate::subsystem::{FDP_EVENT_TYPES, Subsystem};

/// Feature identifiers (FID).
const ARBITRATION: u8 = 0x01;
const POWER_MANAGEMENT: u8 = 0x02;
const TEMPERATURE_THRESHOLD: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const VOLATILE_WRITE_CACHE: u8 = 0x06;
const NUMBER_OF_QUEUES: u8 = 0x07;
const WRITE_ATOMICITY_NORMAL: u8 = 0x0a;
const ASYNC_EVENT_CONFIGURATION: u8 = 0x0b;
const KEEP_ALIVE_TIMER: u8 = 0x0f;
const FLEXIBLE_DATA_PLACEMENT: u8 = 0x1d;
const FDP_EVENTS: u8 = 0x1e;
const HOST_IDENTIFIER: u8 = 0x81;

/// Select (SEL) of Get Features.
const CURRENT: u32 = 0;
const DEFAULT: u32 = 1;
const SAVED: u32 = 2;
const SUPPORTED_CAPABILITIES: u32 = 3;
/// Capabilities of a feature. None is saveable.
const NAMESPACE_SPECIFIC: u32 = 1 << 1;
const CHANGEABLE: u32 = 1 << 2;

/// Number of Queues, of both kinds and zeroes based.
const QUEUES: u32 = IO_QUEUES_MAX as u32 - 1;
/// Threshold Type Select (THSEL): over and under temperature.
const OVER: u32 = 0;
const UNDER: u32 = 1;
/// Threshold Temperature Select (TMPSEL): composite; in Set Features also all sensors.
const COMPOSITE: u32 = 0;
const ALL_SENSORS: u32 = 0xf;

pub fn get(context: &mut Context<'_>) -> Result<Completion, Status> {
    let (controller, sqe) = (context.controller, context.sqe);
    let (fid, select) = (sqe.cdw(10) as u8, sqe.cdw(10) >> 8 & 7);
    let capabilities = capabilities(context.subsystem(), fid)?;
    match select {
        SUPPORTED_CAPABILITIES => return Ok(Completion::with_dw0(capabilities)),
        CURRENT | DEFAULT | SAVED => {}
        _ => return Err(Status::INVALID_FIELD),
    }
    match fid {
        FDP_EVENTS => get_fdp_events(context),
        HOST_IDENTIFIER => {
            let hostid = &controller.parameters.hostid;
            context.send(hostid, hostid.len() as u64)?;
            Ok(Completion::SUCCESS)
        }
        _ => {
            let current = controller.lock().features.clone();
            // Nothing is saved: saved values are the defaults.
            let is_current = select == CURRENT;
            let features = if is_current { current } else { Features::new(current.kato) };
            value(controller, fid, sqe.cdw(11), &features).map(Completion::with_dw0)
        }
    }
}

fn value(controller: &Controller, fid: u8, cdw11: u32, features: &Features) -> Result<u32, Status> {
    Ok(match fid {
        ARBITRATION => features.arbitration,
        ERROR_RECOVERY => features.error_recovery,
        WRITE_ATOMICITY_NORMAL => features.write_atomicity,
        VOLATILE_WRITE_CACHE => u32::from(features.write_cache),
        NUMBER_OF_QUEUES => QUEUES | QUEUES << 16,
        ASYNC_EVENT_CONFIGURATION => controller.lock().events.configuration,
        KEEP_ALIVE_TIMER => features.kato.as_millis() as u32,
        TEMPERATURE_THRESHOLD => match temperature_threshold(cdw11) {
            (COMPOSITE, OVER) => features.over_temperature.into(),
            (COMPOSITE, UNDER) => features.under_temperature.into(),
            _ => return Err(Status::INVALID_FIELD),
        },
        FLEXIBLE_DATA_PLACEMENT if cdw11 != 1 => return Err(Status::INVALID_FIELD),
        // FDP enabled (bit 0), with FDP configuration 0 (bits 15:8).
        FLEXIBLE_DATA_PLACEMENT => u32::from(controller.subsystem.handles() > 0),
        // Power Management: power state 0 is the only one.
        _ => 0,
    })
}

pub fn set(context: &Context<'_>) -> Result<Completion, Status> {
    let (sqe, subsystem) = (context.sqe, context.subsystem());
    let (fid, save) = (sqe.cdw(10) as u8, sqe.cdw(10) >> 31 != 0);
    let capabilities = capabilities(subsystem, fid)?;
    if save {
        return Err(Status::FEATURE_NOT_SAVEABLE);
    }
    if capabilities & CHANGEABLE == 0 {
        return Err(match fid {
            // Fabrics: it is set by Connect.
            HOST_IDENTIFIER => Status::COMMAND_SEQUENCE_ERROR,
            _ => Status::FEATURE_NOT_CHANGEABLE,
        });
    }
    let is_known = [0, NSID, BROADCAST_NSID].contains(&sqe.nsid());
    if !is_known || capabilities & NAMESPACE_SPECIFIC != 0 && sqe.nsid() == 0 {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    match fid {
        FLEXIBLE_DATA_PLACEMENT => set_fdp(subsystem, sqe),
        FDP_EVENTS => set_fdp_events(context),
        _ => set_value(context.controller, fid, sqe.cdw(11)),
    }
}

fn set_value(controller: &Controller, fid: u8, value: u32) -> Result<Completion, Status> {
    let mut state = controller.lock();
    let features = &mut state.features;
    match fid {
        ARBITRATION => features.arbitration = value,
        ERROR_RECOVERY => features.error_recovery = value & (DULBE | 0xffff),
        WRITE_ATOMICITY_NORMAL => features.write_atomicity = value & 1,
        VOLATILE_WRITE_CACHE => features.write_cache = value & 1 != 0,
        ASYNC_EVENT_CONFIGURATION => state.events.configuration = value,
        KEEP_ALIVE_TIMER => features.kato = Duration::from_millis(value.into()),
        TEMPERATURE_THRESHOLD => match temperature_threshold(value) {
            (COMPOSITE | ALL_SENSORS, OVER) => features.over_temperature = value as u16,
            (COMPOSITE | ALL_SENSORS, UNDER) => features.under_temperature = value as u16,
            _ => return Err(Status::INVALID_FIELD),
        },
        POWER_MANAGEMENT if value & 0x1f != 0 => return Err(Status::INVALID_FIELD),
        NUMBER_OF_QUEUES => {
            // NSQR and NCQR; 65535 is invalid.
            let (submission, completion) = (value & 0xffff, value >> 16);
            if submission == 0xffff || completion == 0xffff {
                return Err(Status::INVALID_FIELD);
            }
            let allocated = submission.min(QUEUES) | completion.min(QUEUES) << 16;
            return Ok(Completion::with_dw0(allocated));
        }
        _ => {}
    }
    Ok(Completion::SUCCESS)
}

/// TMPSEL and THSEL of Temperature Threshold.
fn temperature_threshold(cdw11: u32) -> (u32, u32) {
    (cdw11 >> 16 & 0xf, cdw11 >> 20 & 3)
}

/// Capabilities of a feature; an error if it is not supported.
fn capabilities(subsystem: &Subsystem, fid: u8) -> Result<u32, Status> {
    let has_fdp = subsystem.geometry.streams > 0;
    match fid {
        FLEXIBLE_DATA_PLACEMENT | FDP_EVENTS if !has_fdp => Err(Status::INVALID_FIELD),
        VOLATILE_WRITE_CACHE if !subsystem.is_volatile => Err(Status::INVALID_FIELD),
        ERROR_RECOVERY | FDP_EVENTS => Ok(CHANGEABLE | NAMESPACE_SPECIFIC),
        ARBITRATION
        | POWER_MANAGEMENT
        | TEMPERATURE_THRESHOLD
        | VOLATILE_WRITE_CACHE
        | NUMBER_OF_QUEUES
        | WRITE_ATOMICITY_NORMAL
        | ASYNC_EVENT_CONFIGURATION
        | KEEP_ALIVE_TIMER
        | FLEXIBLE_DATA_PLACEMENT => Ok(CHANGEABLE),
        HOST_IDENTIFIER => Ok(0),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Enables or disables flexible data placement, which requires that no namespace exists.
fn set_fdp(subsystem: &Subsystem, sqe: &Sqe) -> Result<Completion, Status> {
    let (endgid, cdw12) = (sqe.cdw(11), sqe.cdw(12));
    let configuration = cdw12 >> 8 & 0xff;
    if endgid != 1 || configuration != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if subsystem.lock().namespace.is_some() {
        return Err(Status::COMMAND_SEQUENCE_ERROR);
    }
    subsystem.lock().fdp.is_disabled = cdw12 & 1 == 0;
    Ok(Completion::SUCCESS)
}

/// Enables or disables event types of a placement handle.
fn set_fdp_events(context: &Context<'_>) -> Result<Completion, Status> {
    let (handle, count) = fdp_events_selection(context.sqe);
    let event_types = context.payload(count)?;
    check_handle(context.subsystem(), handle)?;
    if event_types.iter().any(|event_type| !FDP_EVENT_TYPES.contains(event_type)) {
        return Err(Status::INVALID_FIELD);
    }
    let enable = context.sqe.cdw(12) & 1 != 0;
    let mut state = context.subsystem().lock();
    for event_type in event_types {
        state.fdp.enable(handle, *event_type, enable);
    }
    Ok(Completion::SUCCESS)
}

/// Supported event types of a placement handle, and which are enabled.
fn get_fdp_events(context: &mut Context<'_>) -> Result<Completion, Status> {
    let (handle, count) = fdp_events_selection(context.sqe);
    let subsystem = context.subsystem();
    check_handle(subsystem, handle)?;
    let state = subsystem.lock();
    let descriptors = FDP_EVENT_TYPES.map(|event_type| {
        let fdpeta = state.fdp.is_enabled(handle, event_type).into();
        FdpEventDescriptor { event_type, fdpeta }
    });
    context.send(descriptors.as_bytes(), (size_of::<FdpEventDescriptor>() * count) as u64)?;
    Ok(Completion::with_dw0(FDP_EVENT_TYPES.len() as u32))
}

fn check_handle(subsystem: &Subsystem, handle: u32) -> Result<(), Status> {
    match subsystem.view().handles {
        0 => Err(Status::FDP_DISABLED),
        handles if handle >= handles => Err(Status::INVALID_FIELD),
        _ => Ok(()),
    }
}

/// CDW11 of FDP Events: placement handle, and number of event types.
fn fdp_events_selection(sqe: &Sqe) -> (u32, usize) {
    (sqe.cdw(11) & 0xffff, (sqe.cdw(11) >> 16 & 0xff) as usize)
}
