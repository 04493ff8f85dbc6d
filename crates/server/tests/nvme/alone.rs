//! The controller without a transport: whatever 64 bytes ask of it, it answers and goes on.

use std::sync::Arc;
use std::time::Duration;

use ssdlab_engine::Pace;
use ssdlab_nvme::{
    Completion, Controller, HostData, Identity, Kind, Outcome, Submission, Subsystem,
};
use ssdlab_time::Random;

use crate::client::{
    ABORT, ATTACH, BLOCKS, COMPARE, COPY, DATASET, ENABLE, EVENT, FLUSH, FORMAT, GET_FEATURES,
    GET_LOG, IDENTIFY, MANAGE, READ, SANITIZE, SET_FEATURES, Sqe, VERIFY, WRITE, WRITE_ZEROES,
    engine,
};
use crate::toy::{CAPACITY, HONEST, Manner};

/// What the issue of such tests asks for.
const MUTATIONS: u64 = 100_000;

/// Data in memory.
struct Memory {
    room: usize,
    sent: Vec<u8>,
    given: Vec<u8>,
}

impl HostData for Memory {
    fn room(&self) -> usize {
        self.room
    }

    fn sent(&self) -> &[u8] {
        &self.sent
    }

    fn give(&mut self, bytes: &[u8]) {
        self.given.extend(bytes);
        assert!(self.given.len() <= self.room, "more than there is room for");
    }
}

fn controller() -> Controller {
    let engine = engine(Manner { streams: 4, ..HONEST }, Pace::None);
    let epoch = engine.epoch().expect("it has power");
    let subsystem = Arc::new(Subsystem::new(Arc::new(engine), Identity::new("a toy", "alone")));
    let (kind, patience) = ((Kind::Drive, None), Duration::ZERO);
    let made = Controller::new(&subsystem, kind, [0; 16], patience, epoch);
    let controller = made.unwrap();
    controller.set_property(0x14, ENABLE).unwrap();
    controller
}

fn io(controller: &Controller, sqe: Sqe, data: &mut Memory) -> Completion {
    controller.io(1, &Submission::new(sqe.0), data).expect("it has power").0
}

/// What can be asked, each as a host would.
fn templates() -> Vec<(bool, Sqe)> {
    let admin = [
        Sqe::new(IDENTIFY).namespace(1),
        Sqe::new(IDENTIFY).word(10, 1),
        Sqe::new(GET_LOG).word(10, 2 | 127 << 16),
        Sqe::new(GET_LOG).word(10, 0x20 | 15 << 16).word(11, 1 << 16),
        Sqe::new(GET_FEATURES).word(10, 7),
        Sqe::new(SET_FEATURES).namespace(1).word(10, 5),
        Sqe::new(SET_FEATURES).namespace(1).word(10, 0x1e).word(11, 1 << 16),
        Sqe::new(GET_FEATURES).namespace(1).word(10, 0x1e).word(11, 2 << 16),
        Sqe::new(EVENT),
        Sqe::new(ABORT),
        Sqe::new(FORMAT).namespace(1),
        Sqe::new(SANITIZE).word(10, 2),
        Sqe::new(MANAGE).word(10, 1).namespace(1),
        Sqe::new(MANAGE),
        Sqe::new(BLOCKS).namespace(1).word(12, 63).word(13, 2 << 24),
        Sqe::new(ATTACH).namespace(1),
    ];
    let io = [
        Sqe::on(READ, 0, 8),
        Sqe::on(WRITE, 8, 8),
        Sqe::on(WRITE, 8, 1).word(12, 2 << 20).word(13, 1 << 16),
        Sqe::on(WRITE, 8, 1).word(12, 1 << 24).word(2, 5),
        Sqe::on(WRITE_ZEROES, 3, 30).word(12, 1 << 25),
        Sqe::on(COMPARE, 0, 4),
        Sqe::on(VERIFY, 0, 4),
        Sqe::new(DATASET).namespace(1).word(10, 1).word(11, 4),
        Sqe::new(COPY).namespace(1).word(10, 64),
        Sqe::new(0x12).namespace(1).word(10, 1).word(11, 15),
        Sqe::new(0x1d).namespace(1),
        Sqe::new(0x1d).namespace(1).word(10, 1),
        Sqe::new(FLUSH).namespace(1),
    ];
    let on = |is_io| move |sqe| (is_io, sqe);
    admin.into_iter().map(on(false)).chain(io.into_iter().map(on(true))).collect()
}

/// Makes the namespace anew, where a mutated command has deleted it.
fn roll_back(controller: &Controller) {
    let mut data = Memory { room: 4096, sent: vec![0; 4096], given: Vec::new() };
    for at in [0, 8] {
        data.sent[at..at + 8].copy_from_slice(&(CAPACITY / 512).to_le_bytes());
    }
    controller.admin(&Submission::new(Sqe::new(MANAGE).0), &mut data).unwrap();
    data.sent[..4].copy_from_slice(&[1, 0, controller.number as u8, 0]);
    controller.admin(&Submission::new(Sqe::new(ATTACH).namespace(1).0), &mut data).unwrap();
}

/// Changes some bytes to any, or to those at which numbers end.
fn mutate(sqe: &mut Sqe, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(64) as usize;
        sqe.0[at] = match random.below(4) {
            0 => 0,
            1 => 0xff,
            2 => sqe.0[at] ^ 1 << random.below(8),
            _ => random.next_u64() as u8,
        };
    }
}

#[test]
fn a_hundred_thousand_mutated_submissions_are_answered_and_the_drive_goes_on() {
    let controller = controller();
    let templates = templates();
    let mut random = Random::new(7, "submissions");
    let (mut done, mut refused) = (0, 0);
    for _ in 0..MUTATIONS {
        let (is_io, mut sqe) = templates[random.below(templates.len() as u64) as usize];
        mutate(&mut sqe, &mut random);
        let mut sent = vec![0; random.below(3) as usize * 4096];
        random.fill(&mut sent);
        let room = [0, 512, 4096, 1 << 16, 1 << 20][random.below(5) as usize];
        let mut data = Memory { room, sent, given: Vec::new() };
        let submission = Submission::new(sqe.0);
        let status = if is_io {
            controller.io(1, &submission, &mut data).expect("it has power").0.status
        } else {
            match controller.admin(&submission, &mut data).expect("it has power") {
                Outcome::Ended(completion) => completion.status,
                Outcome::Waits => continue,
            }
        };
        if submission.opcode() == MANAGE && !is_io && status.code() == 0 {
            roll_back(&controller);
        }
        while controller.event().is_some() {}
        done += u64::from(status.code() == 0);
        refused += u64::from(status.code() != 0);
    }
    assert!(done > MUTATIONS / 20 && refused > MUTATIONS / 20, "{done} done, {refused} refused");
    controller.set_property(0x14, 0).unwrap();
    controller.set_property(0x14, ENABLE).unwrap();
    let blank = || Memory { room: 4096, sent: Vec::new(), given: Vec::new() };
    let format = Submission::new(Sqe::new(FORMAT).namespace(1).0);
    controller.admin(&format, &mut blank()).unwrap();
    let mut written = Memory { sent: vec![5; 4096], ..blank() };
    assert_eq!(io(&controller, Sqe::on(WRITE, 0, 8), &mut written), Completion::DONE);
    let mut read = blank();
    assert_eq!(io(&controller, Sqe::on(READ, 0, 8), &mut read), Completion::DONE);
    assert_eq!(read.given, [5; 4096]);
}

#[test]
fn data_that_a_host_claims_and_does_not_have_is_refused() {
    let controller = controller();
    let mut data = Memory { room: 4096, sent: vec![1; 512], given: Vec::new() };
    assert_eq!(io(&controller, Sqe::on(WRITE, 0, 8), &mut data).status.code(), 0x0f);
    assert_eq!(io(&controller, Sqe::on(COMPARE, 0, 8), &mut data).status.code(), 0x0f);
}
