//! Compare.

use ssdlab_engine::Operation;

use super::{check_length, check_mapped};
use crate::context::Context;
use crate::drive_io::DriveIo;
use crate::status::{CommandError, Status};
use crate::view::NamespaceView;

pub fn compare(
    context: &Context<'_>,
    view: &NamespaceView,
    drive: &mut DriveIo<'_>,
) -> Result<(), CommandError> {
    let payload = context.data.payload();
    let command = view.command(Operation::Read, context.sqe)?;
    check_length(&command, payload.len())?;
    check_mapped(context.controller, view, &command)?;
    let bytes = drive.read(command)?;
    if bytes != payload[..bytes.len()] {
        return Err(Status::COMPARE_FAILURE.into());
    }
    Ok(())
}
