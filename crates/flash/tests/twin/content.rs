//! What zeros cost a twin: nothing where its controller elides them, as much as any where not.

use crate::small::{Twin, profile, profile_with};

const PAGE_UNITS: u64 = 8;

fn eliding() -> Twin {
    Twin::new(&profile_with("[buffer]", "[buffer]\nelides_zeros = true"))
}

#[test]
fn zeros_take_no_flash_where_the_controller_elides_them() {
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
fn zeros_take_as_much_flash_as_any_content_where_it_does_not() {
    let mut twin = Twin::new(&profile());
    twin.drive.set_writes_zeros(true);
    twin.write_all();
    twin.flush();
    assert_eq!(twin.drive.counters().nand_host_writes, twin.units());
    assert_eq!(twin.drive.counters().host_writes_elided, 0);
}

#[test]
fn other_content_is_written_in_full_by_a_controller_that_elides_zeros() {
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
fn zeros_over_data_free_its_flash_and_are_read_without_a_sense() {
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
fn a_write_of_a_part_of_a_unit_is_no_unit_of_zeros() {
    let mut twin = eliding();
    twin.drive.set_writes_zeros(true);
    twin.request(ssdlab_device::Op::Write, 0, 4);
    twin.flush();
    assert_eq!(twin.drive.counters().host_writes_elided, 0);
    assert_eq!(twin.drive.counters().nand_host_writes, 1);
}
