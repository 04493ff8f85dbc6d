//! Failpoints: the places where the system can refuse a client's server something, so that a test
//! lets each refusal happen once, at every call in turn.
//!
//! The feature `failpoints` compiles them in; only this crate's own tests turn it on.

#[cfg(not(feature = "failpoints"))]
use std::io;

/// What the system is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A connection that waits to be accepted.
    Accept,
    /// A thread.
    Thread,
    /// Memory for what a client sends.
    Memory,
    /// To receive.
    Read,
    /// To send.
    Write,
    /// To wait for a connection, or until a time.
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

    /// One call that fails.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Plan {
        /// What is asked for.
        pub point: Point,
        /// Which call of this kind from now on; 0 is the next.
        pub call: u64,
        /// How it fails.
        pub errno: i32,
    }

    /// The plan, and how many more calls succeed; `None` once it has failed.
    static ARMED: Mutex<Option<(Plan, Option<u64>)>> = Mutex::new(None);

    /// Plans one failure.
    pub fn arm(plan: Plan) {
        *lock() = Some((plan, Some(plan.call)));
    }

    /// Nothing fails any more; returns whether the planned call has failed.
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
