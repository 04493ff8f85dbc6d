//! `Descriptors`: file descriptors that are kept back, so that connections can be accepted where
//! none is left: the control socket's are served, all others are closed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::connection::Connection;

/// So many are kept back.
const SPARE: usize = 8;

/// What becomes of a connection for which a descriptor had to be spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// It is closed.
    Refuse,
    /// It is served.
    Serve,
}

/// What became of one.
#[derive(Debug)]
pub enum Accepted {
    /// It was accepted.
    Connection(Connection),
    /// It was closed.
    Refused,
}

/// Descriptors that are kept back.
#[derive(Debug)]
pub struct Descriptors {
    /// Held while a connection is accepted: nobody else takes what is spared for it.
    spare: Mutex<Vec<OwnedFd>>,
}

impl Default for Descriptors {
    fn default() -> Self {
        let descriptors = Self { spare: Mutex::default() };
        descriptors.refill();
        descriptors
    }
}

impl Descriptors {
    /// Accepts a connection, with a spare descriptor where no other is left.
    ///
    /// # Errors
    /// As `accept` has it.
    pub fn accept(
        &self,
        exhausted: Exhausted,
        accept: impl Fn() -> io::Result<Connection>,
    ) -> io::Result<Accepted> {
        let mut spare = self.lock();
        refill(&mut spare);
        let error = match accept() {
            Err(error) if is_exhausted(&error) => error,
            other => return other.map(Accepted::Connection),
        };
        // One is left, so that others can be refused.
        let least = if exhausted == Exhausted::Serve { 2 } else { 1 };
        if spare.len() < least {
            return Err(error);
        }
        drop(spare.pop());
        match (accept(), exhausted) {
            (Ok(link), Exhausted::Serve) => Ok(Accepted::Connection(link)),
            (Ok(link), Exhausted::Refuse) => {
                drop(link);
                refill(&mut spare);
                Ok(Accepted::Refused)
            }
            (Err(error), _) => {
                refill(&mut spare);
                Err(error)
            }
        }
    }

    /// Keeps back as many as should be, as far as there are any.
    pub fn refill(&self) {
        refill(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.spare.lock().expect("no panic while locked")
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
