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

use crate::door::Address;
use crate::link::{Link, pause_sharply, pause_until};
use crate::message::Message;
use crate::pace::wall;
use crate::slab::{Pool, Slab};

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
/// The data of a short answer.
pub const SHORT: usize = 4096;
/// No more of a wait is spent looking at the clock, and no less.
const SPIN: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(300));

/// What keeps an answer from being with its client when it is due.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lead {
    /// A request and its answer with 4 KiB are so long on their way: the median.
    pub transport: Duration,
    /// Each byte beyond them, in nanoseconds: it is copied into the connection and out of it.
    pub byte_ns: f64,
    /// Who sleeps is woken so late: 99 of 100 times not later.
    pub waking: Duration,
}

impl Lead {
    /// That of a connection like that of an address, to a client that does nothing else.
    ///
    /// # Errors
    /// The system's.
    pub fn measure(address: &Address) -> io::Result<Self> {
        let (mut client, mut server) = pair(address)?;
        let answering = std::thread::Builder::new().spawn(move || -> io::Result<Duration> {
            be_punctual();
            server.widen(true)?;
            let waking = waking()?.clamp(SPIN.0, SPIN.1);
            answer(&mut server, ROUNDS, SHORT, waking)?;
            answer(&mut server, LONG.0, LONG.1, waking)?;
            Ok(waking)
        })?;
        let short = ask(&mut client, ROUNDS, SHORT)?;
        let long = ask(&mut client, LONG.0, LONG.1)?;
        let waking = answering.join().expect("it only answers")?;
        Ok(Self { waking, ..Self::default() }.of_ways(short, (LONG.1, long)))
    }

    /// The same machine's, where a short answer's way takes so long, and that of so many bytes.
    #[must_use]
    pub fn of_ways(self, short: Duration, (bytes, long): (usize, Duration)) -> Self {
        let beyond = bytes.saturating_sub(SHORT).max(1) as f64;
        let byte_ns = long.saturating_sub(short).as_nanos() as f64 / beyond;
        Self { transport: short, byte_ns, ..self }
    }

    /// How long before its time an answer leaves to a request; so many bytes come with one of
    /// them.
    pub fn of(&self, bytes: u64) -> Duration {
        let beyond = bytes.saturating_sub(SHORT as u64) as f64;
        self.transport + Duration::from_nanos((beyond * self.byte_ns) as u64)
    }
}

/// Lets this thread's waits end when they should; where the system refuses, they end a little late.
pub fn be_punctual() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Answers requests with so many bytes each, as a drive's answers leave, each from other memory.
fn answer(server: &mut Link, rounds: usize, bytes: usize, waking: Duration) -> io::Result<()> {
    let pool = Pool::new(bytes);
    let written = |mut slab: Slab| {
        slab.fill(1);
        Arc::new(slab)
    };
    let slabs: Vec<Arc<Slab>> = (0..rounds).map(|_| written(pool.take())).collect();
    let mut message = Message::default();
    for slab in &slabs {
        server.read_exact(&mut [0; ASKED])?;
        message.bytes().extend([0; HEAD]);
        message.add(slab, 0..bytes, bytes);
        pause_sharply(wall() + DUE, waking)?;
        message.send(server)?;
    }
    Ok(())
}

/// Asks as clients do, one thing after the other: they wait, then receive what is there piece by
/// piece. Returns how much longer than the drive it took: the median.
fn ask(client: &mut Link, rounds: usize, bytes: usize) -> io::Result<Duration> {
    let mut into = vec![0; bytes];
    let mut took = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let asked = wall();
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
        let due = wall() + DUE;
        pause_until(due)?;
        late.push(wall().saturating_duration_since(due));
    }
    Ok(share(late, 99))
}

/// So many of a hundred are not longer.
pub fn share(mut of: Vec<Duration>, percent: usize) -> Duration {
    of.sort_unstable();
    of[(of.len() - 1) * percent / 100]
}

fn pair(address: &Address) -> io::Result<(Link, Link)> {
    match address {
        Address::Unix(_) => {
            let (client, server) = UnixStream::pair()?;
            Ok((Link::unix(client), Link::unix(server)))
        }
        Address::Tcp(wanted) => {
            let listener = TcpListener::bind((wanted.ip(), 0))?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            Ok((Link::tcp(client), Link::tcp(server)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Lead;

    #[test]
    fn each_byte_beyond_a_short_answers_lets_it_leave_earlier() {
        let transport = Duration::from_micros(10);
        let lead = Lead { transport, byte_ns: 0.5, waking: Duration::ZERO };
        assert_eq!(lead.of(0), transport);
        assert_eq!(lead.of(4096), transport);
        assert_eq!(lead.of(4096 + 2000), Duration::from_micros(11));
    }
}
