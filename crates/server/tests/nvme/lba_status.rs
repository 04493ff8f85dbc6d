//! Get LBA Status: the mapped blocks, in as many descriptors as the host has room for.

use crate::commands::trim;
use crate::prelude::*;

const ALL_BLOCKS: u64 = CAPACITY / 512;
const MAPPED: u32 = 0x02;
const FULL: u8 = 1;
const COMPLETE: u8 = 2;

/// A Get LBA Status command for `blocks` blocks, with a buffer of `words` dwords.
fn status(first: u64, blocks: u16, words: u32) -> Entry {
    let range = u32::from(blocks) | MAPPED << 24;
    Entry::new(GET_LBA_STATUS).nsid(1).cdw64(10, first).cdw(12, words - 1).cdw(13, range)
}

/// The extents of mapped blocks, and the completion condition (CMPC).
fn mapped(admin: &mut Host, first: u64, blocks: u16, words: u32) -> (Vec<(u64, u64)>, u8) {
    let completion = admin.command_in(status(first, blocks, words), 4 * words as usize);
    assert_eq!((completion.status, completion.data.len()), (0, 4 * words as usize));
    let data = completion.data;
    let count = number(&data, 0, 4) as usize;
    let run = |at: usize| (number(&data, at, 8), number(&data, at + 8, 4));
    let runs = (0..count).map(|place| run(8 + 16 * place)).collect();
    assert!(data[8 + 16 * count..].iter().all(|byte| *byte == 0));
    (runs, data[4])
}

/// Writes three extents: blocks 0 to 15, 80 to 87, and the last eight.
fn written(target: &TestServer) -> (Host, Host) {
    let (admin, mut io) = target.host(0);
    io.write(0, &[1; 8192]);
    io.write(83, &[1; 512]);
    io.write(ALL_BLOCKS - 8, &[1; 4096]);
    (admin, io)
}

#[test]
fn mapped_blocks_are_reported_as_extents_of_whole_units() {
    let target = TestServer::default();
    let (mut admin, mut io) = written(&target);
    let whole = vec![(0, 16), (80, 8), (ALL_BLOCKS - 8, 8)];
    assert_eq!(mapped(&mut admin, 0, 0, 64), (whole, COMPLETE));
    assert_eq!(trim(&mut io, &[(0, 8)]), 0);
    let left = vec![(8, 8), (80, 8), (ALL_BLOCKS - 8, 8)];
    assert_eq!(mapped(&mut admin, 0, 0, 64), (left, COMPLETE), "some units were trimmed");
    assert_eq!(admin.identify(1, 0)[257] >> 1 & 1, 1, "Identify reports support for the command");
}

#[test]
fn extents_are_clipped_to_the_range() {
    let target = TestServer::default();
    let (mut admin, _io) = written(&target);
    assert_eq!(mapped(&mut admin, 3, 80, 64), (vec![(3, 13), (80, 3)], COMPLETE));
    assert_eq!(mapped(&mut admin, 15, 1, 64), (vec![(15, 1)], COMPLETE));
    assert_eq!(mapped(&mut admin, 16, 64, 64), (vec![], COMPLETE));
    assert_eq!(mapped(&mut admin, 85, 0, 64), (vec![(85, 3), (ALL_BLOCKS - 8, 8)], COMPLETE));
    assert_eq!(mapped(&mut admin, ALL_BLOCKS - 1, 1, 64).0, [(ALL_BLOCKS - 1, 1)]);
}

#[test]
fn a_full_buffer_is_reported_and_the_next_command_continues() {
    let target = TestServer::default();
    let (mut admin, _io) = written(&target);
    assert_eq!(mapped(&mut admin, 0, 0, 2), (vec![], FULL), "room for the header only");
    assert_eq!(mapped(&mut admin, 0, 0, 9), (vec![(0, 16)], FULL));
    assert_eq!(mapped(&mut admin, 0, 0, 10), (vec![(0, 16), (80, 8)], FULL));
    assert_eq!(mapped(&mut admin, 88, 0, 6), (vec![(ALL_BLOCKS - 8, 8)], COMPLETE));
    assert_eq!(mapped(&mut admin, 0, 32, 6), (vec![(0, 16)], COMPLETE), "no extent is left out");
    let short = admin.command_in(status(0, 0, 1), 4);
    assert_eq!((short.status, short.data), (0, vec![0; 4]), "the number of descriptors");
}

#[test]
fn extents_are_in_blocks_of_the_format() {
    let (_target, mut admin, mut io) = TestServer::with_host();
    assert_eq!(admin.command(Entry::new(FORMAT_NVM).nsid(1).cdw(10, 1)).status, 0);
    let entry = Entry::on(WRITE, 5, 2);
    assert_eq!(io.command_out(entry, &[1; 8192]).status, 0);
    assert_eq!(mapped(&mut admin, 0, 0, 64), (vec![(5, 2)], COMPLETE));
    assert_eq!(mapped(&mut admin, 6, 1, 64), (vec![(6, 1)], COMPLETE));
}

#[test]
fn invalid_commands_are_refused() {
    let (_target, mut admin, _io) = TestServer::with_host();
    for (entry, code) in [
        (status(ALL_BLOCKS, 0, 64), 0x80),
        (status(ALL_BLOCKS - 1, 2, 64), 0x80),
        (status(u64::MAX, 1, 64), 0x80),
        (status(0, 0, 65), 0x0f),
        (status(0, 0, 64).cdw(13, 1 << 24), 0x02),
        (Entry::new(GET_LBA_STATUS).cdw(12, 1).cdw(13, MAPPED << 24), 0x0b),
    ] {
        assert_eq!(admin.command_in(entry, 256).status, code, "{:?}", &entry.0[40..56]);
    }
    let long = status(0, 0, 4 << 10 | 1);
    assert_eq!(admin.command_in(long, 4 * (4 << 10 | 1)).status, INVALID_FIELD, "beyond MDTS");
    let read_fails =
        |action: u32| Entry::new(GET_LBA_STATUS).nsid(1).cdw(12, 1).cdw(13, action << 24);
    for action in [0x10, 0x11] {
        let none = admin.command_in(read_fails(action), 8);
        assert_eq!((none.status, none.data), (0, vec![0, 0, 0, 0, COMPLETE, 0, 0, 0]));
    }
}
