//! DH-HMAC-CHAP authentication of hosts.

use std::io::Write;

use ring::hmac::{HMAC_SHA256, Key, sign};
use ssdlab_nvme_tcp::DhchapKey;
use ssdlab_time::Random;

use crate::prelude::*;

/// The drive's key of 32 bytes, which is used without a transformation, and a wrong key.
const KEY_TEXT: &str = "DHHC-1:00:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:";
const WRONG_KEY: [u8; 32] = [1; 32];
const REFUSED: u16 = 0x191;
const AUTHENTICATION_REQUIRED: u64 = 1 << 17;
const ROOM: usize = 4096;

fn key() -> Vec<u8> {
    (0..32).map(|at| at * 5 + 32).collect()
}

fn target() -> TestServer {
    TestServer::with_key(DhchapKey::parse(KEY_TEXT).unwrap())
}

/// Authentication Send (5) or Authentication Receive (6).
fn authentication(command_type: u8, bytes: usize) -> Entry {
    Entry::fabrics(command_type).cdw(10, 0xe901_0100).cdw(11, bytes as u32)
}

fn send(host: &mut Host, message: &[u8]) -> u16 {
    host.command_out(authentication(5, message.len()), message).status
}

/// As `send`; `None` if the connection ends.
fn try_send(host: &mut Host, message: &[u8]) -> Option<u16> {
    host.submit(authentication(5, message.len()).data(message.len(), 1), message);
    host.complete(&[]).ok().map(|completion| completion.status)
}

fn receive(host: &mut Host) -> Completion {
    host.command_in(authentication(6, ROOM), ROOM)
}

/// The reason code of an `AUTH_Failure1` message, after which the connection ends.
fn failure_reason(host: &mut Host) -> u8 {
    let message = receive(host);
    assert_eq!((message.status, &message.data[..2]), (0, &[0, 0xf1][..]));
    assert_eq!(message.data[6], 1);
    assert!(host.try_command(authentication(6, ROOM)).is_err(), "the host is disconnected");
    message.data[7]
}

/// An `AUTH_Negotiate` message with one protocol, these hash functions and DH groups.
fn negotiate(transaction: u16, hashes: &[u8], groups: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 72];
    message[4..6].copy_from_slice(&transaction.to_le_bytes());
    (message[7], message[8]) = (1, 1);
    (message[10], message[11]) = (hashes.len() as u8, groups.len() as u8);
    message[12..12 + hashes.len()].copy_from_slice(hashes);
    message[42..42 + groups.len()].copy_from_slice(groups);
    message
}

fn default_negotiate() -> Vec<u8> {
    negotiate(3, &[3, 2, 1], &[5, 1, 0])
}

/// Starts the authentication; returns the challenge.
fn start(host: &mut Host) -> Vec<u8> {
    assert_eq!(send(host, &default_negotiate()), 0);
    let message = receive(host);
    assert_eq!((message.status, message.data.len()), (0, ROOM));
    assert_eq!(message.data[..12], [1, 1, 0, 0, 3, 0, 32, 0, 1, 0, 0, 0]);
    message.data[..48].to_vec()
}

/// The `DH-HMAC-CHAP_Reply` to a challenge, computed with `key`.
fn reply(challenge: &[u8], key: &[u8], drive: &str) -> Vec<u8> {
    let (value, sequence, transaction) = (&challenge[16..48], &challenge[12..16], &challenge[4..6]);
    let end = [b"\0HostHostnqn.host\0", drive.as_bytes()].concat();
    let said = [value, sequence, transaction, &end].concat();
    let completion = sign(&Key::new(HMAC_SHA256, key), &said);
    let mut message = vec![1, 2, 0, 0, transaction[0], transaction[1], 32, 0];
    message.resize(16, 0);
    message.extend(completion.as_ref());
    message.resize(80, 0);
    message
}

fn authenticate(host: &mut Host, target: &TestServer) {
    let challenge = start(host);
    assert_eq!(send(host, &reply(&challenge, &key(), &target.name)), 0);
    assert_eq!(receive(host).data[..9], [1, 3, 0, 0, 3, 0, 32, 0, 0]);
}

/// An admin queue that is not authenticated, and its controller identifier.
fn unauthenticated(target: &TestServer) -> (Host, u16) {
    let mut host = Host::connect(target.address, 0).unwrap();
    let connected = host.connect_queue(&target.name, 0, NEW_CONTROLLER, 0);
    assert_eq!((connected.status, connected.result & !0xffff), (0, AUTHENTICATION_REQUIRED));
    (host, connected.result as u16)
}

/// An admin queue that has received a challenge, and the challenge.
fn challenged(target: &TestServer) -> (Host, Vec<u8>) {
    let (mut host, _) = unauthenticated(target);
    let challenge = start(&mut host);
    (host, challenge)
}

fn authenticated(target: &TestServer) -> (Host, u16) {
    let (mut host, controller) = unauthenticated(target);
    authenticate(&mut host, target);
    assert_eq!(host.set_property(CC, CC_ENABLE).status, 0);
    (host, controller)
}

#[test]
fn a_host_with_the_key_authenticates_each_queue() {
    let target = target();
    let (mut admin, controller) = authenticated(&target);
    assert_eq!(admin.identify(1, 0).len(), 4096);
    let mut io = Host::connect(target.address, 3).unwrap();
    let connected = io.connect_queue(&target.name, 1, controller, 0);
    // Each queue requires authentication.
    assert_eq!(connected.result, u64::from(controller) | AUTHENTICATION_REQUIRED);
    authenticate(&mut io, &target);
    io.write(0, &[7; 16384]);
    assert_eq!(io.read(0, 32), [7; 16384]);
    authenticate(&mut admin, &target);
    assert_eq!(admin.command(Entry::new(KEEP_ALIVE)).status, 0, "reauthenticated");
}

#[test]
fn no_command_is_executed_before_authentication() {
    let target = target();
    let (mut admin, controller) = unauthenticated(&target);
    for entry in [
        Entry::fabrics(PROPERTY_GET).cdw(11, 0x1c),
        Entry::set_property(CC, CC_ENABLE),
        Entry::new(IDENTIFY).cdw(10, 1).data(4096, SGL_TRANSPORT),
        Entry::new(KEEP_ALIVE),
    ] {
        assert_eq!(admin.command(entry).status, REFUSED);
    }
    start(&mut admin);
    // A challenge alone does not authenticate.
    assert_eq!(admin.command(Entry::new(KEEP_ALIVE)).status, REFUSED);
    let (_admin, number) = authenticated(&target);
    let mut io = Host::connect(target.address, 0).unwrap();
    // The controller is not enabled.
    assert_eq!(io.connect_queue(&target.name, 1, controller, 0).status, COMMAND_SEQUENCE_ERROR);
    assert_eq!(io.connect_queue(&target.name, 1, number, 0).status, 0);
    assert_eq!(io.command_in(Entry::on(READ, 0, 1), 512).status, REFUSED);
    assert_eq!(io.command(Entry::new(FLUSH).nsid(1)).status, REFUSED);
    for bytes in [512, 16384] {
        let entry = Entry::on(WRITE, 0, bytes as u32 / 512);
        // Refused without an R2T.
        assert_eq!(io.command_out(entry, &vec![9; bytes]).status, REFUSED);
    }
    assert_eq!(target.count("writes"), 0);
}

#[test]
fn commands_sent_together_with_connect_are_not_executed_before_authentication() {
    let target = target();
    let connect = host_data(&target.name, NEW_CONTROLLER);
    let mut host = Host::connect(target.address, 0).unwrap();
    let pdus = [
        capsule(Entry::connect(0).data(connect.len(), SGL_IN_CAPSULE), &connect, 0),
        capsule(Entry::set_property(CC, CC_ENABLE), &[], 0),
        capsule(Entry::new(FORMAT_NVM).nsid(1), &[], 0),
    ];
    host.stream.write_all(&pdus.concat()).unwrap();
    let connected = host.complete(&[]).unwrap();
    assert_eq!((connected.status, connected.result & !0xffff), (0, AUTHENTICATION_REQUIRED));
    assert_eq!(host.complete(&[]).unwrap().status, REFUSED);
    assert_eq!(host.complete(&[]).unwrap().status, REFUSED);
    authenticate(&mut host, &target);
}

#[test]
fn a_host_with_a_wrong_key_gets_the_reason_and_is_disconnected() {
    let target = target();
    let (mut admin, controller) = authenticated(&target);
    let mut io = target.io(1, controller, 0);
    authenticate(&mut io, &target);
    let (mut host, challenge) = challenged(&target);
    assert_eq!(send(&mut host, &reply(&challenge, &WRONG_KEY, &target.name)), 0);
    assert_eq!(failure_reason(&mut host), 1);
    let challenge = start(&mut admin);
    assert_eq!(send(&mut admin, &reply(&challenge, &WRONG_KEY, &target.name)), 0);
    assert_eq!(failure_reason(&mut admin), 1);
    assert!(io.is_closed(), "its I/O queues are disconnected too");
}

#[test]
fn a_failed_authentication_ends_the_connection_even_if_the_host_does_not_read_the_reason() {
    let target = target();
    let rejected = || {
        let (mut host, challenge) = challenged(&target);
        assert_eq!(send(&mut host, &reply(&challenge, &WRONG_KEY, &target.name)), 0);
        host
    };
    assert!(rejected().try_command(authentication(5, 0)).is_err(), "no second attempt");
    assert!(rejected().try_command(Entry::new(KEEP_ALIVE)).is_err(), "no other command is allowed");
    assert!(rejected().is_closed(), "the server does not wait long");
    assert_eq!(target.server_count("failed_authentications"), 3);
    let (mut host, _) = authenticated(&target);
    assert_eq!(host.command(Entry::new(KEEP_ALIVE)).status, 0);
    let _ = start(&mut host);
    // An authenticated host sends AUTH_Failure2.
    assert_eq!(send(&mut host, &[0, 0xf0, 0, 0, 3, 0, 1, 4]), 0);
    assert!(host.try_command(Entry::new(KEEP_ALIVE)).is_err(), "its queue is disconnected");
}

#[test]
fn an_unauthenticated_host_does_not_occupy_a_queue() {
    let target = target();
    let (mut admin, controller) = authenticated(&target);
    let mut intruder = Host::connect(target.address, 0).unwrap();
    // Authentication is required.
    assert_eq!(intruder.connect_queue(&target.name, 1, controller, 0).result >> 16, 2);
    let mut owner = Host::connect(target.address, 0).unwrap();
    assert_eq!(owner.connect_queue(&target.name, 1, controller, 0).status, 0, "the queue is free");
    authenticate(&mut owner, &target);
    owner.write(0, &[7; 512]);
    let mut second = Host::connect(target.address, 0).unwrap();
    let second = second.connect_queue(&target.name, 1, controller, 0);
    assert_eq!(second.status, CONNECT_INVALID_PARAMETERS, "the queue is in use");
    let challenge = start(&mut intruder);
    assert_eq!(try_send(&mut intruder, &reply(&challenge, &key(), &target.name)), None);
    assert_eq!(owner.read(0, 1), [7; 512]);
    assert_eq!(admin.command(Entry::new(KEEP_ALIVE)).status, 0);
}

#[test]
fn traffic_of_an_unauthenticated_host_does_not_keep_a_controller_alive() {
    let target = target();
    let (mut admin, controller) = authenticated(&target);
    let mut intruder = Host::connect(target.address, 0).unwrap();
    assert_eq!(intruder.connect_queue(&target.name, 1, controller, 0).status, 0);
    let patience = Entry::new(SET_FEATURES).cdw(10, 15).cdw(11, 100);
    assert_eq!(admin.command(patience).status, 0);
    while intruder
        .try_command(Entry::new(KEEP_ALIVE))
        .is_ok_and(|completion| completion.status == REFUSED)
        && target.server.connections() > 1
    {}
    assert!(admin.is_closed(), "the authenticated host sent nothing");
}

#[test]
fn a_reply_is_valid_for_one_challenge_only() {
    let target = target();
    let (mut host, challenge) = challenged(&target);
    let message = reply(&challenge, &key(), &target.name);
    let (mut intruder, other) = challenged(&target);
    assert_ne!(challenge[12..16], other[12..16]);
    assert_ne!(challenge[16..], other[16..]);
    assert_eq!(send(&mut intruder, &message), 0);
    assert_eq!(failure_reason(&mut intruder), 1);
    assert_eq!(send(&mut host, &message), 0);
    assert_eq!(receive(&mut host).data[..2], [1, 3]);
    assert_eq!(send(&mut host, &message), 0);
    assert_eq!(failure_reason(&mut host), 7, "a reply is not valid twice");
}

#[test]
fn an_unacceptable_negotiate_message_gets_the_reason() {
    let target = target();
    let changed = |at: usize, byte: u8| {
        let mut message = default_negotiate();
        message[at] = byte;
        message
    };
    for (message, why) in [
        (negotiate(3, &[2, 3], &[0]), 4),
        (negotiate(3, &[], &[0]), 4),
        (negotiate(3, &[1], &[1, 2]), 5),
        (changed(6, 1), 3),
        (changed(7, 0), 2),
        (changed(8, 2), 2),
        (changed(10, 31), 6),
        (changed(11, 31), 6),
        (changed(7, 2), 6),
        (default_negotiate()[..71].to_vec(), 6),
        (vec![0, 0, 0, 0], 6),
        (vec![], 7),
        (changed(0, 1), 7),
        (changed(1, 4), 7),
    ] {
        let (mut host, _) = unauthenticated(&target);
        assert_eq!(send(&mut host, &message), 0);
        assert_eq!(failure_reason(&mut host), why, "{message:?}");
    }
}

#[test]
fn a_malformed_reply_gets_the_reason() {
    let target = target();
    for (at, byte, why) in [(4, 4, 7), (6, 48, 6), (8, 1, 1), (10, 1, 6), (11, 1, 6)] {
        let (mut host, challenge) = challenged(&target);
        let mut message = reply(&challenge, &key(), &target.name);
        message[at] = byte;
        assert_eq!(send(&mut host, &message), 0);
        assert_eq!(failure_reason(&mut host), why, "{at}");
    }
    for length in [15, 47, 79] {
        let (mut host, challenge) = challenged(&target);
        assert_eq!(send(&mut host, &reply(&challenge, &key(), &target.name)[..length]), 0);
        assert_eq!(failure_reason(&mut host), 6, "{length}");
    }
    let (mut host, _) = unauthenticated(&target);
    let challenge = vec![0; 48];
    assert_eq!(send(&mut host, &reply(&challenge, &key(), &target.name)), 0);
    assert_eq!(failure_reason(&mut host), 7, "the drive has sent no challenge");
}

#[test]
fn malformed_authentication_commands_are_refused() {
    let target = target();
    let (mut host, _) = unauthenticated(&target);
    assert_eq!(receive(&mut host).status, COMMAND_SEQUENCE_ERROR, "the drive has no message");
    let message = default_negotiate();
    for entry in [
        authentication(5, 71),
        Entry::fabrics(5).cdw(10, 0xe901_0200).cdw(11, 72),
        Entry::fabrics(5).cdw(11, 72),
    ] {
        assert_eq!(host.command_out(entry, &message).status, INVALID_FIELD);
    }
    assert_eq!(send(&mut host, &message), 0);
    for room in [0, 47, 4097, 1 << 20] {
        let received = host.command_in(authentication(6, room), room);
        assert_eq!(received.status, INVALID_FIELD, "{room}");
    }
    assert_eq!(host.command_in(authentication(6, 47), 48).status, INVALID_FIELD);
    assert_eq!(host.command_in(authentication(6, 48), 48).data[..2], [1, 1]);
    assert_eq!(send(&mut host, &[0, 0xf0, 0, 0, 3, 0, 1, 4]), 0, "AUTH_Failure2");
    assert_eq!(receive(&mut host).status, COMMAND_SEQUENCE_ERROR);
    authenticate(&mut host, &target);
}

#[test]
fn discovery_and_a_drive_without_a_key_require_no_authentication() {
    let target = target();
    let mut host = Host::connect(target.address, 0).unwrap();
    assert_eq!(host.connect_queue(DISCOVERY, 0, NEW_CONTROLLER, 0).result >> 16, 0);
    assert_eq!(host.set_property(CC, CC_ENABLE).status, 0);
    assert_eq!(send(&mut host, &default_negotiate()), 2);
    let open = TestServer::default();
    let (mut host, _) = open.admin(0);
    assert_eq!(send(&mut host, &default_negotiate()), 2);
    assert_eq!(receive(&mut host).status, INVALID_FIELD);
    assert_eq!(host.identify(1, 0).len(), 4096);
}

#[test]
fn a_thousand_mutated_replies_do_not_authenticate() {
    let target = target();
    let mut random = Random::new(1, "messages");
    for _ in 0..1000 {
        let (mut host, challenge) = challenged(&target);
        let mut message = reply(&challenge, &key(), &target.name);
        let (at, bit) = (random.below(48) as usize, random.below(8));
        message[at] ^= 1 << bit;
        message.truncate(message.len() - random.below(3) as usize);
        assert_eq!(send(&mut host, &message), 0);
        let is_ignored = [2, 3, 7, 9, 12, 13, 14, 15].contains(&at) && message.len() == 80;
        let is_served = host.try_command(Entry::new(KEEP_ALIVE)).is_ok();
        assert_eq!(is_served, is_ignored, "{at} {bit}");
    }
}
