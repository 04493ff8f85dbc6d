//! libFuzzer's entry to the target `nbd_session`.
#![no_main]

#[global_allocator]
static ALLOCATOR: ssdlab_fuzz::LimitedAllocator = ssdlab_fuzz::LimitedAllocator;

libfuzzer_sys::fuzz_target!(|input: &[u8]| ssdlab_fuzz::run("nbd_session", input));
