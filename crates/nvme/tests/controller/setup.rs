//! Controllers of toy drives.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ssdlab_engine::{Clock, Drive, Engine, LatencyCompensation, Pace, Store};
use ssdlab_nvme::{Controller, ControllerParameters, ControllerType, Identity, Subsystem};

use crate::toy::{CAPACITY, Manner, Toy, UNIT};

/// The property CC, and the value that enables a controller.
pub const CC: u32 = 0x14;
pub const ENABLE: u64 = 0x0046_0001;

/// An enabled controller of a toy drive.
pub fn controller(toy: Manner) -> Controller {
    of_type(toy, ControllerType::Io, None)
}

/// An enabled discovery controller.
pub fn discovery_controller(address: Option<SocketAddr>) -> Controller {
    of_type(crate::toy::HONEST, ControllerType::Discovery, address)
}

fn of_type(toy: Manner, cntrltype: ControllerType, address: Option<SocketAddr>) -> Controller {
    let toy = Toy::new(toy);
    let store = Store::in_memory(CAPACITY, UNIT, toy.volatile_units());
    let clock = Clock::start(Pace::None, LatencyCompensation::default());
    let engine = Engine::new(Box::new(toy), store, clock);
    let epoch = engine.power().epoch().expect("it has power");
    let subsystem = Arc::new(Subsystem::new(Arc::new(engine), Identity::new("a toy", "alone")));
    let parameters =
        ControllerParameters { cntrltype, address, hostid: [7; 16], kato: Duration::ZERO, epoch };
    let controller = Controller::new(&subsystem, parameters).unwrap();
    controller.set_property(CC, ENABLE).unwrap();
    controller
}
