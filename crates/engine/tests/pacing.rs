//! An engine whose replies are paced.

use ssdlab_engine::{Command, Operation, Pace};
use ssdlab_testing::{DriveOptions, UNIT, engine};

#[test]
fn a_full_queue_accepts_no_more_commands() {
    let options = DriveOptions { queue_depth: 4, ..DriveOptions::default() };
    // A drive that is this slow completes nothing during the test.
    let engine = engine(options, Pace::Scaled(1e-6));
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
