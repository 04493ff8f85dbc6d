//! libFuzzer's entry to the target `profile`.
#![no_main]

#[global_allocator]
static ALLOCATOR: ssdlab_fuzz::Limited = ssdlab_fuzz::Limited;

libfuzzer_sys::fuzz_target!(|input: &[u8]| ssdlab_fuzz::run("profile", input));
