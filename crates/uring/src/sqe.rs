//! Submission queue entries (SQEs) for requests.

use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{opcode, squeue};
use ssdlab_device::Op;

use crate::buffers::Buffers;
use crate::slot::Slot;
use crate::target::Flush;

/// The registered file.
const FILE: Fixed = Fixed(0);

/// Options that apply to all requests.
#[derive(Clone, Copy, Debug)]
pub struct SqeOptions {
    pub registered_buffers: bool,
    pub flush: Flush,
}

/// An entry for the part of the slot's request that is not transferred yet.
pub fn sqe(index: usize, slot: &Slot, buffers: &Buffers, sqe_options: SqeOptions) -> squeue::Entry {
    let Slot { request, transferred, .. } = *slot;
    let offset = request.lba.bytes() + transferred;
    let length = (request.bytes() - transferred) as u32;
    let start = |buffer: usize| buffers.start(buffer).wrapping_add(transferred as usize);
    let flags = if request.durable { libc::RWF_DSYNC } else { 0 };
    let sqe = match (request.op, sqe_options.registered_buffers) {
        (Op::Read, false) => {
            let buffer = Buffers::read_index(index);
            opcode::Read::new(FILE, start(buffer), length).offset(offset).build()
        }
        (Op::Read, true) => {
            let buffer = Buffers::read_index(index);
            opcode::ReadFixed::new(FILE, start(buffer), length, buffer as u16)
                .offset(offset)
                .build()
        }
        (Op::Write, false) => {
            let buffer = buffers.write_index(index);
            opcode::Write::new(FILE, start(buffer), length).offset(offset).rw_flags(flags).build()
        }
        (Op::Write, true) => {
            let buffer = buffers.write_index(index);
            opcode::WriteFixed::new(FILE, start(buffer), length, buffer as u16)
                .offset(offset)
                .rw_flags(flags)
                .build()
        }
        (Op::Trim, _) => opcode::Fallocate::new(FILE, request.bytes())
            .offset(offset)
            .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
            .build(),
        (Op::Flush, _) => {
            let flags = match sqe_options.flush {
                Flush::Fsync => FsyncFlags::empty(),
                Flush::Fdatasync => FsyncFlags::DATASYNC,
            };
            opcode::Fsync::new(FILE).flags(flags).build()
        }
    };
    sqe.user_data(index as u64)
}
