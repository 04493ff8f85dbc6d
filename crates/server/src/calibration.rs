//! What a connection and the system's timers cost: answers leave earlier by that, so that clients
//! see the drive.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::set_current_timer_slack;

use crate::listener::Address;
use ssdlab_engine::buffer_pool::{BufferPool, PooledBuffer};
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::wait::{sleep_until, wait_precisely};
use ssdlab_engine::{LatencyCompensation, SHORT_REPLY_BYTES, SendBuffer};
use ssdlab_wire::Connection;

/// A way is gone so often to learn how long it is.
pub const ROUNDS: usize = 400;
/// And so often with a long answer, of so many bytes.
pub const LONG: (usize, usize) = (60, 512 << 10);
/// An answer is due so long after its request: about what a drive takes.
const DUE: Duration = Duration::from_micros(100);
/// A read's request, and what is received before its data: as of structured replies.
const ASKED: usize = 28;
const HEADS: [usize; 3] = [16, 4, 8];
const HEAD: usize = HEADS[0] + HEADS[1] + HEADS[2];
/// No more of a wait is spent looking at the clock, and no less.
const SPIN: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(300));

/// That of a connection like that of an address, to a client that does nothing else.
///
/// # Errors
/// The system's.
pub fn measure(address: &Address) -> io::Result<LatencyCompensation> {
    let (mut client, mut server) = pair(address)?;
    let answering = std::thread::Builder::new().spawn(move || -> io::Result<Duration> {
        be_punctual();
        server.widen(true)?;
        let waking = waking()?.clamp(SPIN.0, SPIN.1);
        answer(&mut server, ROUNDS, SHORT_REPLY_BYTES, waking)?;
        answer(&mut server, LONG.0, LONG.1, waking)?;
        Ok(waking)
    })?;
    let short = ask(&mut client, ROUNDS, SHORT_REPLY_BYTES)?;
    let long = ask(&mut client, LONG.0, LONG.1)?;
    let waking = answering.join().expect("it only answers")?;
    Ok(LatencyCompensation { wake_up: waking, ..Default::default() }
        .with_round_trips(short, LONG.1, long))
}

/// Lets this thread's waits end when they should; where the system refuses, they end a little late.
pub fn be_punctual() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Answers requests with so many bytes each, as a drive's answers leave, each from other memory.
fn answer(
    server: &mut Connection,
    rounds: usize,
    bytes: usize,
    waking: Duration,
) -> io::Result<()> {
    let pool = BufferPool::new(bytes);
    let written = |mut slab: PooledBuffer| {
        slab.fill(1);
        Arc::new(slab)
    };
    let slabs: Vec<Arc<PooledBuffer>> = (0..rounds).map(|_| written(pool.take())).collect();
    let mut message = SendBuffer::default();
    for slab in &slabs {
        server.read_exact(&mut [0; ASKED])?;
        message.bytes().extend([0; HEAD]);
        message.add(slab, 0..bytes, bytes);
        wait_precisely(wall_clock_now() + DUE, waking)?;
        message.send(server)?;
    }
    Ok(())
}

/// Asks as clients do, one thing after the other: they wait, then receive what is there piece by
/// piece. Returns how much longer than the drive it took: the median.
fn ask(client: &mut Connection, rounds: usize, bytes: usize) -> io::Result<Duration> {
    let mut into = vec![0; bytes];
    let mut took = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let asked = wall_clock_now();
        client.write_all(&[0; ASKED])?;
        poll(&mut [PollFd::new(client, PollFlags::IN)], None)?;
        for piece in HEADS.into_iter().chain([bytes]) {
            client.read_exact(&mut into[..piece])?;
        }
        took.push(asked.elapsed().saturating_sub(DUE));
    }
    Ok(share(took, 50))
}

/// How late the system wakes this thread.
fn waking() -> io::Result<Duration> {
    let mut late = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let due = wall_clock_now() + DUE;
        sleep_until(due)?;
        late.push(wall_clock_now().saturating_duration_since(due));
    }
    Ok(share(late, 99))
}

/// So many of a hundred are not longer.
pub fn share(mut of: Vec<Duration>, percent: usize) -> Duration {
    of.sort_unstable();
    of[(of.len() - 1) * percent / 100]
}

fn pair(address: &Address) -> io::Result<(Connection, Connection)> {
    match address {
        Address::Unix(_) => {
            let (client, server) = UnixStream::pair()?;
            Ok((Connection::unix(client), Connection::unix(server)))
        }
        Address::Tcp(wanted) => {
            let listener = TcpListener::bind((wanted.ip(), 0))?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            Ok((Connection::tcp(client), Connection::tcp(server)))
        }
    }
}
