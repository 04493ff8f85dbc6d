//! The controller without a transport: commands in, completions out.

mod golden;
mod memory;
mod mutations;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ssdlab_engine::Pace;
use ssdlab_nvme::{Controller, ControllerParameters, ControllerType, Identity, Subsystem};
use ssdlab_testing::nvme::{CC, CC_ENABLE};
use ssdlab_testing::{DriveOptions, engine};

/// An enabled I/O controller.
pub fn controller(options: DriveOptions) -> Controller {
    of_type(options, ControllerType::Io, None)
}

/// An enabled discovery controller.
pub fn discovery_controller(address: Option<SocketAddr>) -> Controller {
    of_type(DriveOptions::default(), ControllerType::Discovery, address)
}

fn of_type(
    options: DriveOptions,
    cntrltype: ControllerType,
    address: Option<SocketAddr>,
) -> Controller {
    let engine = engine(options, Pace::None);
    let epoch = engine.power().epoch().expect("the power is on");
    let subsystem = Arc::new(Subsystem::new(Arc::new(engine), Identity::new("a toy", "alone")));
    let parameters =
        ControllerParameters { cntrltype, address, hostid: [7; 16], kato: Duration::ZERO, epoch };
    let controller = Controller::new(&subsystem, parameters).unwrap();
    controller.set_property(CC, CC_ENABLE).unwrap();
    controller
}
