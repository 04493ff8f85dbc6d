//! Threads of the server.

use std::io;
use std::thread::JoinHandle;

use ssdlab_engine::failpoints::{self, Point};

/// Runs a function on a new thread.
///
/// # Errors
/// The system cannot create a thread; the function was not run.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    failpoints::check(Point::Thread)?;
    std::thread::Builder::new().name(name.into()).spawn(run)
}
