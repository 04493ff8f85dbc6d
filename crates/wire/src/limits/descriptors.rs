//! `SpareDescriptors`: spare file descriptors, so that connections can be accepted when the process
//! has no other left: those of the control socket are served, all others are closed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use ssdlab_engine::sync::lock;

use crate::connection::Connection;

/// Number of spare descriptors.
const SPARE: usize = 8;

/// What to do with a connection that took a spare descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExhaustion {
    /// Close it.
    Refuse,
    /// Serve it.
    Serve,
}

#[derive(Debug)]
pub struct SpareDescriptors {
    /// Locked while a connection is accepted, so that no other thread takes the freed descriptor.
    spare: Mutex<Vec<OwnedFd>>,
}

impl Default for SpareDescriptors {
    fn default() -> Self {
        let descriptors = Self { spare: Mutex::default() };
        descriptors.refill();
        descriptors
    }
}

impl SpareDescriptors {
    /// Accepts a connection; if the process has no descriptor left, with a spare one. `None` if it
    /// was closed for this reason.
    pub fn accept(
        &self,
        exhausted: OnExhaustion,
        accept: impl Fn() -> io::Result<Connection>,
    ) -> io::Result<Option<Connection>> {
        let mut spare = lock(&self.spare);
        refill(&mut spare);
        let error = match accept() {
            Err(error) if is_exhausted(&error) => error,
            other => return other.map(Some),
        };
        // One spare descriptor stays, so that further connections can be refused.
        let needed = if exhausted == OnExhaustion::Serve { 2 } else { 1 };
        if spare.len() < needed {
            return Err(error);
        }
        drop(spare.pop());
        let accepted = accept();
        if accepted.is_ok() && exhausted == OnExhaustion::Serve {
            return accepted.map(Some);
        }
        let refused = accepted.map(|_| None);
        refill(&mut spare);
        refused
    }

    /// Opens spare descriptors again, if the system allows it.
    pub fn refill(&self) {
        refill(&mut lock(&self.spare));
    }
}

fn refill(spare: &mut Vec<OwnedFd>) {
    while spare.len() < SPARE {
        let Ok(descriptor) = eventfd(0, EventfdFlags::CLOEXEC) else { return };
        spare.push(descriptor);
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| number == Some(errno.raw_os_error()))
}
