//! Negotiation, commands and limits of the protocol.

use std::io::Write;
use std::os::unix::net::UnixStream;

use ssdlab_engine::{Drive, Store};

use crate::prelude::*;

const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;
const UNKNOWN: u32 = 1 << 31 | 6;
const INVALID: u32 = 1 << 31 | 3;

#[test]
fn an_export_is_listed_described_and_selected() {
    let server = TestServer::default();
    let mut client = Client::connect(&server.socket).unwrap();
    assert_eq!(client.option(3, b""), [(2, b"\0\0\0\x03toy".to_vec()), (1, Vec::new())]);
    let reply = client.option(6, &go_data(b"toy"));
    assert_eq!(reply[0].1[..10], [&[0, 0], &CAPACITY.to_be_bytes()[..]].concat());
    assert_eq!(reply[1].1[2..], [512_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat());
    assert_eq!(client.option(7, &go_data(b"other"))[0].0, UNKNOWN);
    assert_eq!(client.option(7, b"\0\0\0\x09toy")[0].0, INVALID);
    assert_eq!(client.option(99, b"x")[0].0, 1 << 31 | 1);
    assert_eq!(client.option(7, &go_data(b"")).last().unwrap().0, 1);
    client.write(0, &[1; 512]);
}

#[test]
fn an_export_is_selected_by_export_name() {
    let server = TestServer::default();
    for (flags, zeros) in [(1_u32, 124), (3, 0)] {
        let mut client = Client::over(UnixStream::connect(&server.socket).unwrap());
        client.receive(18);
        client.stream.write_all(&flags.to_be_bytes()).unwrap();
        client.stream.write_all(&option(OPT_EXPORT_NAME, b"toy")).unwrap();
        assert_eq!(client.receive(8), CAPACITY.to_be_bytes());
        client.receive(2); // the transmission flags
        assert_eq!(client.receive(zeros), vec![0; zeros]);
        client.write(0, &[1; 512]);
    }
}

#[test]
fn written_data_is_read_back_with_simple_and_structured_replies_on_all_connections() {
    let server = TestServer::default();
    let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    let mut writer = server.client();
    writer.write(512, &bytes);
    for structured in [false, true] {
        let mut reader = Client::go(&server.socket, structured).unwrap();
        assert_eq!(reader.read(512, bytes.len() as u32), bytes);
        assert_eq!(reader.read(0, 512), [0; 512]);
    }
}

#[test]
fn the_range_of_a_flush_is_ignored() {
    let (server, mut client) = TestServer::with_client();
    client.write(0, &[1; 512]);
    assert_eq!(client.request((CMD_FLUSH, FUA), (u64::MAX, u32::MAX), b"").errno, 0);
    assert_eq!(server.client().read(0, 512), [1; 512]);
}

#[test]
fn with_structured_replies_commands_without_data_get_simple_replies() {
    let server = TestServer::default();
    let mut client = Client::go(&server.socket, true).unwrap();
    for (kind, errno) in [(CMD_WRITE, 0), (CMD_TRIM, 0), (77, u64::from(EINVAL))] {
        let data = if kind == CMD_WRITE { &[1; 512][..] } else { b"" };
        client.send((kind, 0), 5, (0, 512), data);
        let reply = client.receive(16);
        assert_eq!([&reply[..4], &reply[4..8], &reply[8..]].map(number), [0x6744_6698, errno, 5]);
    }
    for (kind, range) in [(CMD_READ, (0, 100)), (CMD_BLOCK_STATUS, (0, 4096))] {
        client.send((kind, 0), 5, range, b"");
        assert_eq!(number(&client.receive(20)[..8]), 0x668e_33ef_0001_8001, "an error chunk");
        assert_eq!(number(&client.receive(6)), u64::from(EINVAL) << 16);
    }
}

#[test]
fn each_of_many_concurrent_commands_gets_one_reply() {
    let server = TestServer::default();
    let mut client = Client::go(&server.socket, true).unwrap();
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        for cookie in 0..500_u64 {
            let kind = if cookie % 2 == 0 { CMD_WRITE } else { CMD_READ };
            let data = if cookie % 2 == 0 { vec![cookie as u8; 4096] } else { Vec::new() };
            let request = request((kind, 0), cookie, (cookie / 2 * 4096, 4096), &data);
            sender.write_all(&request).unwrap();
        }
    });
    let mut seen: Vec<u64> = (0..500).map(|_| client.reply(4096).cookie).collect();
    sending.join().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (0..500).collect::<Vec<_>>());
}

#[test]
fn invalid_requests_get_their_error_and_the_next_is_served() {
    let server = TestServer::default();
    let end = CAPACITY - 512;
    for structured in [false, true] {
        let mut client = Client::go(&server.socket, structured).unwrap();
        for (kind, range, errno) in [
            ((CMD_READ, 0), (end, 1024), EINVAL),
            ((CMD_WRITE, 0), (end, 1024), ENOSPC),
            ((CMD_WRITE_ZEROES, 0), (end, 1024), ENOSPC),
            ((CMD_TRIM, 0), (u64::MAX - 511, 512), EINVAL),
            ((CMD_READ, 0), (0, 0), EINVAL),
            ((CMD_READ, 0), (1, 512), EINVAL),
            ((CMD_WRITE, 0), (0, 100), EINVAL),
            ((CMD_READ, 0), (0, (32 << 20) + 512), EOVERFLOW),
            ((CMD_READ, 1 << 9), (0, 512), EINVAL),
            ((77, 0), (0, 512), EINVAL),
            ((CMD_BLOCK_STATUS, 0), (0, 4096), EINVAL),
        ] {
            let data = if kind.0 == CMD_WRITE { vec![1; range.1 as usize] } else { Vec::new() };
            assert_eq!(client.request(kind, range, &data).errno, errno, "{kind:?} {range:?}");
        }
        client.write(end, &[5; 512]);
        assert_eq!(client.read(end, 512), [5; 512]);
    }
}

#[test]
fn trims_and_zeros_unmap_whole_units_and_keep_their_neighbours() {
    let (server, mut client) = TestServer::with_client();
    client.write(0, &vec![7; 5 * 4096]);
    assert_eq!(client.request((CMD_TRIM, 0), (4096, 4096), b"").errno, 0);
    assert_eq!(client.request((CMD_WRITE_ZEROES, 0), (2 * 4096 + 512, 2 * 4096), b"").errno, 0);
    let expected = runs(&[(7, 4096), (0, 4096), (7, 512), (0, 8192), (7, 3584)]);
    assert_eq!(client.read(0, 5 * 4096), expected);
    assert_eq!((server.count("trims"), server.count("writes")), (2, 3));
    assert_eq!(client.request((CMD_WRITE_ZEROES, NO_HOLE), (0, 4096), b"").errno, 0);
    assert_eq!((server.count("trims"), server.count("writes")), (2, 4));
}

#[test]
fn if_trims_keep_old_data_it_is_readable_and_zeros_are_written() {
    let server = TestServer::new(DriveOptions { trims_to_zeros: false, ..DriveOptions::default() });
    let mut client = server.client();
    client.write(0, &[7; 8192]);
    assert_eq!(client.request((CMD_TRIM, 0), (0, 4096), b"").errno, 0);
    assert_eq!(client.read(0, 4096), [7; 4096]);
    assert_eq!(client.request((CMD_WRITE_ZEROES, 0), (0, 4096), b"").errno, 0);
    assert_eq!(client.read(0, 4096), [0; 4096]);
    assert_eq!(server.count("trims"), 1);
}

#[test]
fn block_status_reports_mapped_units_in_both_contexts() {
    let server = TestServer::default();
    let mut client = Client::connect(&server.socket).unwrap();
    client.option(8, b"");
    let listed = client.option(9, &meta_context_data(b"toy", &[b"x-ssdlab:"]));
    assert_eq!(listed[0].1[4..], *b"x-ssdlab:valid");
    let set = client.option(10, &meta_context_data(b"toy", &[b"x-ssdlab:valid", b"unheard:of"]));
    assert_eq!(set.len(), 2);
    assert_eq!(client.option(7, &go_data(b"toy")).last().unwrap().0, 1);
    let mut writer = server.client();
    writer.write(4096, &[1; 8192]);
    client.send((CMD_BLOCK_STATUS, 0), 1, (512, 5 * 4096), b"");
    let head = client.receive(20);
    assert_eq!(number(&head[..8]), 0x668e_33ef_0001_0005);
    let reply = client.receive(number(&head[16..]) as usize);
    let extents: Vec<u64> = reply[4..].chunks(4).map(number).collect();
    assert_eq!(extents, [4096 - 512, 0, 8192, 1, 2 * 4096 + 512, 0]);
    client.send((CMD_BLOCK_STATUS, REQ_ONE), 2, (512, 5 * 4096), b"");
    let head = client.receive(20);
    let reply = client.receive(number(&head[16..]) as usize);
    let extents: Vec<u64> = reply[4..].chunks(4).map(number).collect();
    assert_eq!(extents, [4096 - 512, 0]);
}

#[test]
fn a_failed_set_meta_context_selects_no_context() {
    let server = TestServer::default();
    for failing in [vec![0], vec![0; 70_000]] {
        let mut client = Client::connect(&server.socket).unwrap();
        client.option(8, b"");
        let set = client.option(10, &meta_context_data(b"toy", &[b"x-ssdlab:valid"]));
        assert_eq!(set.len(), 2);
        assert!(client.option(10, &failing).last().unwrap().0 >> 31 == 1, "an error reply");
        client.option(7, &go_data(b"toy"));
        client.send((CMD_BLOCK_STATUS, 0), 1, (0, 4096), b"");
        let head = client.receive(20);
        assert_eq!(number(&head[4..8]) & 0xffff, 0x8001, "an error chunk");
    }
}

/// The block status of a range of units in a metadata context.
fn status(server: &TestServer, context: &[u8], units: std::ops::Range<u64>) -> Vec<u64> {
    let mut client = Client::connect(&server.socket).unwrap();
    client.option(8, b"");
    client.option(10, &meta_context_data(b"toy", &[context]));
    client.option(7, &go_data(b"toy"));
    let length = (units.end - units.start) * 4096;
    client.send((CMD_BLOCK_STATUS, 0), 1, (units.start * 4096, length as u32), b"");
    let head = client.receive(20);
    let reply = client.receive(number(&head[16..]) as usize);
    reply[4..].chunks(4).map(number).collect()
}

/// The flags of the first extent in `base:allocation`.
fn allocation(server: &TestServer) -> u64 {
    status(server, b"base:allocation", 0..1)[1]
}

#[test]
fn block_status_reports_the_erase_count_of_the_block_of_a_unit() {
    let server = TestServer::default();
    server.client().write(4096, &[1; 8192]);
    let none = u64::from(u32::MAX);
    let reply = status(&server, b"x-ssdlab:wear", 0..5);
    assert_eq!(reply, [4096, none, 4096, 1, 4096, 2, 8192, none]);
}

#[test]
fn the_mapping_of_a_data_file_is_restored_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("content");
    let first = TestServer::in_file(&file);
    let mut client = first.client();
    for unit in [0, 1, 5, 7, 2047] {
        client.write(unit * 4096, &[9; 4096]);
    }
    assert_eq!(client.request((CMD_TRIM, 0), (4096, 4096), b"").errno, 0);
    let reply = status(&first, b"base:allocation", 0..2048);
    drop((client, first));
    let second = TestServer::in_file(&file);
    assert_eq!(status(&second, b"base:allocation", 0..2048), reply);
    assert_eq!(reply[..10], [4096, 0, 4 * 4096, 3, 4096, 0, 4096, 3, 4096, 0]);
    second.client().write(0, &[8; 4096]);
    let cut = second.server.power_cut(true).unwrap();
    assert_eq!(cut.lost.len(), 1, "restored data is in flash");
    assert_eq!(second.client().read(0, 4096), [9; 4096]);
}

#[test]
fn only_units_that_read_as_zeros_are_reported_as_zero_holes() {
    assert_eq!(allocation(&TestServer::default()), 3);
    let keeps = TestServer::new(DriveOptions { trims_to_zeros: false, ..DriveOptions::default() });
    assert_eq!(allocation(&keeps), 0, "trims keep old data");
    let drive = FakeDrive::default();
    let store = Store::in_memory(&drive.parameters()).with_complete_map(false);
    let other = TestServer::with_store(drive, store);
    assert_eq!(allocation(&other), 0, "the file may hold data that is not mapped");
}

#[test]
fn fua_reaches_the_drive_and_a_client_may_leave_with_commands_in_flight() {
    let (server, mut client) = TestServer::with_client();
    assert_eq!(client.request((CMD_WRITE, FUA), (0, 4096), &[1; 4096]).errno, 0);
    assert_eq!(client.request((CMD_TRIM, FUA), (0, 4096), b"").errno, 0);
    assert_eq!(server.count("flushes"), 1);
    client.send((CMD_WRITE, 0), 1, (0, 4096), &[2; 4096]);
    client.send((CMD_DISC, 0), 2, (0, 0), b"");
    assert_eq!(client.reply(0).cookie, 1);
    assert!(client.is_closed());
}
