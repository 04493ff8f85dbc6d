//! Measures the latency of the transport and of the system's timers. Paced replies are sent earlier
//! by this time, so that clients see the latency of the drive alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::thread::set_current_timer_slack;

use crate::listener::Address;
use ssdlab_engine::buffer_pool::{BufferPool, PooledBuffer};
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::{sleep_until, wait_precisely};
use ssdlab_engine::{Engine, LatencyCompensation, Operation, SHORT_REPLY_BYTES, SendBuffer};
use ssdlab_wire::Connection;

/// A benchmark of reads of one size.
#[derive(Clone, Copy)]
struct Benchmark {
    reads: usize,
    bytes: usize,
}

const SHORT_READS: Benchmark = Benchmark { reads: 400, bytes: SHORT_REPLY_BYTES };
const LONG_READS: Benchmark = Benchmark { reads: 60, bytes: 512 << 10 };
/// Time between a request and its reply; of the order of a drive's latency.
const REPLY_DELAY: Duration = Duration::from_micros(100);
/// An NBD read request, and the pieces that precede the data of a structured reply.
const REQUEST_BYTES: usize = 28;
const HEADERS: [usize; 3] = [16, 4, 8];
const HEADER_BYTES: usize = HEADERS[0] + HEADERS[1] + HEADERS[2];
/// Bounds of the part of a wait that is spent polling the clock.
const SPIN_MIN: Duration = Duration::from_micros(20);
const SPIN_MAX: Duration = Duration::from_micros(300);
/// Time limit of a benchmark through a device; a slow drive gets fewer reads.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(10);
/// Fewer reads than this mean that the device does not read from this drive alone.
const DEVICE_READS_MIN: usize = 10;

/// Measures a connection to an address of this kind, with an idle client.
pub fn measure_transport(address: &Address) -> io::Result<LatencyCompensation> {
    let (mut client, mut server) = connected_pair(address)?;
    let replying = std::thread::Builder::new().spawn(move || -> io::Result<Duration> {
        use_precise_timers();
        server.set_send_buffer(true)?;
        let wake_up = wake_up_latency()?.clamp(SPIN_MIN, SPIN_MAX);
        reply(&mut server, SHORT_READS, wake_up)?;
        reply(&mut server, LONG_READS, wake_up)?;
        Ok(wake_up)
    })?;
    let short = transport_latency(&mut client, SHORT_READS)?;
    let long = transport_latency(&mut client, LONG_READS)?;
    let wake_up = replying.join().expect("the replying thread does not panic")?;
    let timers = LatencyCompensation { wake_up, ..Default::default() };
    Ok(timers.with_round_trips(short, LONG_READS.bytes, long))
}

/// Measures the latency between the drive and a client that reads it through a device or file of
/// this machine. Fails if anything else reads from the drive at the same time.
pub fn measure_through(engine: &Engine, path: &Path) -> io::Result<LatencyCompensation> {
    use_precise_timers();
    let direct = OFlags::DIRECT.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(direct).open(path)?;
    let short = device_latency(engine, &file, SHORT_READS)?.ok_or_else(|| {
        io::Error::other("not backed by this drive, or another client reads from the drive")
    })?;
    // The kernel may split long reads.
    let mut bytes = LONG_READS.bytes;
    while bytes > SHORT_REPLY_BYTES {
        if let Some(long) = device_latency(engine, &file, Benchmark { bytes, ..LONG_READS })? {
            return Ok(engine.clock.compensation().with_round_trips(short, bytes, long));
        }
        bytes /= 2;
    }
    Ok(LatencyCompensation { round_trip: short, ns_per_byte: 0.0, ..engine.clock.compensation() })
}

/// Lets waits of this thread end on time. If the system refuses, they end a little late.
pub fn use_precise_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Answers reads as a drive does: each reply is sent after a delay, from memory of its own.
fn reply(server: &mut Connection, benchmark: Benchmark, wake_up: Duration) -> io::Result<()> {
    let Benchmark { reads, bytes } = benchmark;
    let pool = BufferPool::new(bytes);
    let filled = |mut buffer: PooledBuffer| {
        buffer.fill(1);
        Arc::new(buffer)
    };
    let buffers: Vec<Arc<PooledBuffer>> = (0..reads).map(|_| filled(pool.take())).collect();
    let mut message = SendBuffer::default();
    for buffer in &buffers {
        server.read_exact(&mut [0; REQUEST_BYTES])?;
        message.bytes().extend([0; HEADER_BYTES]);
        message.add(buffer, 0..bytes, bytes);
        wait_precisely(wall_clock_now() + REPLY_DELAY, wake_up)?;
        message.send(server)?;
    }
    Ok(())
}

/// Sends one read at a time, as clients do: waits for the reply, then receives it piece by piece.
/// Returns the median latency without the delay of the reply.
fn transport_latency(client: &mut Connection, benchmark: Benchmark) -> io::Result<Duration> {
    let mut data = vec![0; benchmark.bytes];
    let mut latencies = Vec::with_capacity(benchmark.reads);
    for _ in 0..benchmark.reads {
        let start = wall_clock_now();
        client.write_all(&[0; REQUEST_BYTES])?;
        poll(&mut [PollFd::new(client, PollFlags::IN)], None)?;
        for piece in HEADERS.into_iter().chain([benchmark.bytes]) {
            client.read_exact(&mut data[..piece])?;
        }
        latencies.push(start.elapsed().saturating_sub(REPLY_DELAY));
    }
    Ok(percentile(latencies, 50))
}

/// Wake-up latency of a sleeping thread, 99th percentile.
fn wake_up_latency() -> io::Result<Duration> {
    let mut latencies = Vec::with_capacity(SHORT_READS.reads);
    for _ in 0..SHORT_READS.reads {
        let due = wall_clock_now() + REPLY_DELAY;
        sleep_until(due)?;
        latencies.push(wall_clock_now().saturating_duration_since(due));
    }
    Ok(percentile(latencies, 99))
}

/// Median latency that reads of a device have in addition to those of the drive; `None` if most
/// reads do not arrive at the drive as a single read of this size.
fn device_latency(
    engine: &Engine,
    file: &File,
    benchmark: Benchmark,
) -> io::Result<Option<Duration>> {
    let Benchmark { reads, bytes } = benchmark;
    let mut data = BufferPool::new(bytes).take();
    let places = (engine.parameters.capacity / bytes as u64).max(1);
    let mut latencies = Vec::with_capacity(reads);
    let end = wall_clock_now() + DEVICE_TIMEOUT;
    for number in 0..reads as u64 {
        if number >= DEVICE_READS_MIN as u64 && (wall_clock_now() > end || latencies.is_empty()) {
            break;
        }
        let offset = number % places * bytes as u64;
        latencies.extend(latency_of_read(engine, file, &mut data, offset)?);
    }
    Ok((latencies.len() >= DEVICE_READS_MIN / 2).then(|| percentile(latencies, 50)))
}

/// Latency of one read of a device, without the time that the server took to reply; `None` if the
/// drive did not get exactly this read.
fn latency_of_read(
    engine: &Engine,
    file: &File,
    data: &mut [u8],
    offset: u64,
) -> io::Result<Option<Duration>> {
    let bytes = data.len() as u64;
    let before = engine.inspect(|state| state.meter().of(Operation::Read).clone());
    let start = wall_clock_now();
    file.read_exact_at(data, offset)?;
    let latency = start.elapsed();
    let after = engine.inspect(|state| state.meter().of(Operation::Read).clone());
    let is_this_read = after.commands - before.commands == 1 && after.bytes - before.bytes == bytes;
    let in_drive = engine.clock.wall_time(after.latency.saturating_sub(before.latency));
    let in_server = in_drive.saturating_sub(engine.clock.compensation().for_bytes(bytes));
    Ok(is_this_read.then(|| latency.saturating_sub(in_server)))
}

fn percentile(mut durations: Vec<Duration>, percent: usize) -> Duration {
    durations.sort_unstable();
    durations[(durations.len() - 1) * percent / 100]
}

fn connected_pair(address: &Address) -> io::Result<(Connection, Connection)> {
    match address {
        Address::Unix(_) => {
            let (client, server) = UnixStream::pair()?;
            Ok((Connection::new(client), Connection::new(server)))
        }
        Address::Tcp(wanted) => {
            let listener = TcpListener::bind((wanted.ip(), 0))?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            Ok((Connection::new(client), Connection::new(server)))
        }
    }
}
