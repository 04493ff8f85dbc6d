//! One sample of each format: times, operations, volumes and bytes of its entries.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ssdlab_device::Op;
use ssdlab_time::Nanos;
use ssdlab_workload::trace::{Entry, Format, ReadOptions, Replay, Statistics, Trace};

use crate::TraceFile;

const MSR: &str = "\
128166410318060999,wdev,1,Write,3165323264,4096,1189
128166410318061023,wdev,1,Read,3154124800,8192,1166
";
const SPC: &str = "0,20941264,8192,W,0.551706,extra\n1, 20939840, 4096, r, 0.554041\n";
const MQSIM: &str = "938513000 4 264719034 16 0\n938828000 3 197570570 8 1\n";
const BLKPARSE: &str = "
  8,33   4        1     0.000000000  3922  D   N 0 (00 ..) [kworker/u65:0]
  8,33  30        2     0.001000000  5025  Q   R 540544 + 8 [systemd-udevd]
  8,33  30        3     0.001368096  5025  D   R 540544 + 8 [systemd-udevd]
  8,33  30        4     0.001368196  5025  C   R 540544 + 8 [0]
  8,33  30        5     0.002000000  5025  D WFS 16384 + 16 [jbd2]
  8,33  30        6     0.003000000  5025  D   D 32768 + 2048 [fstrim]
  8,33  30        7     0.004000000  5025  D  FN [kworker]
  8,33  30        8     0.004500000  5025  m   N cfq5025 idle
CPU0 (8,33):
 Reads Queued:           1,        4KiB
 PC Reads Queued:        0,        0KiB  PC Writes Queued:      0,        0KiB
Total (8,33):
Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,33): 7 entries
Skips: 0 forward (0 -   0.0%)
";
const FIO_2: &str = "\
fio version 2 iolog
/dev/a add
/dev/a open
/dev/a write 1011712 4096
/dev/a wait 61 0
/dev/b add
/dev/b read 8192 4096
/dev/a wait 9 0
/dev/a datasync 0 0
/dev/a trim 0 65536
/dev/a close
";
const FIO_3: &str = "\
fio version 3 iolog
20 /dev/a add
128 /dev/a open
132 /dev/a write 1011712 4096
193 /dev/a sync 1011712 0
14863 /dev/a close
";
const ALIBABA: &str =
    "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144361000\n";
const TENCENT: &str = "1538323200,12910952,128,0,1063\n1538323201,6338688,8,1,1627\n";
const SYSTOR: &str = "\
Timestamp,Response,IOType,LUN,Offset,Size
1455592202.000127000,0.000289000,R,3,1032192,4096
1455592202.000427000,,W,3,42949672960,8192
";

fn entry(at: u64, op: Op, volume: u32, offset_bytes: u64, length_bytes: u64) -> Entry {
    Entry { volume, ..Entry::new(Nanos::new(at), op, offset_bytes, length_bytes) }
}

/// The device 8,33 of the sample.
const DISK: u32 = (8 << 20) | 0x21;

fn read_as(text: &str, format: Format, expected: &[Entry]) {
    let trace = TraceFile::of(text);
    assert_eq!(Trace::open(&trace.path, ReadOptions::default()).unwrap().format(), format);
    assert_eq!(trace.read().unwrap(), expected, "{}", format.name());
}

#[test]
fn server_traces_are_detected_and_read() {
    let msr = [
        entry(0, Op::Write, 1, 3_165_323_264, 4096),
        entry(2400, Op::Read, 1, 3_154_124_800, 8192),
    ];
    read_as(MSR, Format::Msr, &msr);
    let spc = [
        entry(0, Op::Write, 0, 20_941_264 * 512, 8192),
        entry(2_335_000, Op::Read, 1, 20_939_840 * 512, 4096),
    ];
    read_as(SPC, Format::Spc, &spc);
    let mqsim = [
        entry(0, Op::Write, 4, 264_719_034 * 512, 8192),
        entry(315_000, Op::Read, 3, 197_570_570 * 512, 4096),
    ];
    read_as(MQSIM, Format::Mqsim, &mqsim);
}

#[test]
fn cloud_traces_are_detected_and_read() {
    let alibaba = [
        entry(0, Op::Write, 419, 8_792_731_648, 16384),
        entry(233_000, Op::Read, 725, 59_110_326_272, 360_448),
    ];
    read_as(ALIBABA, Format::Alibaba, &alibaba);
    let tencent = [
        entry(0, Op::Read, 1063, 12_910_952 * 512, 65536),
        entry(1_000_000_000, Op::Write, 1627, 6_338_688 * 512, 4096),
    ];
    read_as(TENCENT, Format::Tencent, &tencent);
    let systor = [
        entry(0, Op::Read, 3, 1_032_192, 4096),
        entry(300_000, Op::Write, 3, 42_949_672_960, 8192),
    ];
    read_as(SYSTOR, Format::Systor, &systor);
}

#[test]
fn the_issue_events_of_blkparse_are_read() {
    let issues = [
        entry(0, Op::Read, DISK, 540_544 * 512, 4096),
        Entry { durable: true, ..entry(631_904, Op::Write, DISK, 16384 * 512, 8192) },
        entry(1_631_904, Op::Trim, DISK, 32768 * 512, 1 << 20),
        entry(2_631_904, Op::Flush, DISK, 0, 0),
    ];
    read_as(BLKPARSE, Format::Blkparse, &issues);
}

#[test]
fn fio_iologs_have_times_or_waits() {
    let waits = [
        entry(0, Op::Write, 0, 1_011_712, 4096),
        entry(61_000, Op::Read, 1, 8192, 4096),
        entry(70_000, Op::Flush, 0, 0, 0),
        entry(70_000, Op::Trim, 0, 0, 65536),
    ];
    read_as(FIO_2, Format::Fio, &waits);
    let times = [entry(0, Op::Write, 0, 1_011_712, 4096), entry(61_000, Op::Flush, 0, 0, 0)];
    read_as(FIO_3, Format::Fio, &times);
}

/// A record as the kernel writes it.
fn record(time: u64, sector: u64, bytes: u32, action: u32, more: &[u8]) -> Vec<u8> {
    let mut record = 0x6561_7407_u32.to_le_bytes().to_vec();
    record.extend(1_u32.to_le_bytes());
    record.extend(time.to_le_bytes());
    record.extend(sector.to_le_bytes());
    for word in [bytes, action, 4711, (8 << 20) | 1, 0] {
        record.extend(word.to_le_bytes());
    }
    record.extend(0_u16.to_le_bytes());
    record.extend((more.len() as u16).to_le_bytes());
    record.extend(more);
    record
}

const ISSUE: u32 = 7 | (1 << 22);

#[test]
fn per_cpu_records_are_merged_by_time() {
    let (read, write, discard) = (1 << 16, 2 << 16, (2 | 0x2000) << 16);
    let first = [
        record(1000, 8, 4096, ISSUE | write, b""),
        record(1500, 0, 0, 0x0400_0001, b"a message"),
        record(3000, 16, 8192, ISSUE | discard, b""),
    ];
    let second = [
        record(2000, 24, 4096, 1 | read, b""),
        record(2100, 24, 4096, ISSUE | read, b"more"),
        record(4000, 32, 4096, ISSUE | write | (1 << 31), b""),
        record(5000, 0, 0, ISSUE | (4 << 16), b""),
    ];
    let trace = TraceFile::named("sda.blktrace.1", &second.concat());
    fs::write(trace.folder.path().join("sda.blktrace.0"), first.concat()).unwrap();
    let disk = (8 << 20) | 1;
    assert_eq!(
        trace.read().unwrap(),
        [
            entry(0, Op::Write, disk, 4096, 4096),
            entry(1100, Op::Read, disk, 24 * 512, 4096),
            entry(2000, Op::Trim, disk, 8192, 8192),
            Entry { durable: true, ..entry(3000, Op::Write, disk, 32 * 512, 4096) },
            entry(4000, Op::Flush, disk, 0, 0),
        ]
    );
}

#[test]
fn gzip_and_zstd_are_decompressed() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(MSR.as_bytes()).unwrap();
    let zstd = zstd::encode_all(MSR.as_bytes(), 3).unwrap();
    let plain = TraceFile::of(MSR).read().unwrap();
    for packed in [gzip.finish().unwrap(), zstd] {
        assert_eq!(TraceFile::named("trace.packed", &packed).read().unwrap(), plain);
    }
}

#[test]
fn one_volume_can_be_selected() {
    let trace = TraceFile::of(TENCENT);
    let read =
        |volume| trace.read_with(ReadOptions { volume: Some(volume), ..ReadOptions::default() });
    assert_eq!(read(1627).unwrap(), [entry(0, Op::Write, 1627, 6_338_688 * 512, 4096)]);
    let error = Statistics::collect(&Replay { volume: Some(7), ..trace.replay(None) });
    assert!(error.unwrap_err().to_string().ends_with("it has no requests for volume 7"));
}

#[test]
fn statistics_count_requests_and_distinct_units() {
    let trace = TraceFile::of("1,W,0,8192,0\n1,W,4096,4096,10\n1,W,8192,6144,30\n1,R,0,512,90\n");
    let found = Statistics::collect(&trace.replay(None)).unwrap();
    assert_eq!(found.requests, [1, 3, 0, 0]);
    assert_eq!(found.bytes, [512, 18_432, 0, 0]);
    assert_eq!(found.span, Nanos::new(90_000));
    assert_eq!((found.footprint_bytes, found.written_footprint_bytes), (16_384, 16_384));
    assert_eq!(found.unit_writes, 5, "two, one, two");
    assert_eq!((found.aligned, found.sequential), (2, 1));
    assert_eq!(found.median_bytes(Op::Write.index()), Some(6144));
    assert_eq!(found.volume_ends.into_iter().collect::<Vec<_>>(), [(1, 14_336)]);
}
