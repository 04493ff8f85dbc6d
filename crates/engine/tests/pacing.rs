//! An engine whose replies are paced.

use ssdlab_engine::{Clock, Command, Engine, LatencyCompensation, Operation, Pace, Store};
use ssdlab_testing::{CAPACITY, DriveOptions, FakeDrive, UNIT};

#[test]
fn a_full_queue_accepts_no_more_commands() {
    let drive = FakeDrive::new(DriveOptions { queue_depth: 4, ..DriveOptions::default() });
    let store = Store::in_memory(CAPACITY, UNIT, 0);
    // A drive that is this slow completes nothing during the test.
    let clock = Clock::start(Pace::Times(1e-6), LatencyCompensation::default());
    let engine = Engine::new(Box::new(drive), store, clock);
    let epoch = engine.power().epoch().expect("the power is on");
    let reads: Vec<Command> =
        (0..6).map(|unit| Command::new(Operation::Read, unit * UNIT, UNIT as u32)).collect();
    let perform = |commands: &[Command]| {
        engine.perform(epoch, commands, |_| &b""[..], |_, _, _| ()).expect("the power is on").len()
    };
    assert!(engine.next_free().is_none());
    assert_eq!(perform(&reads), 4);
    assert_eq!(perform(&reads[4..]), 0);
    assert!(engine.next_free().is_some());
}
