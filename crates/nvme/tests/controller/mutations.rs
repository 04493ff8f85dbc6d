//! Mutated commands: the controller completes each of them and keeps working.

use ssdlab_nvme::{Completion, Controller};
use ssdlab_time::Random;

use crate::controller;
use crate::memory::{Memory, admin, io};
use ssdlab_testing::nvme::*;
use ssdlab_testing::{CAPACITY, DriveOptions, scaled, seed};

/// Valid commands, and whether they are I/O commands.
fn templates() -> Vec<(bool, Entry)> {
    let admin = [
        Entry::new(IDENTIFY).nsid(1),
        Entry::new(IDENTIFY).cdw(10, 1),
        Entry::new(GET_LOG_PAGE).cdw(10, 2 | 127 << 16),
        Entry::new(GET_LOG_PAGE).cdw(10, 0x20 | 15 << 16).cdw(11, 1 << 16),
        Entry::new(GET_FEATURES).cdw(10, 7),
        Entry::new(SET_FEATURES).nsid(1).cdw(10, 5),
        Entry::new(SET_FEATURES).nsid(1).cdw(10, 0x1e).cdw(11, 1 << 16),
        Entry::new(GET_FEATURES).nsid(1).cdw(10, 0x1e).cdw(11, 2 << 16),
        Entry::new(ASYNC_EVENT_REQUEST),
        Entry::new(ABORT),
        Entry::new(FORMAT_NVM).nsid(1),
        Entry::new(SANITIZE).cdw(10, 2),
        Entry::new(NAMESPACE_MANAGEMENT).cdw(10, 1).nsid(1),
        Entry::new(NAMESPACE_MANAGEMENT),
        Entry::new(GET_LBA_STATUS).nsid(1).cdw(12, 63).cdw(13, 2 << 24),
        Entry::new(NAMESPACE_ATTACHMENT).nsid(1),
    ];
    let io = [
        Entry::on(READ, 0, 8),
        Entry::on(WRITE, 8, 8),
        Entry::on(WRITE, 8, 1).cdw(12, 2 << 20).cdw(13, 1 << 16),
        Entry::on(WRITE, 8, 1).cdw(12, 1 << 24).cdw(2, 5),
        Entry::on(WRITE_ZEROES, 3, 30).cdw(12, 1 << 25),
        Entry::on(COMPARE, 0, 4),
        Entry::on(VERIFY, 0, 4),
        Entry::new(DATASET_MANAGEMENT).nsid(1).cdw(10, 1).cdw(11, 4),
        Entry::new(COPY).nsid(1).cdw(10, 64),
        Entry::new(IO_MANAGEMENT_RECEIVE).nsid(1).cdw(10, 1).cdw(11, 15),
        Entry::new(IO_MANAGEMENT_SEND).nsid(1),
        Entry::new(IO_MANAGEMENT_SEND).nsid(1).cdw(10, 1),
        Entry::new(FLUSH).nsid(1),
    ];
    let on = |is_io| move |entry| (is_io, entry);
    admin.into_iter().map(on(false)).chain(io.into_iter().map(on(true))).collect()
}

/// Creates and attaches the namespace again after a mutated command has deleted it.
fn recreate_namespace(controller: &Controller) {
    let mut data = Memory::with(vec![0; 4096]);
    for at in [0, 8] {
        data.sent[at..at + 8].copy_from_slice(&(CAPACITY / 512).to_le_bytes());
    }
    admin(controller, Entry::new(NAMESPACE_MANAGEMENT), &mut data).unwrap();
    data.sent[..4].copy_from_slice(&[1, 0, controller.cntlid as u8, 0]);
    admin(controller, Entry::new(NAMESPACE_ATTACHMENT).nsid(1), &mut data).unwrap();
}

/// Replaces some bytes by random or extreme ones.
fn mutate(entry: &mut Entry, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(64) as usize;
        entry.0[at] = match random.below(4) {
            0 => 0,
            1 => 0xff,
            2 => entry.0[at] ^ 1 << random.below(8),
            _ => random.next_u64() as u8,
        };
    }
}

/// Submits mutated commands; `each` gets a command with its data and completion.
pub fn run(
    controller: &Controller,
    count: u32,
    seed: u64,
    mut each: impl FnMut(&Entry, &Memory, Option<Completion>),
) {
    let templates = templates();
    let mut random = Random::new(seed, "submissions");
    for _ in 0..count {
        let (is_io, mut entry) = templates[random.below(templates.len() as u64) as usize];
        mutate(&mut entry, &mut random);
        let mut sent = vec![0; random.below(3) as usize * 4096];
        random.fill(&mut sent);
        let length = [0, 512, 4096, 1 << 16, 1 << 20][random.below(5) as usize];
        let mut data = Memory { length, ..Memory::with(sent) };
        let completion = if is_io {
            Some(io(controller, entry, &mut data))
        } else {
            admin(controller, entry, &mut data)
        };
        each(&entry, &data, completion);
        let succeeded = completion.is_some_and(|completion| completion.status.is_success());
        if entry.0[0] == NAMESPACE_MANAGEMENT && !is_io && succeeded {
            recreate_namespace(controller);
        }
        while let Some((_, completion)) = controller.next_event() {
            each(&entry, &Memory::new(0), Some(completion));
        }
    }
}

#[test]
fn mutated_commands_complete_and_the_drive_still_works() {
    let controller = controller(DriveOptions { streams: 4, ..DriveOptions::default() });
    let (mut succeeded, mut refused) = (0_u32, 0_u32);
    let count = scaled(10_000);
    run(&controller, count, seed(), |_, _, completion| {
        if let Some(completion) = completion {
            let is_success = completion.status.is_success();
            succeeded += u32::from(is_success);
            refused += u32::from(!is_success);
        }
    });
    let enough = count / 20;
    assert!(succeeded > enough && refused > enough, "{succeeded} succeeded, {refused} refused");
    controller.set_property(CC, 0).unwrap();
    controller.set_property(CC, CC_ENABLE).unwrap();
    admin(&controller, Entry::new(FORMAT_NVM).nsid(1), &mut Memory::new(0)).unwrap();
    let mut written = Memory::with(vec![5; 4096]);
    assert_eq!(io(&controller, Entry::on(WRITE, 0, 8), &mut written), Completion::SUCCESS);
    let mut read = Memory::new(4096);
    assert_eq!(io(&controller, Entry::on(READ, 0, 8), &mut read), Completion::SUCCESS);
    assert_eq!(read.received, [5; 4096]);
}

#[test]
fn a_write_or_compare_with_less_data_than_its_blocks_is_refused() {
    const DATA_SGL_LENGTH_INVALID: u16 = 0x0f;
    let controller = controller(DriveOptions::default());
    for opcode in [WRITE, COMPARE] {
        let mut data = Memory { length: 4096, ..Memory::with(vec![1; 512]) };
        let completion = io(&controller, Entry::on(opcode, 0, 8), &mut data);
        assert_eq!(completion.status.code(), DATA_SGL_LENGTH_INVALID);
    }
}
