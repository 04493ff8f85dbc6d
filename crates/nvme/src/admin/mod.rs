//! Admin commands.

mod features;
mod get_lba_status;
mod get_log_page;
mod identify;
mod namespace;

use super::controller::Context;
use super::opcode::admin::{
    ABORT, ASYNC_EVENT_REQUEST, FORMAT_NVM, GET_FEATURES, GET_LBA_STATUS, GET_LOG_PAGE, IDENTIFY,
    KEEP_ALIVE, NAMESPACE_ATTACHMENT, NAMESPACE_MANAGEMENT, SANITIZE, SET_FEATURES,
};
use super::sqe::Completion;
use super::status::{CommandError, Status};

/// Executes an admin command; `None` if it completes when an event occurs.
pub fn execute(context: &mut Context<'_>) -> Result<Option<Completion>, CommandError> {
    let (controller, sqe) = (context.controller, context.sqe);
    if !controller.is_ready() {
        return Err(Status::COMMAND_SEQUENCE_ERROR.into());
    }
    if sqe.fuse() != 0 {
        return Err(Status::INVALID_FIELD.into());
    }
    context.subsystem().view().check_mdts(true, sqe)?;
    let completion = match sqe.opcode() {
        ASYNC_EVENT_REQUEST => {
            controller.lock().events.request(sqe.cid())?;
            return Ok(None);
        }
        ABORT => abort(context),
        KEEP_ALIVE => Completion::SUCCESS,
        IDENTIFY => identify::identify(context)?,
        GET_LOG_PAGE => get_log_page::get_log_page(context)?,
        GET_FEATURES => features::get(context)?,
        SET_FEATURES => features::set(context)?,
        _ if controller.is_discovery() => return Err(Status::INVALID_OPCODE.into()),
        NAMESPACE_MANAGEMENT => namespace::management(context)?,
        NAMESPACE_ATTACHMENT => namespace::attachment(context)?,
        GET_LBA_STATUS => get_lba_status::get_lba_status(context)?,
        FORMAT_NVM => namespace::format_nvm(context)?,
        SANITIZE => namespace::sanitize(context)?,
        _ => return Err(Status::INVALID_OPCODE.into()),
    };
    Ok(Some(completion))
}

/// Abort. Only Asynchronous Event Requests can be aborted: all other commands complete first.
fn abort(context: &Context<'_>) -> Completion {
    let (sqid, cid) = (context.sqe.cdw(10) as u16, (context.sqe.cdw(10) >> 16) as u16);
    let is_aborted = sqid == 0 && context.controller.lock().events.abort(cid);
    // Bit 0 of DW0: the command was not aborted.
    Completion::with_dw0(u32::from(!is_aborted))
}
