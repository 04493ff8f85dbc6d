//! Writes of zeros: with and without a controller that elides them.

use crate::small::{Twin, profile, profile_with_lines};

const PAGE_UNITS: u64 = 8;

fn eliding() -> Twin {
    Twin::new(&profile_with_lines("[buffer]", "elides_zeros = true"))
}

#[test]
fn elided_zeros_use_no_flash() {
    let mut twin = eliding();
    twin.drive.set_writes_zeros(true);
    twin.write_all();
    twin.flush();
    let counters = twin.drive.counters();
    assert_eq!((counters.host_writes, counters.host_writes_elided), (twin.units(), twin.units()));
    assert_eq!(counters.nand_writes(), 0);
    twin.drive.assert_consistent();
}

#[test]
fn zeros_that_are_not_elided_use_as_much_flash_as_other_data() {
    let mut twin = Twin::new(&profile());
    twin.drive.set_writes_zeros(true);
    twin.write_all();
    twin.flush();
    assert_eq!(twin.drive.counters().nand_host_writes, twin.units());
    assert_eq!(twin.drive.counters().host_writes_elided, 0);
}

#[test]
fn data_other_than_zeros_is_not_elided() {
    let mut twin = eliding();
    twin.drive.set_writes_zeros(true);
    twin.write(0, PAGE_UNITS);
    twin.drive.set_writes_zeros(false);
    twin.write(0, PAGE_UNITS);
    twin.flush();
    assert_eq!(twin.drive.counters().nand_host_writes, PAGE_UNITS);
    twin.drive.assert_consistent();
}

#[test]
fn zeros_over_data_invalidate_it_and_are_read_without_a_sense() {
    let mut twin = eliding();
    twin.write(0, PAGE_UNITS);
    twin.flush();
    twin.drive.set_writes_zeros(true);
    twin.write(0, PAGE_UNITS);
    twin.read(0, PAGE_UNITS);
    assert_eq!(twin.drive.counters().host_senses, 0);
    twin.drive.assert_consistent();
}

#[test]
fn zeros_in_part_of_a_unit_are_not_elided() {
    let mut twin = eliding();
    twin.drive.set_writes_zeros(true);
    twin.request(ssdlab_device::Op::Write, 0, 4);
    twin.flush();
    assert_eq!(twin.drive.counters().host_writes_elided, 0);
    assert_eq!(twin.drive.counters().nand_host_writes, 1);
}
