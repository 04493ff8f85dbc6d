//! Traces: any file is refused with an error of one line, or read to its end.

use std::io::Write;
use std::os::fd::AsRawFd;

use ssdlab_workload::trace::{Format, Replay, Statistics};

/// The first byte selects the format, or its detection. The rest is the file.
pub fn trace(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let format = Format::ALL.get(usize::from(first >> 1)).map(|format| format.name().to_owned());
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = rustix::fs::memfd_create("trace", flags).expect("a file in memory");
    let mut file = std::fs::File::from(file);
    file.write_all(bytes).expect("memory is writable");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    let replay = Replay { path, format, any_order: first & 1 == 1, ..Replay::default() };
    match Statistics::collect(&replay) {
        Ok(found) => check(&found),
        Err(error) => {
            let line = error.to_string();
            assert!(line.contains("/proc/self/fd/") && !line.contains('\n'), "{line:?}");
        }
    }
}

fn check(found: &Statistics) {
    assert!(found.requests.iter().sum::<u64>() > 0, "a trace without requests");
    assert!(found.written_footprint_bytes <= found.footprint_bytes);
    assert!((0.0..=1.0).contains(&found.hottest_fifth), "{}", found.hottest_fifth);
}
