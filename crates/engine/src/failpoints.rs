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
///
/// # Errors
/// The planned one.
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

    /// The plan, and how many calls still succeed; `None` after the failure.
    static ARMED: Mutex<Option<(Plan, Option<u64>)>> = Mutex::new(None);

    /// Plans a failure.
    pub fn arm(plan: Plan) {
        *lock() = Some((plan, Some(plan.call)));
    }

    /// Drops the plan; returns whether the planned call has failed.
    pub fn disarm() -> bool {
        lock().take().is_some_and(|(_, left)| left.is_none())
    }

    /// The error that a test has planned for this call, if any.
    ///
    /// # Errors
    /// The planned one.
    pub fn check(point: Point) -> io::Result<()> {
        if let Some((plan, left)) = &mut *lock()
            && plan.point == point
            && let Some(count) = left
        {
            let Some(next) = count.checked_sub(1) else {
                *left = None;
                return Err(io::Error::from_raw_os_error(plan.errno));
            };
            *left = Some(next);
        }
        Ok(())
    }

    fn lock() -> MutexGuard<'static, Option<(Plan, Option<u64>)>> {
        ARMED.lock().expect("no panic while locked")
    }
}
