//! Damaged traces: each is told in one line, with the number of the line.

use ssdlab_workload::trace::{Reading, Statistics};

use crate::Kept;

const GOOD: &str = "128166410318060999,wdev,1,Write,3165323264,4096,1189\n";

/// What is said of a good line and then this one.
fn second(line: &str) -> String {
    Kept::of(&format!("{GOOD}{line}")).wrong()
}

#[test]
fn a_line_that_is_wrong_is_told_by_its_number_and_field() {
    let truncated = "TRACE, line 2: Offset is missing: the line is too short";
    assert_eq!(second("128166410318061000,wdev,1,Write"), truncated);
    assert_eq!(
        second("128166410318061000,wdev,1,Write,4096,-4096,1189\n"),
        "TRACE, line 2: Size is \"-4096\"; may be a whole number, 0 or more"
    );
    assert_eq!(
        second("128166410318061000,wdev,1,Write,4096,4096,1189,9\n"),
        "TRACE, line 2: \"9\" follows the last field"
    );
    assert_eq!(
        second("128166410318061000,wdev,1,Erase,4096,4096,1189\n"),
        "TRACE, line 2: Type is \"Erase\"; may be Read or Write"
    );
    assert_eq!(
        second("128166410318061000,wdev,1,Write,18446744073709551615,4096,1\n"),
        "TRACE, line 2: Offset is \"18446744073709551615\"; may be below 64 PiB"
    );
}

#[test]
fn an_entry_that_no_host_could_ask_for_is_refused_at_once() {
    assert_eq!(
        second("128166410318061000,wdev,1,Write,4096,4294967808,1189\n"),
        "TRACE, line 2: its length is 4294967808 bytes; may be up to 4 GiB"
    );
    let longest = Kept::of(&format!("{GOOD}128166410318061000,wdev,1,Write,0,4294967296,1189\n"));
    assert_eq!(Statistics::of(&longest.replay(None)).unwrap().unit_writes, (1 << 20) + 1);
}

#[test]
fn a_time_far_before_others_is_wrong_unless_any_order_is_allowed() {
    let trace = Kept::of(&format!("{GOOD}128166410298060999,wdev,1,Write,4096,4096,1\n"));
    assert_eq!(
        trace.wrong(),
        "TRACE, line 2: its time is 2.000 s before that of an earlier entry; sort the trace, or \
         give --any-order"
    );
    let allowed = Reading { any_order: true, ..Reading::default() };
    assert_eq!(trace.read_by(allowed).unwrap()[1].at.get(), 0);
}

#[test]
fn a_time_a_little_before_others_counts_as_the_latest() {
    let trace = Kept::of(&format!("{GOOD}128166410318060000,wdev,1,Write,4096,4096,1\n"));
    assert_eq!(trace.read().unwrap()[1].at.get(), 0);
    assert_eq!(Statistics::of(&trace.replay(None)).unwrap().early, 1);
}

#[test]
fn what_is_no_trace_is_refused() {
    assert_eq!(Kept::of("\n\n").wrong(), "TRACE: it is empty");
    let unknown = Kept::of("once upon a time\n").wrong();
    assert!(unknown.starts_with("TRACE: no format known here (blktrace, fio,"), "{unknown}");
    let header_alone = Kept::of("fio version 2 iolog\n/dev/a add\n");
    let error = Statistics::of(&header_alone.replay(Some("fio"))).unwrap_err().to_string();
    assert!(error.ends_with("it holds no request"), "{error}");
}

#[test]
fn what_is_packed_and_cut_short_says_so() {
    let packed = zstd::encode_all(GOOD.repeat(1000).as_bytes(), 3).unwrap();
    let trace = Kept::named("trace.zst", &packed[..packed.len() - 4]);
    assert_eq!(trace.wrong(), "TRACE: it ends in the middle: copy it again");
}

#[test]
fn a_record_that_is_cut_short_is_told_by_its_number() {
    let mut records = 0x6561_7407_u32.to_le_bytes().to_vec();
    records.resize(48 + 10, 0);
    let trace = Kept::named("sda.blktrace.0", &records);
    assert_eq!(trace.wrong(), "TRACE, record 2: the file ends 10 bytes into it");
}

#[test]
fn no_bytes_however_wild_make_a_reader_panic() {
    let seeds =
        [GOOD, "fio version 3 iolog\n1 /dev/a read 0 4096\n", "8,1 0 1 0.1 1 D R 8 + 8 [a]\n"];
    for seed in seeds {
        for at in 0..seed.len() {
            for byte in [0, b'-', b',', b' ', b'9', 0xff] {
                let mut bytes = seed.repeat(2).into_bytes();
                bytes[at] = byte;
                let _ = Kept::named("trace", &bytes).read();
            }
        }
    }
}
