//! The write log: its replay gives the data at each mark and at the end.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use ssdlab_testing::nvme::number;
use ssdlab_time::Random;

use crate::prelude::*;

const SECTOR: usize = 512;

/// The data after all entries, the data at each mark, and the number of entries by flags.
struct Replayed {
    content: Vec<u8>,
    marks: BTreeMap<String, Vec<u8>>,
    flags: BTreeMap<u64, usize>,
}

fn replay(path: &Path) -> Replayed {
    let log = std::fs::read(path).unwrap();
    assert_eq!([number(&log, 0, 8), number(&log, 8, 8)], [0x6a_7366_7773_6872, 1]);
    assert_eq!(log[24..28], 512_u32.to_le_bytes());
    let mut replayed = Replayed {
        content: vec![0; CAPACITY as usize],
        marks: BTreeMap::new(),
        flags: BTreeMap::new(),
    };
    let mut at = SECTOR;
    for _ in 0..number(&log, 16, 8) {
        let entry = &log[at..at + SECTOR];
        let [sector, sectors, flags, marked] = [0, 8, 16, 24].map(|from| number(entry, from, 8));
        at += SECTOR;
        *replayed.flags.entry(flags).or_default() += 1;
        if flags & 8 > 0 {
            let name = String::from_utf8(entry[32..32 + marked as usize].to_vec()).unwrap();
            replayed.marks.insert(name, replayed.content.clone());
        }
        let (start, length) = (sector as usize * SECTOR, sectors as usize * SECTOR);
        let place = &mut replayed.content[start..start + length];
        if flags & 4 > 0 {
            place.fill(0);
        } else {
            place.copy_from_slice(&log[at..at + length]);
            at += length;
        }
    }
    assert_eq!(at, log.len(), "no bytes after the last entry");
    replayed
}

/// Makes a random change of a random range.
fn change(client: &mut Client, random: &mut Random) {
    let sectors = 1 + random.below(40);
    let offset = random.below(CAPACITY / 512 - sectors) * 512;
    let range = (offset, (sectors * 512) as u32);
    let flags = if random.below(4) == 0 { FUA } else { 0 };
    let mut data = vec![0; sectors as usize * 512];
    random.fill(&mut data);
    let (kind, data): (_, &[u8]) = match random.below(5) {
        0 => ((CMD_TRIM, flags), b""),
        1 => ((CMD_WRITE_ZEROES, flags), b""),
        2 => ((CMD_WRITE_ZEROES, flags | NO_HOLE), b""),
        _ => ((CMD_WRITE, flags), &data),
    };
    assert_eq!(client.request(kind, range, data).errno, 0);
}

#[test]
fn a_replay_gives_the_data_at_the_end_at_a_mark_and_after_a_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let server = TestServer::with_log(&path);
    let mut control = server.control();
    let mut random = Random::new(1, "log");
    let mut client = server.client();
    (0..200).for_each(|_| change(&mut client, &mut random));
    client.flush();
    control.call("mark", json!({ "name": "half" }));
    let half = client.read(0, CAPACITY as u32);
    control.call("fault", json!({ "kind": "torn", "at": 5 }));
    control.call("fault", json!({ "kind": "misdirected", "at": 9 }));
    (0..100).for_each(|_| change(&mut client, &mut random));
    let cut = control.call("power-cut", json!({ "on": true }));
    assert!(cut["cut"]["lost_units"].as_u64().unwrap() > 0);
    let mut client = server.client();
    (0..50).for_each(|_| change(&mut client, &mut random));
    let content = client.read(0, CAPACITY as u32);
    control.call("mark", json!({ "name": "end" }));
    let replayed = replay(&path);
    assert!(replayed.marks["half"] == half, "at the mark");
    assert!(replayed.content == content, "at the end");
    assert!(replayed.marks.contains_key("power-cut"));
    for flags in [0, 1, 2, 4, 6, 8] {
        assert!(replayed.flags.contains_key(&flags), "{flags}: {:?}", replayed.flags);
    }
}

#[test]
fn a_mark_that_is_too_long_or_without_a_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let logged = TestServer::with_log(&path);
    let mark = |server: &TestServer, length: usize| {
        let name = "x".repeat(length);
        server.control().call("mark", json!({ "name": name }))["error"].is_string()
    };
    assert!(!mark(&logged, 480));
    assert!(mark(&logged, 481));
    assert!(mark(&TestServer::default(), 1));
    assert!(replay(&path).marks.contains_key(&"x".repeat(480)));
}
