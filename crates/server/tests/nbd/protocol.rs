//! What the protocol promises: negotiation, every command, every limit.

use std::io::Write;

use ssdlab_engine::{Pace, Store};

use crate::client::{
    BLOCK_STATUS, Client, DISCONNECT, FLUSH, FUA, NO_HOLE, READ, REQ_ONE, TRIM, WRITE,
    WRITE_ZEROES, command, contexts, go, number,
};
use crate::served::Served;
use ssdlab_testing::{CAPACITY, DriveOptions, FakeDrive, UNIT};

const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;
const UNKNOWN: u32 = 1 << 31 | 6;
const INVALID: u32 = 1 << 31 | 3;

fn served() -> Served {
    Served::new(DriveOptions::default(), Pace::None)
}

#[test]
fn an_export_is_listed_described_and_chosen() {
    let served = served();
    let mut client = Client::connect(&served.socket);
    assert_eq!(client.option(3, b""), [(2, b"\0\0\0\x03toy".to_vec()), (1, Vec::new())]);
    let told = client.option(6, &go(b"toy"));
    assert_eq!(told[0].1[..10], [&[0, 0], &CAPACITY.to_be_bytes()[..]].concat());
    assert_eq!(told[1].1[2..], [512_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat());
    assert_eq!(client.option(7, &go(b"other"))[0].0, UNKNOWN);
    assert_eq!(client.option(7, b"\0\0\0\x09toy")[0].0, INVALID);
    assert_eq!(client.option(99, b"x")[0].0, 1 << 31 | 1);
    assert_eq!(client.option(7, &go(b"")).last().unwrap().0, 1);
    client.write(0, &[1; 512]);
}

#[test]
fn what_is_written_is_read_back_simple_and_structured_and_by_all_connections() {
    let served = served();
    let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    let mut writer = Client::go(&served.socket, false);
    writer.write(512, &bytes);
    for structured in [false, true] {
        let mut reader = Client::go(&served.socket, structured);
        assert_eq!(reader.read(512, bytes.len() as u32), bytes);
        assert_eq!(reader.read(0, 512), [0; 512]);
    }
}

#[test]
fn a_flush_with_a_range_beyond_all_numbers_is_a_flush() {
    let served = served();
    let mut client = Client::go(&served.socket, false);
    client.write(0, &[1; 512]);
    assert_eq!(client.ask((FLUSH, FUA), (u64::MAX, u32::MAX), b"").errno, 0);
    assert_eq!(Client::go(&served.socket, false).read(0, 512), [1; 512]);
}

#[test]
fn where_structured_replies_were_agreed_on_what_brings_no_data_is_answered_simply() {
    let served = served();
    let mut client = Client::go(&served.socket, true);
    for (kind, errno) in [(WRITE, 0), (TRIM, 0), (77, u64::from(EINVAL))] {
        let data = if kind == WRITE { &[1; 512][..] } else { b"" };
        client.send((kind, 0), 5, (0, 512), data);
        let told = client.take(16);
        assert_eq!([&told[..4], &told[4..8], &told[8..]].map(number), [0x6744_6698, errno, 5]);
    }
    for (kind, range) in [(READ, (0, 100)), (BLOCK_STATUS, (0, 4096))] {
        client.send((kind, 0), 5, range, b"");
        assert_eq!(number(&client.take(20)[..8]), 0x668e_33ef_0001_8001, "an error, in a chunk");
        assert_eq!(number(&client.take(6)), u64::from(EINVAL) << 16);
    }
}

#[test]
fn many_commands_at_once_are_each_answered_once() {
    let served = served();
    let mut client = Client::go(&served.socket, true);
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for cookie in 0..500_u64 {
            let kind = if cookie % 2 == 0 { WRITE } else { READ };
            let data = if cookie % 2 == 0 { vec![cookie as u8; 4096] } else { Vec::new() };
            let asked = command((kind, 0), cookie, (cookie / 2 * 4096, 4096), &data);
            sender.write_all(&asked).unwrap();
        }
    });
    let mut seen: Vec<u64> = (0..500).map(|_| client.reply(4096).cookie).collect();
    sending.join().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (0..500).collect::<Vec<_>>());
}

#[test]
fn requests_that_cannot_be_done_get_their_error_and_the_next_is_served() {
    let served = served();
    let end = CAPACITY - 512;
    for structured in [false, true] {
        let mut client = Client::go(&served.socket, structured);
        for (kind, range, errno) in [
            ((READ, 0), (end, 1024), EINVAL),
            ((WRITE, 0), (end, 1024), ENOSPC),
            ((WRITE_ZEROES, 0), (end, 1024), ENOSPC),
            ((TRIM, 0), (u64::MAX - 511, 512), EINVAL),
            ((READ, 0), (0, 0), EINVAL),
            ((READ, 0), (1, 512), EINVAL),
            ((WRITE, 0), (0, 100), EINVAL),
            ((READ, 0), (0, (32 << 20) + 512), EOVERFLOW),
            ((READ, 1 << 9), (0, 512), EINVAL),
            ((77, 0), (0, 512), EINVAL),
            ((BLOCK_STATUS, 0), (0, 4096), EINVAL),
        ] {
            let data = if kind.0 == WRITE { vec![1; range.1 as usize] } else { Vec::new() };
            assert_eq!(client.ask(kind, range, &data).errno, errno, "{kind:?} {range:?}");
        }
        client.write(end, &[5; 512]);
        assert_eq!(client.read(end, 512), [5; 512]);
    }
}

#[test]
fn a_trim_and_zeros_unmap_whole_units_and_keep_what_is_beside_them() {
    let served = served();
    let mut client = Client::go(&served.socket, false);
    client.write(0, &vec![7; 5 * 4096]);
    assert_eq!(client.ask((TRIM, 0), (4096, 4096), b"").errno, 0);
    assert_eq!(client.ask((WRITE_ZEROES, 0), (2 * 4096 + 512, 2 * 4096), b"").errno, 0);
    let read = client.read(0, 5 * 4096);
    assert!(read[..4096].iter().all(|byte| *byte == 7));
    assert!(read[4096..8192].iter().all(|byte| *byte == 0));
    assert!(read[8192..8704].iter().all(|byte| *byte == 7));
    assert!(read[8704..16896].iter().all(|byte| *byte == 0));
    assert!(read[16896..].iter().all(|byte| *byte == 7));
    assert_eq!((served.count("trims"), served.count("writes")), (2, 3));
    assert_eq!(client.ask((WRITE_ZEROES, NO_HOLE), (0, 4096), b"").errno, 0);
    assert_eq!((served.count("trims"), served.count("writes")), (2, 4));
}

#[test]
fn a_drive_whose_trims_keep_old_data_shows_it_and_zeros_are_written_to_it() {
    let served =
        Served::new(DriveOptions { trims_to_zeros: false, ..DriveOptions::default() }, Pace::None);
    let mut client = Client::go(&served.socket, false);
    client.write(0, &[7; 8192]);
    assert_eq!(client.ask((TRIM, 0), (0, 4096), b"").errno, 0);
    assert_eq!(client.read(0, 4096), [7; 4096]);
    assert_eq!(client.ask((WRITE_ZEROES, 0), (0, 4096), b"").errno, 0);
    assert_eq!(client.read(0, 4096), [0; 4096]);
    assert_eq!(served.count("trims"), 1);
}

#[test]
fn block_status_tells_what_is_mapped_in_both_contexts() {
    let served = served();
    let mut client = Client::connect(&served.socket);
    client.option(8, b"");
    let listed = client.option(9, &contexts(b"toy", &[b"x-ssdlab:"]));
    assert_eq!(listed[0].1[4..], *b"x-ssdlab:valid");
    let set = client.option(10, &contexts(b"toy", &[b"x-ssdlab:valid", b"unheard:of"]));
    assert_eq!(set.len(), 2);
    assert_eq!(client.option(7, &go(b"toy")).last().unwrap().0, 1);
    let mut writer = Client::go(&served.socket, false);
    writer.write(4096, &[1; 8192]);
    client.send((BLOCK_STATUS, 0), 1, (512, 5 * 4096), b"");
    let head = client.take(20);
    assert_eq!(number(&head[..8]), 0x668e_33ef_0001_0005);
    let told = client.take(number(&head[16..]) as usize);
    let extents: Vec<u64> = told[4..].chunks(4).map(number).collect();
    assert_eq!(extents, [4096 - 512, 0, 8192, 1, 2 * 4096 + 512, 0]);
    client.send((BLOCK_STATUS, REQ_ONE), 2, (4096, 8192), b"");
    let told = client.take(20 + 12);
    assert_eq!(number(&told[24..28]), 8192);
}

/// What a context tells of a range of units.
fn status(served: &Served, context: &[u8], units: std::ops::Range<u64>) -> Vec<u64> {
    let mut client = Client::connect(&served.socket);
    client.option(8, b"");
    client.option(10, &contexts(b"toy", &[context]));
    client.option(7, &go(b"toy"));
    let length = (units.end - units.start) * 4096;
    client.send((BLOCK_STATUS, 0), 1, (units.start * 4096, length as u32), b"");
    let head = client.take(20);
    let told = client.take(number(&head[16..]) as usize);
    told[4..].chunks(4).map(number).collect()
}

/// The flags of the first extent in `base:allocation`.
fn allocation(served: &Served) -> u64 {
    status(served, b"base:allocation", 0..1)[1]
}

#[test]
fn block_status_tells_how_worn_the_block_is_that_holds_a_unit() {
    let served = served();
    Client::go(&served.socket, false).write(4096, &[1; 8192]);
    let none = u64::from(u32::MAX);
    let told = status(&served, b"x-ssdlab:wear", 0..5);
    assert_eq!(told, [4096, none, 4096, 1, 4096, 2, 8192, none]);
}

#[test]
fn the_map_of_a_file_is_there_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("content");
    let first = Served::in_file(&file);
    let mut client = Client::go(&first.socket, false);
    for unit in [0, 1, 5, 7, 2047] {
        client.write(unit * 4096, &[9; 4096]);
    }
    assert_eq!(client.ask((TRIM, 0), (4096, 4096), b"").errno, 0);
    let told = status(&first, b"base:allocation", 0..2048);
    drop((client, first));
    let second = Served::in_file(&file);
    assert_eq!(status(&second, b"base:allocation", 0..2048), told);
    assert_eq!(told[..10], [4096, 0, 4 * 4096, 3, 4096, 0, 4096, 3, 4096, 0]);
    Client::go(&second.socket, false).write(0, &[8; 4096]);
    let cut = second.server.power_cut(true).unwrap();
    assert_eq!(cut.lost.len(), 1, "what was there before is in flash");
    assert_eq!(Client::go(&second.socket, false).read(0, 4096), [9; 4096]);
}

#[test]
fn only_what_reads_as_zeros_is_called_a_hole_of_zeros() {
    assert_eq!(allocation(&served()), 3);
    let keeps =
        Served::new(DriveOptions { trims_to_zeros: false, ..DriveOptions::default() }, Pace::None);
    assert_eq!(allocation(&keeps), 0, "its trims keep old data");
    let store = Store::in_memory(CAPACITY, UNIT, 0).with_complete_map(false);
    let other = Served::with_toy(FakeDrive::default(), Pace::None, store, None);
    assert_eq!(allocation(&other), 0, "it may have content that the map lacks");
}

#[test]
fn a_durable_write_reaches_the_drive_as_one_and_a_client_may_leave_with_commands_in_flight() {
    let served = served();
    let mut client = Client::go(&served.socket, false);
    assert_eq!(client.ask((WRITE, FUA), (0, 4096), &[1; 4096]).errno, 0);
    assert_eq!(client.ask((TRIM, FUA), (0, 4096), b"").errno, 0);
    assert_eq!(served.count("flushes"), 1);
    client.send((WRITE, 0), 1, (0, 4096), &[2; 4096]);
    client.send((DISCONNECT, 0), 2, (0, 0), b"");
    assert_eq!(client.reply(0).cookie, 1);
    assert!(client.is_closed());
}
