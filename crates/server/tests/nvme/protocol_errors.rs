//! Hosts that violate the protocol get an error or are disconnected; other hosts are not affected.

use std::io::{Read, Write};
use std::net::Shutdown;

use ssdlab_time::Random;

use crate::prelude::*;

fn connect(name: &str, queue: u16, controller: u16) -> Vec<u8> {
    let data = host_data(name, controller);
    capsule(Entry::connect(queue).data(data.len(), SGL_IN_CAPSULE), &data, 0)
}

fn command(entry: Entry) -> Vec<u8> {
    capsule(entry, &[], 0)
}

/// The first PDUs of an admin queue.
fn admin_script(name: &str) -> Vec<Vec<u8>> {
    vec![
        icreq(0),
        connect(name, 0, 0xffff),
        command(Entry::set_property(CC, CC_ENABLE)),
        command(Entry::fabrics(PROPERTY_GET).cdw(11, 0x1c)),
        command(Entry::new(IDENTIFY).cdw(10, 1).data(4096, SGL_TRANSPORT)),
        command(Entry::new(2).cdw(10, 2 | 127 << 16).data(512, SGL_TRANSPORT)),
    ]
}

/// The first PDUs of an I/O queue: data in a capsule, and data for an R2T of the command with
/// CID 0.
fn io_script(name: &str, queue: u16, controller: u16) -> Vec<Vec<u8>> {
    let mut part = vec![0; 16];
    part[8..12].copy_from_slice(&16384_u32.to_le_bytes());
    let sent = pdu(H2C_DATA, LAST_PDU, &part, &vec![3; 16384], 0);
    vec![
        icreq(0),
        connect(name, queue, controller),
        capsule(Entry::on(WRITE, 0, 8).data(4096, SGL_IN_CAPSULE), &[1; 4096], 0),
        command(Entry::on(WRITE, 64, 32).data(16384, SGL_TRANSPORT)),
        sent,
        command(Entry::on(READ, 0, 8).data(4096, SGL_TRANSPORT)),
        command(Entry::new(FLUSH).nsid(1)),
    ]
}

/// Changes, duplicates, drops or truncates some PDUs.
fn mutate(script: &mut Vec<Vec<u8>>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let which = random.below(script.len() as u64) as usize;
        match random.below(8) {
            0 => {
                let again = script[which].clone();
                script.insert(which, again);
            }
            1 if script.len() > 1 => drop(script.remove(which)),
            _ if script[which].is_empty() => {}
            2 => {
                let length = random.below(script[which].len() as u64) as usize;
                script[which].truncate(length);
            }
            _ => {
                // The header has most of the fields.
                let most = script[which].len().min(80) as u64;
                let at = random.below(most) as usize;
                let others = [0, 0xff, script[which][at] ^ 1 << random.below(8)];
                let other = others.get(random.below(4) as usize).copied();
                script[which][at] = other.unwrap_or_else(|| random.next_u64() as u8);
            }
        }
    }
}

#[test]
fn mutated_pdus_are_answered_or_end_their_own_connection() {
    let target = TestServer::default();
    let (_admin, controller) = target.admin(0);
    let mut honest = target.io(64, controller, 0);
    let mut random = Random::new(seed(), "units");
    for number in 0..u64::from(scaled(500)) {
        let mut script = if number % 2 == 0 {
            admin_script(&target.name)
        } else {
            io_script(&target.name, 1 + (number / 2 % 60) as u16, controller)
        };
        mutate(&mut script, &mut random);
        let mut stream = std::net::TcpStream::connect(target.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        // The server may already have closed the connection.
        let _ = stream.write_all(&script.concat());
        let _ = stream.shutdown(Shutdown::Write);
        let ended = stream.read_to_end(&mut Vec::new());
        let hangs = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!hangs, "the server hangs in case {number}");
        if number % 100 == 0 {
            honest.read(0, 8);
        }
    }
    honest.write(0, &[1; 4096]);
    assert_eq!(honest.read(0, 8), [1; 4096]);
}

/// The fatal error status and information (FES, FEI) of the `C2HTermReq` that ends the connection.
fn term_req(host: &mut Host) -> (u16, u32) {
    let pdu = host.receive_pdu().unwrap();
    assert_eq!(pdu.kind, C2H_TERM_REQ);
    assert!(host.is_closed());
    (u16_at(&pdu.header, 8), u32_at(&pdu.header, 10))
}

#[test]
fn an_invalid_pdu_ends_its_connection_with_the_error() {
    let target = TestServer::default();
    let read = command(Entry::on(READ, 0, 1).data(512, SGL_TRANSPORT));
    let changed = |at: usize, to: u8| {
        let mut pdu = read.clone();
        pdu[at] = to;
        pdu
    };
    let unasked = pdu(H2C_DATA, 0, &[9; 16], &[0; 4], 0);
    for (pdu, expected) in [
        (changed(0, 0x55), (1, 0)),
        (changed(1, 1), (1, 1)),
        (changed(2, 71), (1, 2)),
        (changed(3, 70), (1, 3)),
        (changed(4, 80), (1, 4)),
        (changed(7, 0xff), (1, 4)),
        (unasked, (1, 10)),
    ] {
        let (_admin, mut io) = target.host(0);
        io.stream.write_all(&pdu).unwrap();
        assert_eq!(term_req(&mut io), expected, "{:?}", &pdu[..8]);
    }
    let (_admin, mut io) = target.host(1);
    let mut pdu = read.clone();
    (pdu[1], pdu[4]) = (1, 76);
    pdu.extend([1, 2, 3, 4]);
    io.stream.write_all(&pdu).unwrap();
    assert_eq!(term_req(&mut io), (3, 0x0403_0201), "header digest");
}

/// An `H2CData` PDU of a command: its CID and TTAG, the offset and the length of its data.
fn part((id, tag): (u16, u16), (offset, length): (u32, u32), data: &[u8], flags: u8) -> Vec<u8> {
    let mut header = [id.to_le_bytes(), tag.to_le_bytes()].concat();
    header.extend(offset.to_le_bytes());
    header.extend(length.to_le_bytes());
    header.extend([0; 4]);
    pdu(H2C_DATA, flags, &header, data, 0)
}

#[test]
fn an_h2c_data_pdu_that_does_not_match_its_r2t_ends_the_connection() {
    let target = TestServer::default();
    let (half, last) = (8192, 4);
    for (other, at, length, flags, expected) in [
        (1, 0, half, 0, (1, 10)),
        (0, 0, half + 4, 0, (1, 16)),
        (0, 0, half, last, (1, 1)),
        (0, 0, 2 * half, 0, (1, 1)),
        // Beyond the R2T.
        (0, 4, 2 * half, 0, (4, 12)),
        (0, 0, 2 * half + 8, 0, (4, 12)),
    ] {
        let (_admin, mut io) = target.host(0);
        let id = io.submit(Entry::on(WRITE, 0, 32).data(16384, SGL_TRANSPORT), &[]);
        assert_eq!(io.receive_pdu().unwrap().kind, R2T);
        let data = vec![1; length as usize & !7];
        let sent = part((id + other, id), (at, length), &data, flags);
        io.stream.write_all(&sent).unwrap();
        assert_eq!(term_req(&mut io), expected, "{other} {length} {flags}");
    }
}

#[test]
fn a_wrong_data_digest_of_one_pdu_fails_the_command() {
    let target = TestServer::default();
    for broken in [0, 1] {
        let (_admin, mut io) = target.host(2);
        let id = io.submit(Entry::on(WRITE, 0, 32).data(16384, SGL_TRANSPORT), &[]);
        assert_eq!(io.receive_pdu().unwrap().kind, R2T);
        for which in 0..2 {
            let data = [6; 8192];
            let flags = if which == 1 { 4 | 2 } else { 2 };
            let mut sent = part((id, id), (which * 8192, 8192), &data, flags);
            let whole = sent.len() as u32 + 4;
            sent[4..8].copy_from_slice(&whole.to_le_bytes());
            let digest = crc32c::crc32c(&data) ^ u32::from(which == broken);
            sent.extend(digest.to_le_bytes());
            io.stream.write_all(&sent).unwrap();
        }
        assert_eq!(io.complete(&[]).unwrap().status, TRANSIENT_TRANSPORT_ERROR, "part {broken}");
        assert_eq!(io.read(0, 32), [0; 16384]);
    }
}

#[test]
fn r2ts_have_limits() {
    let (_target, _admin, mut io) = TestServer::with_host();
    let too_long = io.submit(Entry::on(WRITE, 0, 64).data(32768, SGL_TRANSPORT), &[]);
    let completion = io.complete(&[]).unwrap();
    // The server does not wait for its data.
    assert_eq!((completion.cid, completion.status), (too_long, 2));
    for _ in 0..256 {
        io.submit(Entry::on(WRITE, 0, 32).data(16384, SGL_TRANSPORT), &[]);
        assert_eq!(io.receive_pdu().unwrap().kind, R2T);
    }
    io.submit(Entry::on(WRITE, 0, 32).data(16384, SGL_TRANSPORT), &[]);
    assert_eq!(term_req(&mut io), (2, 0), "too many commands wait for data");
}

/// Opens a connection with one byte of the `ICReq` changed.
fn open_with(target: &TestServer, at: usize, value: u8) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(target.address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut hello = icreq(0);
    hello[at] = value;
    stream.write_all(&hello).unwrap();
    stream
}

#[test]
fn an_invalid_icreq_gets_a_term_req() {
    let target = TestServer::default();
    for (at, value, expected) in
        [(8, 1, [6, 0, 8, 0]), (10, 32, [1, 0, 10, 0]), (2, 120, [1, 0, 2, 0])]
    {
        let mut completion = Vec::new();
        open_with(&target, at, value).read_to_end(&mut completion).unwrap();
        assert_eq!((completion[0], &completion[8..12]), (3, &expected[..]), "{at} {value}");
    }
}

#[test]
fn data_has_the_alignment_that_the_host_requests() {
    let target = TestServer::default();
    let mut stream = open_with(&target, 10, 15);
    stream.read_exact(&mut [0; 128]).unwrap();
    let enable = command(Entry::set_property(CC, CC_ENABLE));
    stream.write_all(&[connect(&target.name, 0, 0xffff), enable].concat()).unwrap();
    stream.read_exact(&mut [0; 48]).unwrap();
    let identify = Entry::new(IDENTIFY).cdw(10, 1).data(4096, SGL_TRANSPORT);
    stream.write_all(&command(identify)).unwrap();
    let mut head = [0; 8];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(
        (head[0], head[2], head[3], u32_at(&head, 4)),
        (7, 24, 64, 64 + 4096),
        "aligned to 64 bytes"
    );
}

#[test]
fn data_with_a_wrong_digest_is_not_written_and_can_be_sent_again() {
    let target = TestServer::default();
    let (_admin, mut io) = target.host(2);
    let entry = Entry::on(WRITE, 0, 1).data(512, SGL_IN_CAPSULE);
    let mut wrong = capsule(entry, &[6; 512], 0);
    (wrong[1], wrong[4]) = (2, wrong[4] + 4);
    wrong.extend([0; 4]);
    io.stream.write_all(&wrong).unwrap();
    assert_eq!(io.complete(&[]).unwrap().status, TRANSIENT_TRANSPORT_ERROR);
    assert_eq!(io.read(0, 1), [0; 512]);
    io.write(0, &[6; 512]);
    assert_eq!(io.read(0, 1), [6; 512]);
}

#[test]
fn a_command_with_an_invalid_sgl_or_a_cid_in_use_is_refused() {
    let (_target, _admin, mut io) = TestServer::with_host();
    for (kind, offset, code) in [(0x00, 0, 0x11), (0x01, 4, 0x16), (0x01, u64::MAX, 0x16)] {
        let entry = Entry::on(WRITE, 0, 1).data(512, kind).cdw64(6, offset);
        io.submit(entry, &[1; 512]);
        assert_eq!(io.complete(&[]).unwrap().status, code, "{kind:x} {offset}");
    }
    let id = io.submit(Entry::on(WRITE, 0, 32).data(16384, SGL_TRANSPORT), &[]);
    assert_eq!(io.receive_pdu().unwrap().kind, R2T);
    let mut again = Entry::on(READ, 0, 1).data(512, SGL_TRANSPORT);
    again.0[2..4].copy_from_slice(&id.to_le_bytes());
    io.stream.write_all(&command(again)).unwrap();
    assert_eq!(io.complete(&[]).unwrap().status, 3);
}
