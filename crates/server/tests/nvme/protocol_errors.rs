//! Hosts that break the protocol: they are told so or left, and nobody else notices.

use std::io::{Read, Write};
use std::net::Shutdown;

use ssdlab_time::Random;

use crate::client::{ENABLE, FLUSH, Host, IDENTIFY, READ, Sqe, Target, WRITE};
use ssdlab_testing::DriveOptions;

/// By hand: as many as the environment says.
fn mutations() -> u64 {
    std::env::var("SSDLAB_MUTATIONS").map_or(1500, |number| number.parse().unwrap())
}

/// A unit whose lengths are right.
fn unit(kind: u8, header: &[u8], data: &[u8]) -> Vec<u8> {
    let length = 8 + header.len();
    let data_at = if data.is_empty() { 0 } else { length as u8 };
    let mut unit = vec![kind, 0, length as u8, data_at];
    unit.extend(((length + data.len()) as u32).to_le_bytes());
    unit.extend(header);
    unit.extend(data);
    unit
}

fn connect(name: &str, queue: u32, controller: u16) -> Vec<u8> {
    let mut data = vec![0; 1024];
    data[..16].fill(7);
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + name.len()].copy_from_slice(name.as_bytes());
    let sqe = Sqe::fabrics(1).word(10, queue << 16).word(11, 127).data(1024, 1);
    unit(4, &sqe.0, &data)
}

fn command(sqe: Sqe) -> Vec<u8> {
    unit(4, &sqe.0, &[])
}

/// What a host of an admin queue sends first.
fn admin_script(name: &str) -> Vec<Vec<u8>> {
    vec![
        unit(0, &[0; 120], &[]),
        connect(name, 0, 0xffff),
        command(Sqe::fabrics(0).word(11, 0x14).long(12, ENABLE)),
        command(Sqe::fabrics(4).word(11, 0x1c)),
        command(Sqe::new(IDENTIFY).word(10, 1).data(4096, 0x5a)),
        command(Sqe::new(2).word(10, 2 | 127 << 16).data(512, 0x5a)),
    ]
}

/// And one of an I/O queue: data in capsules, and data that was asked for under the id 0.
fn io_script(name: &str, queue: u32, controller: u16) -> Vec<Vec<u8>> {
    let mut part = vec![0; 16];
    part[8..12].copy_from_slice(&16384_u32.to_le_bytes());
    let mut sent = unit(6, &part, &vec![3; 16384]);
    sent[1] = 4;
    vec![
        unit(0, &[0; 120], &[]),
        connect(name, queue, controller),
        unit(4, &Sqe::on(WRITE, 0, 8).data(4096, 1).0, &[1; 4096]),
        command(Sqe::on(WRITE, 64, 32).data(16384, 0x5a)),
        sent,
        command(Sqe::on(READ, 0, 8).data(4096, 0x5a)),
        command(Sqe::new(FLUSH).namespace(1)),
    ]
}

/// Changes, doubles, drops or cuts some of what is sent.
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
                // Most of what matters stands in the header.
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
fn mutated_units_are_answered_or_end_their_connection_and_no_other() {
    let target = Target::new(DriveOptions::default());
    let (_admin, controller) = Host::admin(target.address, &target.name, 0);
    let mut honest = Host::io(target.address, &target.name, 64, controller, 0);
    let mut random = Random::new(11, "units");
    for number in 0..mutations() {
        let mut script = if number % 2 == 0 {
            admin_script(&target.name)
        } else {
            io_script(&target.name, 1 + (number / 2 % 60) as u32, controller)
        };
        mutate(&mut script, &mut random);
        let mut stream = std::net::TcpStream::connect(target.address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(600))).unwrap();
        // A server that has left already is one of the two right answers.
        let _ = stream.write_all(&script.concat());
        let _ = stream.shutdown(Shutdown::Write);
        let ended = stream.read_to_end(&mut Vec::new());
        let hangs = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!hangs, "case {number} is neither answered nor left");
        if number % 100 == 0 {
            honest.read(0, 8);
        }
    }
    honest.write(0, &[1; 4096]);
    assert_eq!(honest.read(0, 8), [1; 4096]);
}

/// What a connection is ended with: the reason, and what it is about.
fn reason(host: &mut Host) -> (u16, u32) {
    let unit = host.unit().unwrap();
    assert_eq!(unit.kind, 3);
    assert!(host.is_closed());
    let number = |from: usize, to: usize| {
        unit.header[from..to].iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
    };
    (number(8, 10) as u16, number(10, 14))
}

#[test]
fn a_unit_that_is_wrong_ends_its_connection_with_the_reason() {
    let target = Target::new(DriveOptions::default());
    let read = command(Sqe::on(READ, 0, 1).data(512, 0x5a));
    let changed = |at: usize, to: u8| {
        let mut unit = read.clone();
        unit[at] = to;
        unit
    };
    let unasked = unit(6, &[9; 16], &[0; 4]);
    for (unit, told) in [
        (changed(0, 0x55), (1, 0)),
        (changed(1, 1), (1, 1)),
        (changed(2, 71), (1, 2)),
        (changed(3, 70), (1, 3)),
        (changed(4, 80), (1, 4)),
        (changed(7, 0xff), (1, 4)),
        (unasked, (1, 10)),
    ] {
        let (_admin, mut io) = target.host(0);
        io.stream.write_all(&unit).unwrap();
        assert_eq!(reason(&mut io), told, "{:?}", &unit[..8]);
    }
    let (_admin, mut io) = target.host(1);
    let mut unit = read.clone();
    (unit[1], unit[4]) = (1, 76);
    unit.extend([1, 2, 3, 4]);
    io.stream.write_all(&unit).unwrap();
    assert_eq!(reason(&mut io), (3, 0x0403_0201), "the header's digest");
}

#[test]
fn data_beyond_what_was_asked_for_ends_the_connection() {
    let target = Target::new(DriveOptions::default());
    for (offset, length, told) in [(4, 16384, (4, 12)), (0, 16388, (4, 12))] {
        let (_admin, mut io) = target.host(0);
        let id = io.submit(Sqe::on(WRITE, 0, 32).data(16384, 0x5a), &[]);
        assert_eq!(io.unit().unwrap().kind, 9);
        let mut header = [id.to_le_bytes(), id.to_le_bytes()].concat();
        header.extend(u32::to_le_bytes(offset));
        header.extend((length as u32).to_le_bytes());
        header.extend([0; 4]);
        io.stream.write_all(&unit(6, &header, &vec![0; length])).unwrap();
        assert_eq!(reason(&mut io), told);
    }
}

/// A part of the data of a command: its header names these ids, and place and length of the part.
fn part((id, tag): (u16, u16), (offset, length): (u32, u32), data: &[u8], flags: u8) -> Vec<u8> {
    let mut header = [id.to_le_bytes(), tag.to_le_bytes()].concat();
    header.extend(offset.to_le_bytes());
    header.extend(length.to_le_bytes());
    header.extend([0; 4]);
    let mut part = unit(6, &header, data);
    part[1] = flags;
    part
}

#[test]
fn a_part_of_data_that_contradicts_itself_ends_the_connection() {
    let target = Target::new(DriveOptions::default());
    let (half, last) = (8192, 4);
    for (other, at, length, flags, told) in [
        (1, 0, half, 0, (1, 10)),
        (0, 0, half + 4, 0, (1, 16)),
        (0, 0, half, last, (1, 1)),
        (0, 0, 2 * half, 0, (1, 1)),
    ] {
        let (_admin, mut io) = target.host(0);
        let id = io.submit(Sqe::on(WRITE, 0, 32).data(16384, 0x5a), &[]);
        assert_eq!(io.unit().unwrap().kind, 9);
        let data = vec![1; length as usize & !7];
        let sent = part((id + other, id), (at, length), &data, flags);
        io.stream.write_all(&sent).unwrap();
        assert_eq!(reason(&mut io), told, "{other} {length} {flags}");
    }
}

#[test]
fn one_part_whose_digest_is_wrong_spoils_all_of_a_commands_data() {
    let target = Target::new(DriveOptions::default());
    for broken in [0, 1] {
        let (_admin, mut io) = target.host(2);
        let id = io.submit(Sqe::on(WRITE, 0, 32).data(16384, 0x5a), &[]);
        assert_eq!(io.unit().unwrap().kind, 9);
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
        assert_eq!(io.answer(&[]).unwrap().code, 0x22, "part {broken}");
        assert_eq!(io.read(0, 32), [0; 16384]);
    }
}

#[test]
fn data_is_asked_for_within_bounds_alone() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut io) = target.host(0);
    let too_long = io.submit(Sqe::on(WRITE, 0, 64).data(32768, 0x5a), &[]);
    let answer = io.answer(&[]).unwrap();
    assert_eq!((answer.id, answer.code), (too_long, 2), "and its data is not waited for");
    for _ in 0..256 {
        io.submit(Sqe::on(WRITE, 0, 32).data(16384, 0x5a), &[]);
        assert_eq!(io.unit().unwrap().kind, 9);
    }
    io.submit(Sqe::on(WRITE, 0, 32).data(16384, 0x5a), &[]);
    assert_eq!(reason(&mut io), (2, 0), "so many wait for theirs already");
}

/// What a connection that begins so is answered with.
fn greeted(target: &Target, at: usize, value: u8) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(target.address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(600))).unwrap();
    let mut hello = unit(0, &[0; 120], &[]);
    hello[at] = value;
    stream.write_all(&hello).unwrap();
    stream
}

#[test]
fn a_greeting_that_cannot_be_met_is_answered_with_the_reason() {
    let target = Target::new(DriveOptions::default());
    for (at, value, told) in [(8, 1, [6, 0, 8, 0]), (10, 32, [1, 0, 10, 0]), (2, 120, [1, 0, 2, 0])]
    {
        let mut answer = Vec::new();
        greeted(&target, at, value).read_to_end(&mut answer).unwrap();
        assert_eq!((answer[0], &answer[8..12]), (3, &told[..]), "{at} {value}");
    }
}

#[test]
fn data_begins_where_the_host_wants_it_aligned() {
    let target = Target::new(DriveOptions::default());
    let mut stream = greeted(&target, 10, 15);
    stream.read_exact(&mut [0; 128]).unwrap();
    let enable = command(Sqe::fabrics(0).word(11, 0x14).long(12, ENABLE));
    stream.write_all(&[connect(&target.name, 0, 0xffff), enable].concat()).unwrap();
    stream.read_exact(&mut [0; 48]).unwrap();
    let identify = Sqe::new(IDENTIFY).word(10, 1).data(4096, 0x5a);
    stream.write_all(&command(identify)).unwrap();
    let mut head = [0; 8];
    stream.read_exact(&mut head).unwrap();
    let whole = u32::from_le_bytes(head[4..].try_into().unwrap());
    assert_eq!((head[0], head[2], head[3], whole), (7, 24, 64, 64 + 4096), "by 64 bytes");
}

#[test]
fn data_whose_digest_is_wrong_is_not_written_and_may_be_sent_again() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut io) = target.host(2);
    let sqe = Sqe::on(WRITE, 0, 1).data(512, 1);
    let mut wrong = unit(4, &sqe.0, &[6; 512]);
    (wrong[1], wrong[4]) = (2, wrong[4] + 4);
    wrong.extend([0; 4]);
    io.stream.write_all(&wrong).unwrap();
    assert_eq!(io.answer(&[]).unwrap().code, 0x22);
    assert_eq!(io.read(0, 1), [0; 512]);
    io.write(0, &[6; 512]);
    assert_eq!(io.read(0, 1), [6; 512]);
}

#[test]
fn a_command_is_refused_whose_data_is_described_wrongly_or_whose_id_is_taken() {
    let target = Target::new(DriveOptions::default());
    let (_admin, mut io) = target.host(0);
    for (kind, offset, code) in [(0x00, 0, 0x11), (0x01, 4, 0x16), (0x01, u64::MAX, 0x16)] {
        let sqe = Sqe::on(WRITE, 0, 1).data(512, kind).long(6, offset);
        io.submit(sqe, &[1; 512]);
        assert_eq!(io.answer(&[]).unwrap().code, code, "{kind:x} {offset}");
    }
    let id = io.submit(Sqe::on(WRITE, 0, 32).data(16384, 0x5a), &[]);
    assert_eq!(io.unit().unwrap().kind, 9);
    let mut again = Sqe::on(READ, 0, 1).data(512, 0x5a);
    again.0[2..4].copy_from_slice(&id.to_le_bytes());
    io.stream.write_all(&command(again)).unwrap();
    assert_eq!(io.answer(&[]).unwrap().code, 3);
}
