//! The stored corpus of each target runs through without a finding.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use ssdlab_fuzz::{LimitedAllocator, TARGETS, run};
use tar::Archive;

#[global_allocator]
static ALLOCATOR: LimitedAllocator = LimitedAllocator;

/// The inputs that are stored for a target, by name.
fn stored(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let file = File::open(folder.join(format!("{target}.tar.gz"))).expect("the target's corpus");
    let mut archive = Archive::new(GzDecoder::new(file));
    let entries = archive.entries().expect("an archive");
    let inputs = entries.map(|entry| {
        let mut entry = entry.expect("a whole archive");
        let name = entry.path().expect("a name").display().to_string();
        let mut input = Vec::new();
        entry.read_to_end(&mut input).expect("a whole archive");
        (name, input)
    });
    inputs.collect()
}

fn replay(target: &str) {
    let inputs = stored(target);
    assert!(inputs.len() > 10, "{target}: only {} inputs", inputs.len());
    for (name, input) in inputs {
        // Shown where the test fails: which input it was.
        println!("{target}: {name}");
        run(target, &input);
    }
}

macro_rules! replayed {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target));
        })*

        #[test]
        fn every_target_is_replayed() {
            assert_eq!(TARGETS.map(|(name, _)| name), [$(stringify!($target)),*]);
        }
    };
}

replayed! { nbd_negotiation nbd_session nvme_pdu nvme_command control profile trace }
