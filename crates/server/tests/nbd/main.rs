//! The NBD server, tested by a small client over a Unix socket.

mod clones;
mod faults;
mod limits;
mod long_writes;
mod pacing;
mod power_cuts;
mod protocol;
mod protocol_errors;
#[path = "../test_server/mod.rs"]
#[expect(dead_code, reason = "each test program uses a part of it")]
mod test_server;
mod write_log;

mod prelude {
    pub use ssdlab_testing::nbd::*;
    pub use ssdlab_testing::{
        CAPACITY, Control, DriveOptions, FakeDrive, UNIT, runs, scaled, wait_until,
    };

    pub use crate::test_server::TestServer;
}
