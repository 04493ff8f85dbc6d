//! `Replies`: what a connection will send, at once or at a later time.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

use ssdlab_engine::SendBuffer;
use ssdlab_engine::pacing::{Clock, wall_clock_now};

/// The unsent replies of one connection.
#[derive(Default)]
pub struct Replies {
    /// What the next `send` sends in any case.
    pub immediate: SendBuffer,
    /// By due time, then in the order in which they were added.
    delayed: BTreeMap<(Instant, u64), SendBuffer>,
    /// Bytes of the delayed replies.
    pub delayed_bytes: usize,
    added: u64,
}

impl Replies {
    /// Adds a reply, which `write` writes. It is sent when it is due; without due time, at once.
    pub fn add(&mut self, due: Option<Instant>, write: impl FnOnce(&mut SendBuffer)) {
        let Some(due) = due else {
            write(&mut self.immediate);
            return;
        };
        let mut reply = SendBuffer::default();
        write(&mut reply);
        self.added += 1;
        self.delayed_bytes += reply.len();
        self.delayed.insert((due, self.added), reply);
    }

    /// When the next delayed reply is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }

    /// Sends all replies that are due.
    pub fn send(&mut self, stream: &mut impl Write, clock: &Clock) -> io::Result<()> {
        while self.next_due().is_some_and(|due| due <= wall_clock_now()) {
            let ((due, _), reply) = self.delayed.pop_first().expect("a reply is due");
            clock.note_sent(due);
            self.delayed_bytes -= reply.len();
            self.immediate.append(reply);
        }
        if self.immediate.is_empty() { Ok(()) } else { self.immediate.send(stream) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ssdlab_engine::pacing::{Clock, wall_clock_now};
    use ssdlab_engine::{LatencyCompensation, Pace};

    use super::Replies;

    #[test]
    fn delayed_replies_are_sent_when_due_and_then_no_longer_counted() {
        let mut replies = Replies::default();
        let (due, later) = (wall_clock_now(), wall_clock_now() + Duration::from_secs(3600));
        replies.add(Some(later), |out| out.bytes().extend(b"later"));
        replies.add(Some(due), |out| out.bytes().extend(b"first,"));
        replies.add(Some(due), |out| out.bytes().extend(b"second"));
        assert_eq!(replies.delayed_bytes, 17);
        let clock = Clock::start(Pace::None, LatencyCompensation::default());
        let mut sent = Vec::new();
        replies.send(&mut sent, &clock).unwrap();
        assert_eq!(sent, b"first,second");
        assert_eq!((replies.delayed_bytes, replies.next_due()), (5, Some(later)));
    }
}
