//! Power cuts: flushed data is kept, and other writes are rolled back.

use ssdlab_time::Random;

use crate::prelude::*;

fn cut(server: &TestServer) -> usize {
    server.server.power_cut(true).unwrap().lost.len()
}

#[test]
fn flushed_data_is_kept_and_the_rest_is_rolled_back() {
    let (server, mut client) = TestServer::with_client();
    client.write(0, &[1; 8192]);
    client.flush();
    client.write(0, &[2; 4096]);
    client.write(0, &[3; 512]);
    client.write(4096, &[4; 512]);
    assert_eq!(client.request((CMD_WRITE, FUA), (8192, 512), &[5; 512]).errno, 0);
    client.write(8192, &[6; 512]);
    assert_eq!(cut(&server), 1);
    assert!(client.is_closed());
    let mut after = server.client();
    let read = after.read(0, 3 * 4096);
    // A durable write of the fake drive flushes all earlier writes.
    assert!(read[..512].iter().all(|byte| *byte == 3));
    assert!(read[512..4096].iter().all(|byte| *byte == 2));
    assert_eq!(read[4096], 4);
    assert_eq!(read[4608], 1);
    assert_eq!((read[8192], read[8704]), (5, 0));
}

#[test]
fn a_drive_that_ignores_flushes_loses_data_and_a_protected_one_does_not() {
    for (options, lost, kept) in [
        (DriveOptions { honours_flush: false, ..DriveOptions::default() }, 1, 0),
        (DriveOptions { power_loss_protection: true, ..DriveOptions::default() }, 0, 9),
    ] {
        let server = TestServer::new(options);
        let mut client = server.client();
        client.write(0, &[9; 4096]);
        client.flush();
        assert_eq!(cut(&server), lost);
        assert_eq!(server.client().read(0, 512), [kept; 512]);
    }
}

#[test]
fn trimmed_data_does_not_come_back() {
    let (server, mut client) = TestServer::with_client();
    client.write(0, &[1; 4096]);
    client.flush();
    client.write(0, &[2; 4096]);
    assert_eq!(client.request((CMD_TRIM, 0), (0, 4096), b"").errno, 0);
    client.write(0, &[3; 4096]);
    assert_eq!(cut(&server), 1);
    assert_eq!(server.client().read(0, 4096), [0; 4096]);
}

#[test]
fn random_commands_with_cuts_match_a_model_of_bytes() {
    for seed in 0..20 {
        let server = TestServer::default();
        let mut random = Random::new(seed, "cuts");
        let mut safe = vec![0_u8; CAPACITY as usize];
        let mut seen = safe.clone();
        let mut client = Client::go(&server.socket, seed % 2 == 0).unwrap();
        for step in 0..200_u64 {
            let offset = random.below(CAPACITY / 512 - 64) * 512;
            let length = (1 + random.below(64)) * 512;
            let range = offset as usize..(offset + length) as usize;
            match random.below(10) {
                0 => {
                    client.flush();
                    safe.copy_from_slice(&seen);
                }
                1 => {
                    let trim = client.request((CMD_TRIM, 0), (offset, length as u32), b"");
                    assert_eq!(trim.errno, 0);
                    let whole = offset.next_multiple_of(UNIT)..(offset + length) / UNIT * UNIT;
                    if !whole.is_empty() {
                        let whole = whole.start as usize..whole.end as usize;
                        seen[whole.clone()].fill(0);
                        safe[whole].fill(0);
                    }
                }
                2 if step % 4 == 0 => {
                    cut(&server);
                    seen.copy_from_slice(&safe);
                    client = Client::go(&server.socket, seed % 2 == 0).unwrap();
                }
                3 | 4 => assert_eq!(client.read(offset, length as u32), seen[range]),
                _ => {
                    let bytes = vec![(step % 255 + 1) as u8; length as usize];
                    client.write(offset, &bytes);
                    seen[range].copy_from_slice(&bytes);
                }
            }
        }
        assert_eq!(client.read(0, CAPACITY as u32), seen, "seed {seed}");
    }
}
