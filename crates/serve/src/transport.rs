//! What a connection and the system's timers cost: answers leave earlier by that, so that clients
//! see the drive.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::set_current_timer_slack;

use crate::door::Address;
use crate::link::{Link, pause_sharply, pause_until};
use crate::pace::wall;

const ROUNDS: usize = 400;
/// An answer is due so long after its request: about what a drive takes.
const DUE: Duration = Duration::from_micros(100);
/// A read's request, and how its answer with 4 KiB is received: as structured replies are.
const ASKED: usize = 28;
const ANSWERED: [usize; 4] = [16, 4, 8, 4096];
/// No more of a wait is spent looking at the clock, and no less.
const SPIN: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(300));

/// What keeps an answer from being with its client when it is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lead {
    /// The request and its answer are so long on their way: the median.
    pub transport: Duration,
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
        let answering = std::thread::spawn(move || -> io::Result<Duration> {
            be_punctual();
            let waking = waking()?.clamp(SPIN.0, SPIN.1);
            let answer = [0; ANSWERED[0] + ANSWERED[1] + ANSWERED[2] + ANSWERED[3]];
            for _ in 0..ROUNDS {
                server.read_exact(&mut [0; ASKED])?;
                pause_sharply(wall() + DUE, waking)?;
                server.write_all(&answer)?;
            }
            Ok(waking)
        });
        let mut took = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let asked = wall();
            ask(&mut client)?;
            took.push(asked.elapsed().saturating_sub(DUE));
        }
        let waking = answering.join().expect("it only answers")?;
        Ok(Self { transport: share(took, 50), waking })
    }
}

/// Lets this thread's waits end when they should; where the system refuses, they end a little late.
pub fn be_punctual() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// As clients do: they wait, then receive what is there piece by piece.
fn ask(client: &mut Link) -> io::Result<()> {
    client.write_all(&[0; ASKED])?;
    poll(&mut [PollFd::new(client, PollFlags::IN)], None)?;
    let mut answer = [0; 4096];
    ANSWERED.iter().try_for_each(|piece| client.read_exact(&mut answer[..*piece]))
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
fn share(mut of: Vec<Duration>, percent: usize) -> Duration {
    of.sort_unstable();
    of[(of.len() - 1) * percent / 100]
}

fn pair(address: &Address) -> io::Result<(Link, Link)> {
    match address {
        Address::Unix(_) => {
            let (client, server) = UnixStream::pair()?;
            Ok((Link::Unix(client), Link::Unix(server)))
        }
        Address::Tcp(wanted) => {
            let listener = TcpListener::bind((wanted.ip(), 0))?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            Ok((Link::Tcp(client), Link::Tcp(server)))
        }
    }
}
