//! I/O commands: their effects and their errors.

use ssdlab_time::Nanos;

use crate::prelude::*;

const BLOCKS: u64 = CAPACITY / 512;
const FUA: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 25;

/// The data of a Dataset Management command.
fn ranges(of: &[(u64, u32)]) -> Vec<u8> {
    let range = |(first, blocks): &(u64, u32)| {
        let head = [[0; 4], blocks.to_le_bytes()].concat();
        [head, first.to_le_bytes().to_vec()].concat()
    };
    of.iter().flat_map(range).collect()
}

pub fn trim(host: &mut Host, of: &[(u64, u32)]) -> u16 {
    let entry = Entry::new(DATASET_MANAGEMENT).nsid(1).cdw(10, of.len() as u32 - 1).cdw(11, 4);
    host.command_out(entry, &ranges(of)).status
}

/// A source range of a Copy command.
fn copied(first: u64, blocks: u16) -> Vec<u8> {
    let mut range = vec![0; 32];
    range[8..16].copy_from_slice(&first.to_le_bytes());
    range[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
    range
}

#[test]
fn written_data_is_read_back_in_capsules_by_r2t_and_with_every_digest() {
    for digests in 0..4 {
        let target = TestServer::default();
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
fn fua_and_flushed_writes_survive_a_power_cut_and_others_do_not() {
    let (target, _admin, mut host) = TestServer::with_host();
    host.write(0, &[1; 512]);
    assert_eq!(host.command_out(Entry::on(WRITE, 8, 1).cdw(12, FUA), &[2; 512]).status, 0);
    host.write(16, &[3; 512]);
    assert_eq!(host.command(Entry::new(FLUSH).nsid(1)).status, 0);
    host.write(24, &[4; 512]);
    target.server.power_cut(true).unwrap();
    assert!(host.is_closed());
    let (_admin, mut after) = target.host(0);
    let kept: Vec<u8> = [0, 8, 16, 24].iter().map(|first| after.read(*first, 1)[0]).collect();
    assert_eq!(kept, [1, 2, 3, 0]);
}

#[test]
fn fua_makes_earlier_writes_durable_and_later_ones_not() {
    let (target, _admin, mut host) = TestServer::with_host();
    host.write(0, &[1; 512]);
    assert_eq!(host.command_out(Entry::on(WRITE, 8, 1).cdw(12, FUA), &[2; 512]).status, 0);
    host.write(16, &[3; 512]);
    target.server.power_cut(true).unwrap();
    let (_admin, mut host) = target.host(0);
    assert_eq!([0, 8, 16].map(|first| host.read(first, 1)[0]), [1, 2, 0]);
    let mut range = [0; 32];
    range[8] = 8;
    for (to, durable) in [(24, FUA), (32, 0)] {
        let entry = Entry::new(COPY).nsid(1).cdw64(10, to).cdw(12, durable);
        assert_eq!(host.command_out(entry, &range).status, 0);
    }
    target.server.power_cut(true).unwrap();
    let (_admin, mut host) = target.host(0);
    assert_eq!([24, 32].map(|first| host.read(first, 1)[0]), [2, 0], "copies");
}

#[test]
fn without_the_write_cache_every_write_is_durable() {
    let (target, mut admin, mut host) = TestServer::with_host();
    assert_eq!(admin.command(Entry::new(SET_FEATURES).cdw(10, 6)).status, 0);
    host.write(0, &[9; 512]);
    target.server.power_cut(true).unwrap();
    assert_eq!(target.host(0).1.read(0, 1), [9; 512]);
}

#[test]
fn one_command_deallocates_several_ranges_or_none_if_one_is_invalid() {
    let (target, _admin, mut host) = TestServer::with_host();
    for first in [0, 8, 16, 24] {
        host.write(first, &[5; 4096]);
    }
    assert_eq!(trim(&mut host, &[(0, 8), (BLOCKS, 8)]), 0x80);
    assert_eq!(host.read(0, 1), [5; 512]);
    assert_eq!(trim(&mut host, &[(0, 8), (16, 16)]), 0);
    let left: Vec<u8> = [0, 8, 16, 24].iter().map(|first| host.read(*first, 1)[0]).collect();
    assert_eq!(left, [0, 5, 0, 0]);
    assert_eq!(target.count("trims"), 2);
    let short = Entry::new(DATASET_MANAGEMENT).nsid(1).cdw(10, 3).cdw(11, 4);
    assert_eq!(host.command_out(short, &ranges(&[(0, 8)])).status, 0x0f);
    let hint_only = Entry::new(DATASET_MANAGEMENT).nsid(1).cdw(11, 1);
    assert_eq!(host.command_out(hint_only, &ranges(&[(8, 8)])).status, 0);
    assert_eq!(host.read(8, 1), [5; 512]);
}

#[test]
fn write_zeroes_deallocates_if_the_host_allows_it() {
    let (target, _admin, mut host) = TestServer::with_host();
    host.write(0, &[6; 16384]);
    let writes = target.count("writes");
    assert_eq!(host.command(Entry::on(WRITE_ZEROES, 0, 8)).status, 0);
    assert_eq!((target.count("writes"), target.count("trims")), (writes + 1, 0));
    assert_eq!(host.command(Entry::on(WRITE_ZEROES, 8, 8).cdw(12, DEALLOCATE)).status, 0);
    assert_eq!((target.count("writes"), target.count("trims")), (writes + 1, 1));
    assert_eq!(host.read(0, 16), [0; 8192]);
    assert_eq!(host.read(16, 1), [6; 512]);
}

#[test]
fn compare_and_verify_check_the_data() {
    let (target, _admin, mut host) = TestServer::with_host();
    host.write(3, &[7; 1024]);
    assert_eq!(host.command_out(Entry::on(COMPARE, 3, 2), &[7; 1024]).status, 0);
    let mut other = [7; 1024];
    other[1023] = 8;
    assert_eq!(host.command_out(Entry::on(COMPARE, 3, 2), &other).status, 0x285);
    let reads = target.count("reads");
    assert_eq!(host.command(Entry::on(VERIFY, 3, 2)).status, 0);
    assert_eq!(target.count("reads"), reads + 1);
    assert_eq!(host.command(Entry::on(VERIFY, BLOCKS - 1, 2)).status, 0x80);
}

#[test]
fn copy_joins_ranges_at_the_destination() {
    let (_target, _admin, mut host) = TestServer::with_host();
    host.write(0, &[1; 1024]);
    host.write(100, &[2; 512]);
    let entry = Entry::new(COPY).nsid(1).cdw64(10, 500).cdw(12, 1);
    assert_eq!(host.command_out(entry, &[copied(0, 2), copied(100, 1)].concat()).status, 0);
    assert_eq!(host.read(500, 3), [vec![1; 1024], vec![2; 512]].concat());
    let far = Entry::new(COPY).nsid(1).cdw64(10, BLOCKS - 1).cdw(12, 0);
    assert_eq!(host.command_out(far, &copied(0, 2)).status, 0x80);
}

#[test]
fn a_range_of_a_copy_has_at_most_the_reported_length() {
    // The longest transfer in blocks of either size, up to a fixed maximum.
    for (max_transfer, format, most) in
        [(MAX_TRANSFER, 0, 32), (MAX_TRANSFER, 1, 4), (4 << 20, 0, 1024), (2 << 20, 1, 512)]
    {
        let target = TestServer::new(DriveOptions { max_transfer, ..DriveOptions::default() });
        let (mut admin, mut host) = target.host(0);
        assert_eq!(admin.command(Entry::new(FORMAT_NVM).nsid(1).cdw(10, format)).status, 0);
        let page = admin.identify(0, 1);
        let said = u16::from_le_bytes([page[74], page[75]]);
        assert_eq!(said, most, "{max_transfer} {format}");
        assert_eq!(u32::from_le_bytes(page[76..80].try_into().unwrap()), 128 * u32::from(most));
        let entry = Entry::new(COPY).nsid(1).cdw64(10, 1024);
        assert_eq!(host.command_out(entry, &copied(0, most)).status, 0, "{max_transfer} {format}");
        assert_eq!(host.command_out(entry, &copied(0, most + 1)).status, 0x183);
    }
}

#[test]
fn invalid_commands_get_their_status() {
    let (_target, _admin, mut host) = TestServer::with_host();
    let room = 1 << 20;
    let longest = MAX_TRANSFER as u32 / 512;
    for (entry, code) in [
        (Entry::on(READ, BLOCKS, 1), 0x80),
        (Entry::on(READ, u64::MAX, 1), 0x80),
        (Entry::on(READ, BLOCKS - 1, 2), 0x80),
        (Entry::on(READ, 0, longest + 1), 0x02),
        (Entry::on(READ, 0, 1).cdw(12, 1 << 29), 0x02),
        (Entry::on(READ, 0, 1).cdw(0, 1 << 8), 0x02),
        (Entry::new(READ).nsid(2), 0x0b),
        (Entry::new(READ), 0x0b),
        (Entry::new(0x04).nsid(1), 0x01),
        (Entry::new(0x12).nsid(1), 0x01),
        (Entry::new(FLUSH).nsid(2), 0x0b),
        (Entry::new(FLUSH).nsid(u32::MAX), 0),
        (Entry::on(READ, 0, longest), 0),
    ] {
        assert_eq!(host.command_in(entry, room).status, code, "{:?}", &entry.0[..64]);
    }
    assert_eq!(host.command_in(Entry::on(READ, 0, 2), 512).status, 0x0f);
    let directed = Entry::on(WRITE, 0, 1).cdw(12, 2 << 20);
    // The drive has no streams.
    assert_eq!(host.command_out(directed, &[0; 512]).status, INVALID_FIELD);
}

#[test]
fn reads_of_deallocated_blocks_fail_if_the_host_enables_the_error() {
    let (_target, mut admin, mut host) = TestServer::with_host();
    host.write(0, &[1; 8192]);
    assert_eq!(host.read(16, 1), [0; 512]);
    let recovery = Entry::new(SET_FEATURES).nsid(1).cdw(10, 5).cdw(11, 1 << 16);
    assert_eq!(admin.command(recovery).status, 0);
    assert_eq!(host.command_in(Entry::on(READ, 16, 1), 512).status, 0x287);
    assert_eq!(host.command_in(Entry::on(READ, 15, 2), 1024).status, 0x287);
    assert_eq!(trim(&mut host, &[(0, 8)]), 0);
    assert_eq!(host.command_in(Entry::on(READ, 0, 1), 512).status, 0x287);
    assert_eq!(host.read(8, 8), [1; 4096]);
}

#[test]
fn a_worn_out_drive_is_readable_and_refuses_writes() {
    let target = TestServer::new(DriveOptions { endurance_writes: 1, ..DriveOptions::default() });
    let (_admin, mut host) = target.host(0);
    host.write(0, &[1; 512]);
    assert_eq!(host.command_out(Entry::on(WRITE, 0, 1), &[2; 512]).status, 0x182);
    assert_eq!(host.read(0, 1), [1; 512]);
}

#[test]
fn a_paced_drive_with_a_short_queue_completes_all_commands() {
    let latency = Nanos::from_micros(200);
    let options = DriveOptions { queue_depth: 2, latency, ..DriveOptions::default() };
    let target = TestServer::paced(options, 1.0);
    let (_admin, mut host) = target.host(0);
    let mut ids: Vec<u16> = (0..32)
        .map(|which| match which % 4 {
            0 => host.submit(Entry::on(WRITE, which, 1).data(512, SGL_IN_CAPSULE), &[8; 512]),
            1 => host.submit(Entry::new(FLUSH).nsid(1), &[]),
            2 => {
                let trim = Entry::new(DATASET_MANAGEMENT).nsid(1).cdw(10, 2).cdw(11, 4);
                let of = ranges(&[(64, 8), (80, 8), (96, 8)]);
                host.submit(trim.data(48, SGL_IN_CAPSULE), &of)
            }
            _ => host.submit(Entry::on(READ, which, 1).data(512, SGL_TRANSPORT), &[]),
        })
        .collect();
    while !ids.is_empty() {
        let completion = host.complete(&[]).unwrap();
        assert_eq!(completion.status, 0);
        ids.retain(|id| *id != completion.cid);
    }
}
