//! I/O Management Receive and I/O Management Send: reclaim unit handles.

use ssdlab_engine::DriveState;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::controller::Context;
use crate::namespace::NamespaceView;
use crate::spec::command_data::{ReclaimUnitHandleStatus, ReclaimUnitHandleStatusDescriptor};
use crate::spec::log_page::fdp_event::RU_NOT_FULLY_WRITTEN;
use crate::status::{CommandError, Status};

/// Management Operation (MO).
const NO_ACTION: u8 = 0;
const RECLAIM_UNIT_HANDLE_STATUS: u8 = 1;
const RECLAIM_UNIT_HANDLE_UPDATE: u8 = 1;

pub fn receive(context: &mut Context<'_>, view: &NamespaceView) -> Result<(), Status> {
    match context.sqe.cdw(10) as u8 {
        NO_ACTION => Ok(()),
        RECLAIM_UNIT_HANDLE_STATUS => {
            let length = (u64::from(context.sqe.cdw(11)) + 1) * 4;
            let status = reclaim_unit_handle_status(context, view);
            context.send(&status, length)
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

/// The room in each handle's reclaim unit.
fn reclaim_unit_handle_status(context: &Context<'_>, view: &NamespaceView) -> Vec<u8> {
    let rooms = context.subsystem().engine.inspect(DriveState::stream_rooms);
    let descriptors =
        rooms.iter().take(view.handles as usize).zip(0_u16..).map(|(room, handle)| {
            ReclaimUnitHandleStatusDescriptor {
                pid: handle.into(),
                ruhid: handle.into(),
                ruamw: (room >> view.lbads).into(),
                ..ReclaimUnitHandleStatusDescriptor::new_zeroed()
            }
        });
    let descriptors: Vec<ReclaimUnitHandleStatusDescriptor> = descriptors.collect();
    let nruhsd = (descriptors.len() as u16).into();
    let header = ReclaimUnitHandleStatus { unused_0: [0; 14], nruhsd };
    [header.as_bytes(), descriptors.as_bytes()].concat()
}

pub fn send(context: &Context<'_>, view: &NamespaceView) -> Result<(), CommandError> {
    match context.sqe.cdw(10) as u8 {
        NO_ACTION => Ok(()),
        RECLAIM_UNIT_HANDLE_UPDATE => update_handles(context, view),
        _ => Err(Status::INVALID_FIELD.into()),
    }
}

/// Gives handles new reclaim units; the old ones are left as they are, full or not.
fn update_handles(context: &Context<'_>, view: &NamespaceView) -> Result<(), CommandError> {
    let count = (context.sqe.cdw(10) >> 16) as usize + 1;
    let payload = context.payload(count * size_of::<U16>())?;
    let pids = <[U16]>::ref_from_bytes(payload).expect("whole identifiers");
    let is_valid = |pid: &U16| u32::from(pid.get()) < view.handles;
    if count > view.handles as usize || !pids.iter().all(is_valid) {
        return Err(Status::INVALID_FIELD.into());
    }
    let subsystem = context.subsystem();
    for pid in pids.iter().map(|pid| pid.get()) {
        let epoch = context.controller.parameters.epoch;
        let renewed = subsystem.engine.renew_stream(epoch, pid.into());
        if renewed.ok_or(CommandError::PowerLost)? {
            subsystem.record_fdp_event(RU_NOT_FULLY_WRITTEN, pid, pid);
        }
    }
    Ok(())
}
