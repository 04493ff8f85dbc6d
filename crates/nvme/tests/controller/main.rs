//! The controller without a transport: commands in, completions out.

mod golden;
mod memory;
mod mutations;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ssdlab_engine::{Health, Pace};
use ssdlab_nvme::{Controller, ControllerParameters, ControllerType, Identity, Subsystem};
use ssdlab_testing::nvme::{CC, CC_ENABLE, Entry, GET_LOG_PAGE};
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
    let (subsystem, parameters) = parts(options);
    let parameters = ControllerParameters { cntrltype, address, ..parameters };
    let controller = Controller::new(&subsystem, parameters).unwrap();
    controller.set_property(CC, CC_ENABLE).unwrap();
    controller
}

/// The subsystem and the parameters of an I/O controller.
fn parts(options: DriveOptions) -> (Arc<Subsystem>, ControllerParameters) {
    let engine = engine(options, Pace::None);
    let parameters = ControllerParameters {
        cntrltype: ControllerType::Io,
        address: None,
        hostid: [7; 16],
        kato: Duration::ZERO,
        epoch: engine.power().epoch().expect("the power is on"),
    };
    (Arc::new(Subsystem::new(Arc::new(engine), Identity::new("a toy", "alone"))), parameters)
}

#[test]
fn the_identifier_of_a_live_controller_is_not_reused() {
    let (subsystem, parameters) = parts(DriveOptions::default());
    let make = || Controller::new(&subsystem, parameters);
    let victim = make().unwrap();
    for _ in 0..70_000 {
        assert_ne!(make().unwrap().cntlid, victim.cntlid);
    }
    let mut all: Vec<Controller> = (1..0xffef).map(|_| make().unwrap()).collect();
    let busy = make().err().expect("all identifiers are in use");
    assert_eq!(busy.code(), 0x181, "Connect Controller Busy");
    let number = all.swap_remove(1000).cntlid;
    assert_eq!(make().unwrap().cntlid, number, "the identifier that is free again");
}

#[test]
fn the_health_log_reports_the_temperature_of_the_drive() {
    // The threshold is 343 K.
    for (celsius, kelvin, warning) in [(None, 308, 0), (Some(69.4), 342, 0), (Some(69.6), 343, 2)] {
        let health = Health { celsius, spare_percent: 100.0, ..Health::default() };
        let controller = controller(DriveOptions { health, ..DriveOptions::default() });
        let mut data = memory::Memory::new(512);
        let log = Entry::new(GET_LOG_PAGE).nsid(u32::MAX).cdw(10, 2 | 127 << 16);
        memory::admin(&controller, log, &mut data).unwrap();
        let page = data.received;
        assert_eq!(u16::from_le_bytes([page[1], page[2]]), kelvin, "{celsius:?}");
        assert_eq!(page[0], warning, "critical warning at {celsius:?}");
        assert_eq!(page[200..202], page[1..3], "the first sensor");
    }
}
