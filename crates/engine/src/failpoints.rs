//! Failpoints: places where a system call of the server can fail. A test lets each of these calls
//! fail once.
//!
//! The feature `failpoints` compiles them in; only tests turn it on.

#[cfg(not(feature = "failpoints"))]
use std::io;

/// A kind of system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Accept a connection.
    Accept,
    /// Start a thread.
    Thread,
    /// Allocate memory for a payload.
    Memory,
    /// Receive.
    Read,
    /// Send.
    Write,
    /// Wait for a connection, or until a time.
    Wait,
}

/// The error that a test has planned for this call, if any.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn check(_: Point) -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "failpoints")]
pub use armed::{Plan, arm, check, disarm};

#[cfg(feature = "failpoints")]
mod armed {
    use std::io;
    use std::sync::{Mutex, MutexGuard};

    use super::Point;

    /// A planned failure of one call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Plan {
        /// Which kind of call.
        pub point: Point,
        /// Which call of this kind from now on; 0 is the next.
        pub call: u64,
        /// The errno with which it fails.
        pub errno: i32,
    }

    /// The plan, whose `call` counts down, and whether the call has failed.
    static ARMED: Mutex<Option<(Plan, bool)>> = Mutex::new(None);

    /// Plans a failure.
    pub fn arm(plan: Plan) {
        *lock() = Some((plan, false));
    }

    /// Drops the plan; returns whether the planned call has failed.
    pub fn disarm() -> bool {
        lock().take().is_some_and(|(_, has_failed)| has_failed)
    }

    /// The error that a test has planned for this call, if any.
    pub fn check(point: Point) -> io::Result<()> {
        match &mut *lock() {
            Some((plan, has_failed)) if plan.point == point && !*has_failed => {
                *has_failed = plan.call == 0;
                plan.call = plan.call.saturating_sub(1);
                if *has_failed { Err(io::Error::from_raw_os_error(plan.errno)) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn lock() -> MutexGuard<'static, Option<(Plan, bool)>> {
        ARMED.lock().expect("no panic while locked")
    }
}
