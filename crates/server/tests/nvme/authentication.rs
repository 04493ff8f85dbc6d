//! A drive whose hosts have to know a secret: who knows it gets in, and nobody else.

use ring::hmac::{HMAC_SHA256, Key, sign};
use ssdlab_engine::Pace;
use ssdlab_nvme_tcp::DhchapKey;
use ssdlab_time::Random;

use crate::client::{
    Answer, DISCOVERY, ENABLE, FLUSH, Host, IDENTIFY, KEEP_ALIVE, READ, SET_FEATURES, Sqe, Target,
    WRITE,
};
use ssdlab_testing::DriveOptions;

/// A key of 32 bytes that is used as it is, and one that is not the drive's.
const TEXT: &str = "DHHC-1:00:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:";
const WRONG: [u8; 32] = [1; 32];
const REFUSED: u16 = 0x191;
const PROOF_REQUIRED: u64 = 1 << 17;
const ROOM: usize = 4096;

fn key() -> Vec<u8> {
    (0..32).map(|at| at * 5 + 32).collect()
}

fn target() -> Target {
    Target::guarded(DriveOptions::default(), Pace::None, Some(DhchapKey::parse(TEXT).unwrap()))
}

fn part(kind: u8, bytes: usize) -> Sqe {
    Sqe::fabrics(kind).word(10, 0xe901_0100).word(11, bytes as u32)
}

fn say(host: &mut Host, message: &[u8]) -> u16 {
    host.send_with(part(5, message.len()), message).code
}

/// As `say`; `None` where the connection ends.
fn say_or_end(host: &mut Host, message: &[u8]) -> Option<u16> {
    host.submit(part(5, message.len()).data(message.len(), 1), message);
    host.answer(&[]).ok().map(|answer| answer.code)
}

fn hear(host: &mut Host) -> Answer {
    host.receive(part(6, ROOM), ROOM)
}

/// The reason for which a proof failed; the connection ends.
fn reason(host: &mut Host) -> u8 {
    let told = hear(host);
    assert_eq!((told.code, &told.data[..2]), (0, &[0, 0xf1][..]));
    assert_eq!(told.data[6], 1);
    assert!(host.tries(part(6, ROOM)).is_err(), "and it is left");
    told.data[7]
}

/// What a host offers: one protocol with these hashes and groups.
fn offer(transaction: u16, hashes: &[u8], groups: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 72];
    message[4..6].copy_from_slice(&transaction.to_le_bytes());
    (message[7], message[8]) = (1, 1);
    (message[10], message[11]) = (hashes.len() as u8, groups.len() as u8);
    message[12..12 + hashes.len()].copy_from_slice(hashes);
    message[42..42 + groups.len()].copy_from_slice(groups);
    message
}

fn usual() -> Vec<u8> {
    offer(3, &[3, 2, 1], &[5, 1, 0])
}

/// Begins a proof; returns the challenge.
fn begin(host: &mut Host) -> Vec<u8> {
    assert_eq!(say(host, &usual()), 0);
    let told = hear(host);
    assert_eq!((told.code, told.data.len()), (0, ROOM));
    assert_eq!(told.data[..12], [1, 1, 0, 0, 3, 0, 32, 0, 1, 0, 0, 0]);
    told.data[..48].to_vec()
}

/// The reply to a challenge of one who knows a key.
fn reply(challenge: &[u8], key: &[u8], drive: &str) -> Vec<u8> {
    let (value, sequence, transaction) = (&challenge[16..48], &challenge[12..16], &challenge[4..6]);
    let end = [b"\0HostHostnqn.host\0", drive.as_bytes()].concat();
    let said = [value, sequence, transaction, &end].concat();
    let answer = sign(&Key::new(HMAC_SHA256, key), &said);
    let mut message = vec![1, 2, 0, 0, transaction[0], transaction[1], 32, 0];
    message.resize(16, 0);
    message.extend(answer.as_ref());
    message.resize(80, 0);
    message
}

fn prove(host: &mut Host, target: &Target) {
    let challenge = begin(host);
    assert_eq!(say(host, &reply(&challenge, &key(), &target.name)), 0);
    assert_eq!(hear(host).data[..9], [1, 3, 0, 0, 3, 0, 32, 0, 0]);
}

/// An admin queue that still has to prove, and its controller's number.
fn stranger(target: &Target) -> (Host, u16) {
    let mut host = Host::connect(target.address, 0);
    let joined = host.join(&target.name, 0, 0xffff, 0);
    assert_eq!((joined.code, joined.result & !0xffff), (0, PROOF_REQUIRED));
    (host, joined.result as u16)
}

fn friend(target: &Target) -> (Host, u16) {
    let (mut host, controller) = stranger(target);
    prove(&mut host, target);
    assert_eq!(host.set_property(0x14, ENABLE).code, 0);
    (host, controller)
}

#[test]
fn who_knows_the_secret_gets_in_on_each_queue() {
    let target = target();
    let (mut admin, controller) = friend(&target);
    assert_eq!(admin.identify(1, 0).len(), 4096);
    let mut io = Host::connect(target.address, 3);
    let joined = io.join(&target.name, 1, controller, 0);
    assert_eq!(joined.result, u64::from(controller) | PROOF_REQUIRED, "each proves it by itself");
    prove(&mut io, &target);
    io.write(0, &[7; 16384]);
    assert_eq!(io.read(0, 32), [7; 16384]);
    prove(&mut admin, &target);
    assert_eq!(admin.ask(Sqe::new(KEEP_ALIVE)).code, 0, "it proved it again");
}

#[test]
fn nothing_is_done_before_the_secret_was_proved() {
    let target = target();
    let (mut admin, controller) = stranger(&target);
    for sqe in [
        Sqe::fabrics(4).word(11, 0x1c),
        Sqe::fabrics(0).word(11, 0x14).long(12, ENABLE),
        Sqe::new(IDENTIFY).word(10, 1).data(4096, 0x5a),
        Sqe::new(KEEP_ALIVE),
    ] {
        assert_eq!(admin.ask(sqe).code, REFUSED);
    }
    begin(&mut admin);
    assert_eq!(admin.ask(Sqe::new(KEEP_ALIVE)).code, REFUSED, "a challenge is no proof");
    let (_friend, number) = friend(&target);
    let mut io = Host::connect(target.address, 0);
    assert_eq!(io.join(&target.name, 1, controller, 0).code, 0x0c, "it is not enabled");
    assert_eq!(io.join(&target.name, 1, number, 0).code, 0);
    assert_eq!(io.receive(Sqe::on(READ, 0, 1), 512).code, REFUSED);
    assert_eq!(io.ask(Sqe::new(FLUSH).namespace(1)).code, REFUSED);
    for bytes in [512, 16384] {
        let sqe = Sqe::on(WRITE, 0, bytes as u32 / 512);
        assert_eq!(io.send_with(sqe, &vec![9; bytes]).code, REFUSED, "none is even asked for");
    }
    assert_eq!(target.count("writes"), 0);
}

#[test]
fn who_does_not_know_the_secret_is_told_so_and_left() {
    let target = target();
    let (mut friend, controller) = friend(&target);
    let mut io = Host::io(target.address, &target.name, 1, controller, 0);
    prove(&mut io, &target);
    let (mut host, _) = stranger(&target);
    let challenge = begin(&mut host);
    assert_eq!(say(&mut host, &reply(&challenge, &WRONG, &target.name)), 0);
    assert_eq!(reason(&mut host), 1);
    let challenge = begin(&mut friend);
    assert_eq!(say(&mut friend, &reply(&challenge, &WRONG, &target.name)), 0);
    assert_eq!(reason(&mut friend), 1);
    assert!(io.is_closed(), "its other queues went with it");
}

#[test]
fn a_wrong_answer_ends_the_connection_whether_or_not_its_reason_is_asked_for() {
    let target = target();
    let wrong_answer = |host: &mut Host| {
        let challenge = begin(host);
        assert_eq!(say(host, &reply(&challenge, &WRONG, &target.name)), 0);
    };
    let (mut host, _) = stranger(&target);
    wrong_answer(&mut host);
    assert!(host.tries(part(5, 0)).is_err(), "no second try");
    let (mut host, _) = stranger(&target);
    wrong_answer(&mut host);
    assert!(host.tries(Sqe::new(KEEP_ALIVE)).is_err(), "no other command");
    let (mut host, _) = stranger(&target);
    wrong_answer(&mut host);
    assert!(host.is_closed(), "nor is it waited for for long");
    assert_eq!(target.asks("failed_authentications"), 3);
    let (mut friend, _) = friend(&target);
    assert_eq!(friend.ask(Sqe::new(KEEP_ALIVE)).code, 0);
    let _ = begin(&mut friend);
    assert_eq!(say(&mut friend, &[0, 0xf0, 0, 0, 3, 0, 1, 4]), 0, "who has proved it gives up");
    assert!(friend.tries(Sqe::new(KEEP_ALIVE)).is_err(), "and has lost its queue");
}

#[test]
fn a_stranger_holds_no_queue_of_a_host_that_knows_the_secret() {
    let target = target();
    let (mut admin, controller) = friend(&target);
    let mut thief = Host::connect(target.address, 0);
    assert_eq!(thief.join(&target.name, 1, controller, 0).result >> 16, 2, "it has to prove it");
    let mut owner = Host::connect(target.address, 0);
    assert_eq!(owner.join(&target.name, 1, controller, 0).code, 0, "the queue is free");
    prove(&mut owner, &target);
    owner.write(0, &[7; 512]);
    let mut late = Host::connect(target.address, 0);
    assert_eq!(late.join(&target.name, 1, controller, 0).code, 0x182, "now it is taken");
    let challenge = begin(&mut thief);
    assert_eq!(say_or_end(&mut thief, &reply(&challenge, &key(), &target.name)), None);
    assert_eq!(owner.read(0, 1), [7; 512]);
    assert_eq!(admin.ask(Sqe::new(KEEP_ALIVE)).code, 0);
}

#[test]
fn traffic_of_a_stranger_does_not_keep_a_controller_alive() {
    let target = target();
    let (mut admin, controller) = friend(&target);
    let mut thief = Host::connect(target.address, 0);
    assert_eq!(thief.join(&target.name, 1, controller, 0).code, 0);
    let patience = Sqe::new(SET_FEATURES).word(10, 15).word(11, 100);
    assert_eq!(admin.ask(patience).code, 0);
    while thief.tries(Sqe::new(KEEP_ALIVE)).is_ok_and(|answer| answer.code == REFUSED)
        && target.server.connections() > 1
    {}
    assert!(admin.is_closed(), "nothing was heard of its host");
}

#[test]
fn an_answer_does_for_no_other_challenge() {
    let target = target();
    let (mut host, _) = stranger(&target);
    let challenge = begin(&mut host);
    let heard = reply(&challenge, &key(), &target.name);
    let (mut thief, _) = stranger(&target);
    let other = begin(&mut thief);
    assert_ne!(challenge[12..16], other[12..16]);
    assert_ne!(challenge[16..], other[16..]);
    assert_eq!(say(&mut thief, &heard), 0);
    assert_eq!(reason(&mut thief), 1);
    assert_eq!(say(&mut host, &heard), 0);
    assert_eq!(hear(&mut host).data[..2], [1, 3]);
    assert_eq!(say(&mut host, &heard), 0);
    assert_eq!(reason(&mut host), 7, "nor twice for the same");
}

#[test]
fn a_host_that_offers_what_the_drive_does_not_take_is_told_why() {
    let target = target();
    let changed = |at: usize, byte: u8| {
        let mut message = usual();
        message[at] = byte;
        message
    };
    for (message, why) in [
        (offer(3, &[2, 3], &[0]), 4),
        (offer(3, &[], &[0]), 4),
        (offer(3, &[1], &[1, 2]), 5),
        (changed(6, 1), 3),
        (changed(7, 0), 2),
        (changed(8, 2), 2),
        (changed(10, 31), 6),
        (changed(11, 31), 6),
        (changed(7, 2), 6),
        (usual()[..71].to_vec(), 6),
        (vec![0, 0, 0, 0], 6),
        (vec![], 7),
        (changed(0, 1), 7),
        (changed(1, 4), 7),
    ] {
        let (mut host, _) = stranger(&target);
        assert_eq!(say(&mut host, &message), 0);
        assert_eq!(reason(&mut host), why, "{message:?}");
    }
}

#[test]
fn a_reply_is_of_the_form_that_was_agreed_on() {
    let target = target();
    for (at, byte, why) in [(4, 4, 7), (6, 48, 6), (8, 1, 1), (10, 1, 6), (11, 1, 6)] {
        let (mut host, _) = stranger(&target);
        let challenge = begin(&mut host);
        let mut message = reply(&challenge, &key(), &target.name);
        message[at] = byte;
        assert_eq!(say(&mut host, &message), 0);
        assert_eq!(reason(&mut host), why, "{at}");
    }
    for length in [15, 47, 79] {
        let (mut host, _) = stranger(&target);
        let challenge = begin(&mut host);
        assert_eq!(say(&mut host, &reply(&challenge, &key(), &target.name)[..length]), 0);
        assert_eq!(reason(&mut host), 6, "{length}");
    }
    let (mut host, _) = stranger(&target);
    let challenge = vec![0; 48];
    assert_eq!(say(&mut host, &reply(&challenge, &key(), &target.name)), 0);
    assert_eq!(reason(&mut host), 7, "nobody asked it");
}

#[test]
fn commands_of_a_proof_are_well_formed() {
    let target = target();
    let (mut host, _) = stranger(&target);
    assert_eq!(hear(&mut host).code, 0x0c, "there is nothing to tell");
    let message = usual();
    for sqe in [
        part(5, 71),
        Sqe::fabrics(5).word(10, 0xe901_0200).word(11, 72),
        Sqe::fabrics(5).word(11, 72),
    ] {
        assert_eq!(host.send_with(sqe, &message).code, 2);
    }
    assert_eq!(say(&mut host, &message), 0);
    for room in [0, 47, 4097, 1 << 20] {
        assert_eq!(host.receive(part(6, room), room).code, 2, "{room}");
    }
    assert_eq!(host.receive(part(6, 47), 48).code, 2);
    assert_eq!(host.receive(part(6, 48), 48).data[..2], [1, 1]);
    assert_eq!(say(&mut host, &[0, 0xf0, 0, 0, 3, 0, 1, 4]), 0, "the host gives up");
    assert_eq!(hear(&mut host).code, 0x0c);
    prove(&mut host, &target);
}

#[test]
fn who_asks_where_the_drive_is_proves_nothing_and_where_there_is_no_secret_nobody_does() {
    let target = target();
    let mut host = Host::connect(target.address, 0);
    assert_eq!(host.join(DISCOVERY, 0, 0xffff, 0).result >> 16, 0);
    assert_eq!(host.set_property(0x14, ENABLE).code, 0);
    assert_eq!(say(&mut host, &usual()), 2);
    let open = Target::new(DriveOptions::default());
    let (mut host, _) = Host::admin(open.address, &open.name, 0);
    assert_eq!(say(&mut host, &usual()), 2);
    assert_eq!(hear(&mut host).code, 2);
    assert_eq!(host.identify(1, 0).len(), 4096);
}

#[test]
fn a_thousand_changed_messages_prove_nothing() {
    let target = target();
    let mut random = Random::new(1, "messages");
    for _ in 0..1000 {
        let (mut host, _) = stranger(&target);
        let challenge = begin(&mut host);
        let mut message = reply(&challenge, &key(), &target.name);
        let (at, bit) = (random.below(48) as usize, random.below(8));
        message[at] ^= 1 << bit;
        message.truncate(message.len() - random.below(3) as usize);
        assert_eq!(say(&mut host, &message), 0);
        let is_ignored = [2, 3, 7, 9, 12, 13, 14, 15].contains(&at) && message.len() == 80;
        let is_served = host.tries(Sqe::new(KEEP_ALIVE)).is_ok();
        assert_eq!(is_served, is_ignored, "{at} {bit}");
    }
}
