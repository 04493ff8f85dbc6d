//! I/O commands: each does what it says, and says what it cannot do.

use ssdlab_engine::Pace;
use ssdlab_time::Nanos;

use crate::client::{
    COMPARE, COPY, DATASET, FLUSH, FORMAT, Host, READ, SET_FEATURES, Sqe, Target, VERIFY, WRITE,
    WRITE_ZEROES,
};
use ssdlab_testing::{CAPACITY, DriveOptions, MAX_TRANSFER};

const BLOCKS: u64 = CAPACITY / 512;
const FUA: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 25;

/// Ranges of a dataset management.
fn ranges(of: &[(u64, u32)]) -> Vec<u8> {
    let range = |(first, blocks): &(u64, u32)| {
        let head = [[0; 4], blocks.to_le_bytes()].concat();
        [head, first.to_le_bytes().to_vec()].concat()
    };
    of.iter().flat_map(range).collect()
}

fn trim(host: &mut Host, of: &[(u64, u32)]) -> u16 {
    let sqe = Sqe::new(DATASET).namespace(1).word(10, of.len() as u32 - 1).word(11, 4);
    host.send_with(sqe, &ranges(of)).code
}

/// A range of a copy.
fn copied(first: u64, blocks: u16) -> Vec<u8> {
    let mut range = vec![0; 32];
    range[8..16].copy_from_slice(&first.to_le_bytes());
    range[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
    range
}

#[test]
fn what_is_written_is_read_back_in_capsules_on_demand_and_with_every_digest() {
    for digests in 0..4 {
        let target = Target::new(DriveOptions::default());
        let (_admin, mut host) = target.host(digests);
        for (first, bytes) in [(0, 512), (7, 4096), (64, 8192), (100, MAX_TRANSFER as usize)] {
            let written: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 512) as u8).collect();
            host.write(first, &written);
            assert_eq!(host.read(first, bytes as u32 / 512), written, "{digests} {bytes}");
        }
        assert_eq!(host.read(BLOCKS - 1, 1), [0; 512]);
    }
}

#[test]
fn a_durable_write_and_a_flush_survive_a_cut_and_the_rest_does_not() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut host) = target.host(0);
    host.write(0, &[1; 512]);
    assert_eq!(host.send_with(Sqe::on(WRITE, 8, 1).word(12, FUA), &[2; 512]).code, 0);
    host.write(16, &[3; 512]);
    assert_eq!(host.ask(Sqe::new(FLUSH).namespace(1)).code, 0);
    host.write(24, &[4; 512]);
    target.server.power_cut(true).unwrap();
    assert!(host.is_closed());
    let (_admin, mut after) = target.host(0);
    let kept: Vec<u8> = [0, 8, 16, 24].iter().map(|first| after.read(*first, 1)[0]).collect();
    assert_eq!(kept, [1, 2, 3, 0]);
}

#[test]
fn what_is_durable_is_so_at_once_and_what_comes_after_it_is_not() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut host) = target.host(0);
    host.write(0, &[1; 512]);
    assert_eq!(host.send_with(Sqe::on(WRITE, 8, 1).word(12, FUA), &[2; 512]).code, 0);
    host.write(16, &[3; 512]);
    target.server.power_cut(true).unwrap();
    let (_admin, mut host) = target.host(0);
    assert_eq!([0, 8, 16].map(|first| host.read(first, 1)[0]), [1, 2, 0]);
    let mut range = [0; 32];
    range[8] = 8;
    for (to, durable) in [(24, FUA), (32, 0)] {
        let sqe = Sqe::new(COPY).namespace(1).long(10, to).word(12, durable);
        assert_eq!(host.send_with(sqe, &range).code, 0);
    }
    target.server.power_cut(true).unwrap();
    let (_admin, mut host) = target.host(0);
    assert_eq!([24, 32].map(|first| host.read(first, 1)[0]), [2, 0], "copies");
}

#[test]
fn without_its_write_cache_the_drive_keeps_every_write() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, mut host) = target.host(0);
    assert_eq!(admin.ask(Sqe::new(SET_FEATURES).word(10, 6)).code, 0);
    host.write(0, &[9; 512]);
    target.server.power_cut(true).unwrap();
    assert_eq!(target.host(0).1.read(0, 1), [9; 512]);
}

#[test]
fn ranges_are_deallocated_in_one_command_and_none_where_one_is_wrong() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut host) = target.host(0);
    for first in [0, 8, 16, 24] {
        host.write(first, &[5; 4096]);
    }
    assert_eq!(trim(&mut host, &[(0, 8), (BLOCKS, 8)]), 0x80);
    assert_eq!(host.read(0, 1), [5; 512]);
    assert_eq!(trim(&mut host, &[(0, 8), (16, 16)]), 0);
    let left: Vec<u8> = [0, 8, 16, 24].iter().map(|first| host.read(*first, 1)[0]).collect();
    assert_eq!(left, [0, 5, 0, 0]);
    assert_eq!(target.count("trims"), 2);
    let short = Sqe::new(DATASET).namespace(1).word(10, 3).word(11, 4);
    assert_eq!(host.send_with(short, &ranges(&[(0, 8)])).code, 0x0f);
    let hint_only = Sqe::new(DATASET).namespace(1).word(11, 1);
    assert_eq!(host.send_with(hint_only, &ranges(&[(8, 8)])).code, 0);
    assert_eq!(host.read(8, 1), [5; 512]);
}

#[test]
fn zeros_are_written_or_deallocated_as_the_host_says() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut host) = target.host(0);
    host.write(0, &[6; 16384]);
    let writes = target.count("writes");
    assert_eq!(host.ask(Sqe::on(WRITE_ZEROES, 0, 8)).code, 0);
    assert_eq!((target.count("writes"), target.count("trims")), (writes + 1, 0));
    assert_eq!(host.ask(Sqe::on(WRITE_ZEROES, 8, 8).word(12, DEALLOCATE)).code, 0);
    assert_eq!((target.count("writes"), target.count("trims")), (writes + 1, 1));
    assert_eq!(host.read(0, 16), [0; 8192]);
    assert_eq!(host.read(16, 1), [6; 512]);
}

#[test]
fn compare_and_verify_look_at_what_is_there() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut host) = target.host(0);
    host.write(3, &[7; 1024]);
    assert_eq!(host.send_with(Sqe::on(COMPARE, 3, 2), &[7; 1024]).code, 0);
    let mut other = [7; 1024];
    other[1023] = 8;
    assert_eq!(host.send_with(Sqe::on(COMPARE, 3, 2), &other).code, 0x285);
    let reads = target.count("reads");
    assert_eq!(host.ask(Sqe::on(VERIFY, 3, 2)).code, 0);
    assert_eq!(target.count("reads"), reads + 1);
    assert_eq!(host.ask(Sqe::on(VERIFY, BLOCKS - 1, 2)).code, 0x80);
}

#[test]
fn a_copy_puts_ranges_together_in_a_new_place() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut host) = target.host(0);
    host.write(0, &[1; 1024]);
    host.write(100, &[2; 512]);
    let sqe = Sqe::new(COPY).namespace(1).long(10, 500).word(12, 1);
    assert_eq!(host.send_with(sqe, &[copied(0, 2), copied(100, 1)].concat()).code, 0);
    assert_eq!(host.read(500, 3), [vec![1; 1024], vec![2; 512]].concat());
    let far = Sqe::new(COPY).namespace(1).long(10, BLOCKS - 1).word(12, 0);
    assert_eq!(host.send_with(far, &copied(0, 2)).code, 0x80);
}

#[test]
fn a_range_of_a_copy_is_as_long_as_the_drive_says_and_no_longer() {
    // What a transfer takes, of blocks of either size, and where that is much a fixed number.
    for (max_transfer, format, most) in
        [(MAX_TRANSFER, 0, 32), (MAX_TRANSFER, 1, 4), (4 << 20, 0, 1024), (2 << 20, 1, 512)]
    {
        let target = Target::new(DriveOptions { max_transfer, ..DriveOptions::default() });
        let (mut admin, mut host) = target.host(0);
        assert_eq!(admin.ask(Sqe::new(FORMAT).namespace(1).word(10, format)).code, 0);
        let page = admin.identify(0, 1);
        let said = u16::from_le_bytes([page[74], page[75]]);
        assert_eq!(said, most, "{max_transfer} {format}");
        assert_eq!(u32::from_le_bytes(page[76..80].try_into().unwrap()), 128 * u32::from(most));
        let sqe = Sqe::new(COPY).namespace(1).long(10, 1024);
        assert_eq!(host.send_with(sqe, &copied(0, most)).code, 0, "{max_transfer} {format}");
        assert_eq!(host.send_with(sqe, &copied(0, most + 1)).code, 0x183);
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_its_reason() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut host) = target.host(0);
    let room = 1 << 20;
    let longest = MAX_TRANSFER as u32 / 512;
    for (sqe, code) in [
        (Sqe::on(READ, BLOCKS, 1), 0x80),
        (Sqe::on(READ, u64::MAX, 1), 0x80),
        (Sqe::on(READ, BLOCKS - 1, 2), 0x80),
        (Sqe::on(READ, 0, longest + 1), 0x02),
        (Sqe::on(READ, 0, 1).word(12, 1 << 29), 0x02),
        (Sqe::on(READ, 0, 1).word(0, 1 << 8), 0x02),
        (Sqe::new(READ).namespace(2), 0x0b),
        (Sqe::new(READ), 0x0b),
        (Sqe::new(0x04).namespace(1), 0x01),
        (Sqe::new(0x12).namespace(1), 0x01),
        (Sqe::new(FLUSH).namespace(2), 0x0b),
        (Sqe::new(FLUSH).namespace(u32::MAX), 0),
        (Sqe::on(READ, 0, longest), 0),
    ] {
        assert_eq!(host.receive(sqe, room).code, code, "{:?}", &sqe.0[..64]);
    }
    assert_eq!(host.receive(Sqe::on(READ, 0, 2), 512).code, 0x0f);
    let directed = Sqe::on(WRITE, 0, 1).word(12, 2 << 20);
    assert_eq!(host.send_with(directed, &[0; 512]).code, 0x02, "it keeps no streams apart");
}

#[test]
fn a_read_of_what_is_not_there_fails_where_the_host_wants_that() {
    let target = Target::new(DriveOptions::default());
    let (mut admin, mut host) = target.host(0);
    host.write(0, &[1; 8192]);
    assert_eq!(host.read(16, 1), [0; 512]);
    let recovery = Sqe::new(SET_FEATURES).namespace(1).word(10, 5).word(11, 1 << 16);
    assert_eq!(admin.ask(recovery).code, 0);
    assert_eq!(host.receive(Sqe::on(READ, 16, 1), 512).code, 0x287);
    assert_eq!(host.receive(Sqe::on(READ, 15, 2), 1024).code, 0x287);
    assert_eq!(trim(&mut host, &[(0, 8)]), 0);
    assert_eq!(host.receive(Sqe::on(READ, 0, 1), 512).code, 0x287);
    assert_eq!(host.read(8, 8), [1; 4096]);
}

#[test]
fn a_drive_at_the_end_of_its_life_takes_no_writes_and_is_read() {
    let target = Target::new(DriveOptions { endurance_writes: 1, ..DriveOptions::default() });
    let (_admin, mut host) = target.host(0);
    host.write(0, &[1; 512]);
    assert_eq!(host.send_with(Sqe::on(WRITE, 0, 1), &[2; 512]).code, 0x182);
    assert_eq!(host.read(0, 1), [1; 512]);
}

#[test]
fn a_paced_drive_with_a_short_queue_answers_all_in_the_end() {
    let latency = Nanos::from_micros(200);
    let manner = DriveOptions { queue_depth: 2, latency, ..DriveOptions::default() };
    let target = Target::paced(manner, Pace::Times(1.0));
    let (_admin, mut host) = target.host(0);
    let mut ids: Vec<u16> = (0..32)
        .map(|which| match which % 4 {
            0 => host.submit(Sqe::on(WRITE, which, 1).data(512, 1), &[8; 512]),
            1 => host.submit(Sqe::new(FLUSH).namespace(1), &[]),
            2 => {
                let sqe = Sqe::new(DATASET).namespace(1).word(10, 2).word(11, 4).data(48, 1);
                host.submit(sqe, &ranges(&[(64, 8), (80, 8), (96, 8)]))
            }
            _ => host.submit(Sqe::on(READ, which, 1).data(512, 0x5a), &[]),
        })
        .collect();
    while !ids.is_empty() {
        let answer = host.answer(&[]).unwrap();
        assert_eq!(answer.code, 0);
        ids.retain(|id| *id != answer.id);
    }
}
