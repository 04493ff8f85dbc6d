//! The `NVMe` drive, tested by a small host over TCP.

mod admin;
mod authentication;
mod commands;
mod connections;
mod lba_status;
mod limits;
mod namespaces;
mod placement;
mod protocol_errors;
#[path = "../test_server/mod.rs"]
#[expect(dead_code, reason = "each test program uses a part of it")]
mod test_server;

mod prelude {
    pub use ssdlab_testing::nvme::*;
    pub use ssdlab_testing::{
        CAPACITY, DriveOptions, MAX_TRANSFER, TIMEOUT, scaled, seed, wait_until,
    };

    pub use crate::test_server::TestServer;
}
