//! Namespace Management and Attachment, Format NVM, Sanitize. A smaller namespace leaves the drive
//! more spare.

use zerocopy::FromBytes;

use crate::controller::Context;
use crate::namespace::{LBA_FORMATS, Namespace};
use crate::spec::command_data::NamespaceManagement;
use crate::spec::identify::ControllerList;
use crate::spec::{BROADCAST_NSID, NSID};
use crate::sqe::Completion;
use crate::status::{CommandError, Status};
use crate::subsystem::Subsystem;

/// Select (SEL) of Namespace Management and of Namespace Attachment.
const CREATE: u32 = 0;
const DELETE: u32 = 1;
const ATTACH: u32 = 0;
const DETACH: u32 = 1;

/// Sanitize Action (SANACT).
const EXIT_FAILURE_MODE: u32 = 1;
const BLOCK_ERASE: u32 = 2;
const CRYPTO_ERASE: u32 = 4;
/// The highest Secure Erase Settings (SES): cryptographic erase.
const SES_MAX: u32 = 2;

pub fn management(context: &Context<'_>) -> Result<Completion, CommandError> {
    match context.sqe.cdw(10) & 0xf {
        CREATE => Ok(create(context)?),
        DELETE => delete(context),
        _ => Err(Status::INVALID_FIELD.into()),
    }
}

fn create(context: &Context<'_>) -> Result<Completion, Status> {
    let csi = context.sqe.cdw(11) >> 24;
    if csi != 0 {
        return Err(Status::IO_COMMAND_SET_NOT_SUPPORTED);
    }
    let payload = context.payload(size_of::<NamespaceManagement>())?;
    let data = NamespaceManagement::ref_from_bytes(payload).expect("a page without alignment");
    let namespace = new_namespace(context.subsystem(), data)?;
    context.subsystem().change_namespace(|current| {
        if current.is_some() {
            return Err(Status::NAMESPACE_IDENTIFIER_UNAVAILABLE);
        }
        *current = Some(namespace);
        Ok(Completion::with_dw0(NSID))
    })
}

fn new_namespace(subsystem: &Subsystem, data: &NamespaceManagement) -> Result<Namespace, Status> {
    let (nsze, ncap) = (data.nsze.get(), data.ncap.get());
    let lba_format = usize::from(data.flbas);
    if lba_format >= LBA_FORMATS.len() || data.dps != 0 {
        return Err(Status::INVALID_FORMAT);
    }
    let has_group = data.anagrpid != 0 || data.nvmsetid != 0 || data.endgid.get() > 1;
    if data.nmic != 0 || has_group || nsze == 0 || ncap > nsze {
        return Err(Status::INVALID_FIELD);
    }
    if ncap < nsze {
        return Err(Status::THIN_PROVISIONING_NOT_SUPPORTED);
    }
    if nsze > subsystem.engine.parameters.capacity >> LBA_FORMATS[lba_format] {
        return Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY);
    }
    let handles = placement_handles(subsystem, data)?;
    let bytes = nsze << LBA_FORMATS[lba_format];
    Ok(Namespace { lba_format, bytes, handles, is_attached: false })
}

/// The number of placement handles. Only the first reclaim unit handles, in their order, are
/// supported; without a list the namespace gets all.
fn placement_handles(subsystem: &Subsystem, data: &NamespaceManagement) -> Result<u32, Status> {
    let (count, handles) = (u32::from(data.nphndls.get()), subsystem.handles());
    let mut listed = data.phndl.iter().take(count as usize).zip(0..);
    match count {
        0 => Ok(handles),
        _ if count > handles => Err(Status::INVALID_PLACEMENT_HANDLE_LIST),
        _ if listed.any(|(ruhid, placement_handle)| ruhid.get() != placement_handle) => {
            Err(Status::INVALID_PLACEMENT_HANDLE_LIST)
        }
        _ => Ok(count),
    }
}

/// Deletes the namespace and erases all content.
fn delete(context: &Context<'_>) -> Result<Completion, CommandError> {
    let (subsystem, nsid) = (context.subsystem(), context.sqe.nsid());
    let deleted = match nsid {
        NSID | BROADCAST_NSID => subsystem.change_namespace(Option::take),
        _ => None,
    };
    match deleted {
        Some(namespace) => {
            let erased = context.controller.drive_io().erase();
            if erased.is_err() {
                subsystem.change_namespace(|current| *current = Some(namespace));
            }
            erased?;
        }
        // To delete all namespaces without having one succeeds.
        None if nsid == BROADCAST_NSID => {}
        None => return Err(Status::INVALID_NAMESPACE_OR_FORMAT.into()),
    }
    Ok(Completion::SUCCESS)
}

/// Attaches the namespace to all controllers, or detaches it from all.
pub fn attachment(context: &Context<'_>) -> Result<Completion, Status> {
    let (subsystem, sqe) = (context.subsystem(), context.sqe);
    let attach = match sqe.cdw(10) & 0xf {
        ATTACH => true,
        DETACH => false,
        _ => return Err(Status::INVALID_FIELD),
    };
    let payload = context.payload(size_of::<ControllerList>())?;
    let list = ControllerList::ref_from_bytes(payload).expect("a page without alignment");
    if sqe.nsid() != NSID || subsystem.lock().namespace.is_none() {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let ids = list.ids.get(..list.numids.get().into()).unwrap_or_default();
    let controllers = subsystem.lock().io_controllers.clone();
    let is_valid = !ids.is_empty()
        && ids.is_sorted_by(|one, next| one.get() < next.get())
        && ids.iter().all(|id| controllers.contains(&id.get()));
    if !is_valid {
        return Err(Status::CONTROLLER_LIST_INVALID);
    }
    subsystem.change_namespace(|namespace| match namespace {
        None => Err(Status::INVALID_NAMESPACE_OR_FORMAT),
        Some(namespace) if namespace.is_attached == attach => Err(if attach {
            Status::NAMESPACE_ALREADY_ATTACHED
        } else {
            Status::NAMESPACE_NOT_ATTACHED
        }),
        Some(namespace) => {
            namespace.is_attached = attach;
            Ok(Completion::SUCCESS)
        }
    })
}

pub fn format_nvm(context: &Context<'_>) -> Result<Completion, CommandError> {
    let (subsystem, nsid) = (context.subsystem(), context.sqe.nsid());
    let cdw10 = context.sqe.cdw(10);
    let (lba_format, ses) = ((cdw10 & 0xf) as usize, cdw10 >> 9 & 7);
    let is_active = nsid == NSID && subsystem.active_namespace().is_some();
    if !is_active && nsid != BROADCAST_NSID {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT.into());
    }
    // MSET, PI and PIL (no metadata, no protection), and LBAFU.
    if lba_format >= LBA_FORMATS.len() || cdw10 >> 4 & 0x1f != 0 || cdw10 >> 12 & 3 != 0 {
        return Err(Status::INVALID_FORMAT.into());
    }
    if ses > SES_MAX {
        return Err(Status::INVALID_FIELD.into());
    }
    context.controller.drive_io().erase()?;
    let set = |namespace: &mut Namespace| namespace.lba_format = lba_format;
    subsystem.change_namespace(|namespace| namespace.as_mut().map(set));
    Ok(Completion::SUCCESS)
}

pub fn sanitize(context: &Context<'_>) -> Result<Completion, CommandError> {
    let cdw10 = context.sqe.cdw(10);
    match cdw10 & 7 {
        EXIT_FAILURE_MODE => {}
        BLOCK_ERASE | CRYPTO_ERASE => {
            context.controller.drive_io().erase()?;
            context.subsystem().lock().scdw10 = cdw10;
        }
        _ => return Err(Status::INVALID_FIELD.into()),
    }
    Ok(Completion::SUCCESS)
}
