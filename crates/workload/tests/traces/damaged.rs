//! Damaged traces: the error is one line, with the number of the damaged line.

use ssdlab_workload::trace::{ReadOptions, Statistics};

use crate::TraceFile;

const GOOD: &str = "128166410318060999,wdev,1,Write,3165323264,4096,1189\n";

#[test]
fn an_invalid_line_is_reported_by_number_and_field() {
    for (fields, error) in [
        ("Write", "Offset is missing: the line is too short"),
        ("Write,4096,-4096,1189\n", "Size is \"-4096\"; may be a whole number, 0 or more"),
        ("Write,4096,4096,1189,9\n", "\"9\" follows the last field"),
        ("Erase,4096,4096,1189\n", "Type is \"Erase\"; may be Read or Write"),
        (
            "Write,18446744073709551615,4096,1\n",
            "Offset is \"18446744073709551615\"; may be below 64 PiB",
        ),
        ("Write,4096,4294967808,1189\n", "its length is 4294967808 bytes; may be up to 4 GiB"),
    ] {
        let trace = TraceFile::of(&format!("{GOOD}128166410318061000,wdev,1,{fields}"));
        assert_eq!(trace.error_text(), format!("TRACE, line 2: {error}"));
    }
}

#[test]
fn an_entry_of_4_gib_is_read() {
    let longest =
        TraceFile::of(&format!("{GOOD}128166410318061000,wdev,1,Write,0,4294967296,1189\n"));
    assert_eq!(Statistics::collect(&longest.replay(None)).unwrap().unit_writes, (1 << 20) + 1);
}

#[test]
fn a_much_earlier_time_is_an_error_unless_any_order_is_allowed() {
    let trace = TraceFile::of(&format!("{GOOD}128166410298060999,wdev,1,Write,4096,4096,1\n"));
    assert_eq!(
        trace.error_text(),
        "TRACE, line 2: its time is 2.000 s before that of an earlier entry; sort the trace, or \
         give --any-order"
    );
    let allowed = ReadOptions { any_order: true, ..ReadOptions::default() };
    assert_eq!(trace.read_with(allowed).unwrap()[1].at.get(), 0);
}

#[test]
fn a_slightly_earlier_time_counts_as_the_latest() {
    let trace = TraceFile::of(&format!("{GOOD}128166410318060000,wdev,1,Write,4096,4096,1\n"));
    assert_eq!(trace.read().unwrap()[1].at.get(), 0);
    assert_eq!(Statistics::collect(&trace.replay(None)).unwrap().out_of_order, 1);
}

#[test]
fn files_that_are_not_traces_are_refused() {
    assert_eq!(TraceFile::of("\n\n").error_text(), "TRACE: it is empty");
    let unknown = TraceFile::of("once upon a time\n").error_text();
    assert!(unknown.starts_with("TRACE: no format known here (blktrace, fio,"), "{unknown}");
    let header_alone = TraceFile::of("fio version 2 iolog\n/dev/a add\n");
    let error = Statistics::collect(&header_alone.replay(Some("fio"))).unwrap_err().to_string();
    assert!(error.ends_with("it has no requests"), "{error}");
}

#[test]
fn a_truncated_compressed_trace_is_reported() {
    let packed = zstd::encode_all(GOOD.repeat(1000).as_bytes(), 3).unwrap();
    let trace = TraceFile::named("trace.zst", &packed[..packed.len() - 4]);
    assert_eq!(trace.error_text(), "TRACE: it is truncated: copy it again");
}

#[test]
fn a_truncated_record_is_reported_by_number() {
    let mut records = 0x6561_7407_u32.to_le_bytes().to_vec();
    records.resize(48 + 10, 0);
    let trace = TraceFile::named("sda.blktrace.0", &records);
    assert_eq!(trace.error_text(), "TRACE, record 2: the file ends 10 bytes into it");
}

#[test]
fn no_input_makes_a_reader_panic() {
    let seeds =
        [GOOD, "fio version 3 iolog\n1 /dev/a read 0 4096\n", "8,1 0 1 0.1 1 D R 8 + 8 [a]\n"];
    for seed in seeds {
        for at in 0..seed.len() {
            for byte in [0, b'-', b',', b' ', b'9', 0xff] {
                let mut bytes = seed.repeat(2).into_bytes();
                bytes[at] = byte;
                let _ = TraceFile::named("trace", &bytes).read();
            }
        }
    }
}
