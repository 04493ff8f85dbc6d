//! A model of clients that reconnect while the power is cut, under Shuttle's scheduler.
//!
//! The engine, the list of connections and the power cuts are the code that ships; the transport
//! and the threads are modelled. Each client has its own unit, writes increasing numbers to it,
//! flushes, and reconnects when it is disconnected. `Variant` plants faults, to show that the model
//! finds them.

use std::sync::Arc;

use shuttle::sync::{Condvar, Mutex};
use shuttle::{check_random, thread};

use crate::connection::Disconnect;
use crate::connections::{Attachments, Registration};
use ssdlab_engine::{Command, Engine, Epoch, Operation, PowerCutPlan, SendBuffer};
use ssdlab_testing::{FakeDrive, UNIT, scaled};

/// Schedules to try; a planted fault is found after far fewer.
const SCHEDULES: u32 = 3_000;
const CLIENTS: u64 = 2;
/// Connections of each client, one after the other.
const CONNECTIONS: usize = 3;

/// How the model's server behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Variant {
    Shipped,
    /// A cut disconnects the clients before the drive stops accepting commands; epochs are ignored.
    BreaksBeforeClosing,
    /// Commands are executed in any epoch.
    IgnoresEpoch,
    /// A connection reads its epoch once, after it is registered.
    ReadsEpochOnce,
    /// Each connection that sees a planned cut begin cuts the power.
    EachCuts,
}

/// How the power is cut.
#[derive(Clone, Copy, Debug)]
enum Trigger {
    Now,
    Planned,
}

/// A connection, with the replies that the client has received.
#[derive(Clone, Default)]
struct Line(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    broken: bool,
    ended: bool,
    replies: Vec<Reply>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reply {
    Read(u8),
    Written(u8),
    Flushed,
}

impl Disconnect for Line {
    fn disconnect(&self) {
        self.change(|state| state.broken = true);
    }
}

impl Line {
    fn change(&self, change: impl FnOnce(&mut State)) {
        let (state, changed) = &*self.0;
        change(&mut state.lock().unwrap());
        changed.notify_all();
    }

    /// Waits for the end of the connection; returns the replies.
    fn replies(&self) -> Vec<Reply> {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        while !state.broken && !state.ended {
            state = changed.wait(state).unwrap();
        }
        state.replies.clone()
    }
}

struct Server {
    engine: Arc<Engine>,
    attachments: Attachments<Line>,
    variant: Variant,
}

impl Server {
    fn new(variant: Variant) -> Self {
        let engine = Arc::new(Engine::in_memory(FakeDrive::default()));
        Self { attachments: Attachments::new(Arc::clone(&engine)), engine, variant }
    }

    fn attach(&self, line: &Line) -> Option<(Registration<Line>, Epoch)> {
        if self.variant == Variant::ReadsEpochOnce {
            let registration = self.attachments.connections.add(line);
            return Some((registration, self.engine.power().epoch()?));
        }
        self.attachments.attach(line)
    }

    /// The epoch that a command carries.
    fn epoch(&self, attached: Epoch) -> Option<Epoch> {
        match self.variant {
            Variant::Shipped | Variant::EachCuts | Variant::ReadsEpochOnce => Some(attached),
            Variant::IgnoresEpoch | Variant::BreaksBeforeClosing => self.engine.power().epoch(),
        }
    }

    fn power_cut(&self) {
        if self.variant == Variant::BreaksBeforeClosing {
            self.attachments.connections.disconnect_all();
            self.engine.power().begin_cut(true);
            self.engine.power().finish_cut();
        } else {
            self.attachments.power_cut(true).expect("nothing else cuts the power");
        }
    }

    fn finish_planned_cut(&self) {
        if self.variant != Variant::EachCuts {
            self.attachments.finish_planned_cut();
        } else if self.engine.power().is_failing() {
            self.attachments.connections.disconnect_all();
            self.engine.power().begin_cut(true);
            self.engine.power().finish_cut();
        }
    }

    /// Serves a connection: two reads, then writes of `values` with a flush after each.
    fn serve(&self, line: &Line, unit: u64, values: &[u8]) {
        if let Some((_registration, attached)) = self.attach(line) {
            let cuts = self.engine.power().status().cuts;
            let reads = [(Operation::Read, 0); 2];
            let writes =
                values.iter().flat_map(|value| [(Operation::Write, *value), (Operation::Flush, 0)]);
            for (operation, value) in reads.into_iter().chain(writes) {
                let Some(epoch) = self.epoch(attached) else { break };
                let Some(reply) = self.execute(epoch, operation, unit, value) else { break };
                line.change(|state| {
                    if !state.broken {
                        assert_eq!(cuts, self.engine.power().status().cuts, "survived a cut");
                        state.replies.push(reply);
                    }
                });
            }
            self.finish_planned_cut();
        }
        line.change(|state| state.ended = true);
    }

    fn execute(&self, epoch: Epoch, operation: Operation, unit: u64, value: u8) -> Option<Reply> {
        let length = if operation == Operation::Flush { 0 } else { UNIT as u32 };
        let command = Command::new(operation, unit * UNIT, length);
        let (payload, mut got) = (vec![value; UNIT as usize], Vec::new());
        self.engine.perform(
            epoch,
            &[command],
            |_| &payload[..],
            |_, _, read| {
                let mut message = SendBuffer::default();
                read(&mut message).unwrap();
                message.send(&mut got).unwrap();
            },
        )?;
        Some(match operation {
            Operation::Read => Reply::Read(got[0]),
            Operation::Write => Reply::Written(value),
            _ => Reply::Flushed,
        })
    }
}

/// A client: checks what it reads after each reconnection.
fn client(server: &Arc<Server>, unit: u64) {
    let (mut issued, mut safe) = (0, 0);
    for _ in 0..CONNECTIONS {
        let (line, values) = (Line::default(), [issued + 1, issued + 2]);
        issued += 2;
        let serving = (Arc::clone(server), line.clone());
        thread::spawn(move || serving.0.serve(&serving.1, unit, &values));
        let (mut acknowledged, mut read) = (0, None);
        for reply in line.replies() {
            match reply {
                Reply::Read(value) => {
                    assert!(value >= safe, "{value} was read after {safe} was flushed");
                    assert!(read.is_none_or(|before| before == value), "changed without a write");
                    read = Some(value);
                }
                Reply::Written(value) => acknowledged = value,
                Reply::Flushed => safe = safe.max(acknowledged),
            }
        }
    }
}

/// Runs clients and a power cut, once.
fn run(variant: Variant, trigger: Trigger) {
    let server = Arc::new(Server::new(variant));
    if let Trigger::Planned = trigger {
        server.engine.power().plan_cut(Some(PowerCutPlan {
            after_writes: 2,
            share: 0.5,
            then_on: true,
        }));
    }
    let clients: Vec<_> = (0..CLIENTS)
        .map(|unit| {
            let server = Arc::clone(&server);
            thread::spawn(move || client(&server, unit))
        })
        .collect();
    if let Trigger::Now = trigger {
        server.power_cut();
    }
    for client in clients {
        client.join().unwrap();
    }
    // The last connections' threads may still be about to finish a cut.
    server.finish_planned_cut();
    let power = server.engine.power().status();
    assert_eq!((power.cuts, power.plan), (1, None), "one cut was requested");
}

/// Runs a variant until a promise is broken; returns which.
fn broken(variant: Variant, trigger: Trigger) -> String {
    for _ in 0..50 {
        // In a thread of its own: after some panics, Shuttle cannot be used again in theirs.
        let tried = std::thread::spawn(move || {
            check_random(move || run(variant, trigger), SCHEDULES as usize);
        });
        let Err(payload) = tried.join() else { continue };
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref::<&str>().copied());
        let message = message.expect("a panic has a message");
        // A second task that panics, or finds a lock poisoned, hides the broken promise.
        if !["still unwinding a panic", "PoisonError"].iter().any(|each| message.contains(each)) {
            return message.to_owned();
        }
    }
    panic!("no schedule of {variant:?} breaks a promise, or not in one task only");
}

#[test]
fn no_schedule_of_the_shipped_code_breaks_a_promise() {
    for trigger in [Trigger::Now, Trigger::Planned] {
        check_random(move || run(Variant::Shipped, trigger), scaled(SCHEDULES) as usize);
    }
}

#[test]
fn planted_faults_are_found() {
    // Which promise breaks first depends on the random schedules.
    let to_clients = ["survived a cut", "changed without a write", "was flushed"];
    for (variant, trigger, promises) in [
        (Variant::BreaksBeforeClosing, Trigger::Now, &to_clients[..]),
        (Variant::IgnoresEpoch, Trigger::Now, &to_clients[..]),
        (Variant::ReadsEpochOnce, Trigger::Now, &to_clients[..]),
        // A second cut may also meet a connection that was made after the first.
        (Variant::EachCuts, Trigger::Planned, &["one cut was requested", "survived a cut"]),
    ] {
        let found = broken(variant, trigger);
        assert!(promises.iter().any(|each| found.contains(each)), "{variant:?}: {found}");
    }
}
