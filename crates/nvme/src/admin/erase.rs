//! Format NVM and Sanitize.

use crate::context::Context;
use crate::namespace::{LBA_FORMATS, Namespace};
use crate::spec::{BROADCAST_NSID, NSID};
use crate::sqe::Completion;
use crate::status::{CommandError, Status};

/// Sanitize Action (SANACT).
const EXIT_FAILURE_MODE: u32 = 1;
const BLOCK_ERASE: u32 = 2;
const CRYPTO_ERASE: u32 = 4;
/// The highest Secure Erase Settings (SES): cryptographic erase.
const SES_MAX: u32 = 2;

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
