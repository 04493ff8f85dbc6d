//! The verdicts of faults about commands, without an engine.

use super::{FaultSpec, Faults, Kind};
use crate::command::{Command, DriveParameters, Operation, OperationKind};
use crate::drive::Drive;
use crate::errno::EIO;
use crate::layer::{Layer, Verdict, WriteCorruption};

// The crate itself would bring its own copy of the engine's types.
#[path = "../../../testing/src/drive.rs"]
#[allow(dead_code, unreachable_pub)]
mod testing;

use testing::{FakeDrive, UNIT};

const SPEC: FaultSpec = FaultSpec {
    kind: Kind::Eio,
    range: None,
    operation_kind: None,
    nth: None,
    start_after: None,
    probability: None,
    seed: 1,
    max_hits: None,
};

fn verdict(faults: &mut Faults, drive: &FakeDrive, operation: Operation, unit: u64) -> Verdict {
    let command = Command::new(operation, unit * UNIT, UNIT as u32);
    let mut verdict = Verdict::default();
    faults.before(&command, drive, &DriveParameters::of(drive), &mut verdict);
    verdict
}

#[test]
fn a_fault_hits_matching_commands_from_the_nth_on_until_its_maximum() {
    let (mut faults, drive) = (Faults::default(), FakeDrive::default());
    let operation_kind = Some(OperationKind::Read);
    let number = faults.add(FaultSpec { operation_kind, nth: Some(2), max_hits: Some(2), ..SPEC });
    let operations = [Operation::Read, Operation::Write, Operation::Read, Operation::Read];
    let refused = operations.map(|each| verdict(&mut faults, &drive, each, 0).refused);
    assert_eq!(refused, [None, None, Some(EIO), Some(EIO)]);
    assert_eq!(verdict(&mut faults, &drive, Operation::Read, 0), Verdict::default());
    assert_eq!(faults.statuses()[0].hits, 2);
    assert_eq!((faults.clear(Some(number)), faults.clear(None)), (1, 0));
}

#[test]
fn chance_is_drawn_for_every_matching_command() {
    let hits = |nth| {
        let (mut faults, drive) = (Faults::default(), FakeDrive::default());
        faults.add(FaultSpec { probability: Some(0.5), nth, ..SPEC });
        let mut refused = || verdict(&mut faults, &drive, Operation::Write, 0).refused.is_some();
        (0..40).map(|_| refused()).collect::<Vec<_>>()
    };
    assert_eq!(hits(None)[20..], hits(Some(21))[20..]);
    assert!(!hits(Some(21))[..20].contains(&true));
}

#[test]
fn a_misdirected_write_goes_to_another_unit() {
    let (mut faults, drive) = (Faults::default(), FakeDrive::default());
    faults.add(FaultSpec { kind: Kind::Misdirected, ..SPEC });
    for unit in 0..20 {
        let corruption = verdict(&mut faults, &drive, Operation::Write, unit).corruption;
        let Some(WriteCorruption::Misdirected(offset)) = corruption else {
            panic!("{corruption:?}");
        };
        assert!(offset.is_multiple_of(UNIT) && offset != unit * UNIT);
    }
}

#[test]
fn units_of_a_failed_die_cannot_be_read_until_they_are_written() {
    let (mut faults, mut drive) = (Faults::default(), FakeDrive::default());
    for unit in 0..8 {
        let write = Command::new(Operation::Write, unit * UNIT, UNIT as u32);
        write.requests(&DriveParameters::of(&drive)).for_each(|request| {
            drive.submit_timed(request);
        });
    }
    faults.add(FaultSpec { kind: Kind::Die(1), max_hits: Some(1), ..SPEC });
    let mut refused = |operation, unit| verdict(&mut faults, &drive, operation, unit).refused;
    assert_eq!(refused(Operation::Read, 0), None);
    assert_eq!(refused(Operation::Read, 5), Some(EIO));
    assert_eq!(refused(Operation::Write, 5), None);
    assert_eq!(refused(Operation::Read, 5), None);
    assert_eq!(refused(Operation::Read, 1), Some(EIO));
    assert_eq!(faults.statuses()[0].dead_units, Some(1));
}
