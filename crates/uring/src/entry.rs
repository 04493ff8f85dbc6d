//! What the kernel is asked for: one submission queue entry for the rest of a slot's request.

use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{opcode, squeue};
use ssdlab_device::Op;

use crate::buffers::Buffers;
use crate::slot::Slot;
use crate::target::Flush;

/// The only file that the ring knows.
const FILE: Fixed = Fixed(0);

/// How requests are put.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub registered_buffers: bool,
    pub flush: Flush,
}

/// The part of the slot's request that is not moved yet.
pub fn entry(index: usize, slot: &Slot, buffers: &Buffers, manner: Manner) -> squeue::Entry {
    let Slot { request, moved, .. } = *slot;
    let offset = request.lba.bytes() + moved;
    let length = (request.bytes() - moved) as u32;
    let start = |buffer: usize| buffers.start(buffer).wrapping_add(moved as usize);
    let flags = if request.durable { libc::RWF_DSYNC } else { 0 };
    let entry = match (request.op, manner.registered_buffers) {
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
            let flags = match manner.flush {
                Flush::Fsync => FsyncFlags::empty(),
                Flush::Fdatasync => FsyncFlags::DATASYNC,
            };
            opcode::Fsync::new(FILE).flags(flags).build()
        }
    };
    entry.user_data(index as u64)
}
