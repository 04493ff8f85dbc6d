//! Each thread start, allocation, accept, receive, send and wait of the server fails once, in turn,
//! while a client writes, flushes and reads. Flushed data is kept, and the server keeps running.

mod clients;
mod history;
#[path = "../test_server/mod.rs"]
#[expect(dead_code, reason = "each test program uses a part of it")]
mod test_server;

use std::io;

use rustix::io::Errno;
use ssdlab_engine::Pace;
use ssdlab_engine::failpoints::{Plan, Point, arm, disarm};
use ssdlab_nbd::Export;
use ssdlab_server::{Address, Server};
use ssdlab_testing::nbd::Client;
use ssdlab_testing::{CAPACITY, Control, DriveOptions, UNIT, engine};
use ssdlab_wire::Limits;

use history::History;
use test_server::TestServer;

/// The errors of each kind of call.
const FAILURES: [(Point, &[Errno]); 6] = [
    (Point::Accept, &[Errno::MFILE, Errno::INTR, Errno::CONNABORTED, Errno::NOMEM]),
    (Point::Thread, &[Errno::AGAIN, Errno::NOMEM]),
    (Point::Memory, &[Errno::NOMEM]),
    (Point::Read, &[Errno::IO, Errno::INTR, Errno::CONNRESET, Errno::AGAIN]),
    (Point::Write, &[Errno::IO, Errno::INTR, Errno::PIPE, Errno::NOSPC]),
    (Point::Wait, &[Errno::INTR, Errno::NOMEM]),
];

/// More than any workload has calls of one kind.
const CALLS_MAX: u64 = 10_000;

fn server() -> TestServer {
    let options = DriveOptions { max_transfer: 512 << 10, ..DriveOptions::default() };
    // Less memory than the longest write needs, so that writes wait for memory.
    let limits = Limits { payload_bytes: 256 << 10, ..Limits::default() };
    TestServer::start(engine(options, Pace::None), limits, None)
}

/// A connection of any protocol.
trait Connection {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()>;
    fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>>;
}

type Connect<'a> = &'a dyn Fn() -> io::Result<Box<dyn Connection>>;

/// Sends a request to the control socket; returns the answer.
fn control_request(server: &TestServer, verb: &str) -> io::Result<String> {
    let line = format!("{{\"do\": \"{verb}\"}}");
    Ok(Control::connect(&server.control)?.try_send(&line)?.to_string())
}

/// Retries an operation: as one call fails, the second attempt must succeed at the latest.
fn retry<T>(what: &str, mut once: impl FnMut() -> io::Result<T>) -> T {
    let mut attempts = (0..3).map(|_| once());
    attempts.find_map(Result::ok).unwrap_or_else(|| panic!("{what} fails repeatedly"))
}

/// Writes of 4 KiB to 1 MiB, each read back, with a flush after every second one. Reconnects after
/// a failed call.
fn run_workload(connect: Connect<'_>, history: &mut History, at: u64) {
    let mut connection = None;
    let mut with = |each: &mut dyn FnMut(&mut dyn Connection) -> io::Result<()>| {
        retry("the workload", || {
            if connection.is_none() {
                connection = Some(connect()?);
            }
            let done = each(&mut **connection.as_mut().expect("made above"));
            if done.is_err() {
                connection = None;
            }
            done
        });
    };
    for (number, length) in [4 << 10, 96 << 10, 300 << 10, 1 << 20].into_iter().enumerate() {
        let range = at..at + length;
        let value = history.next_value();
        with(&mut |connection| {
            history.write_sent(&range, value);
            connection.write(at, &vec![value; length as usize])?;
            history.write_acknowledged(&range, value);
            Ok(())
        });
        if number % 2 == 1 {
            with(&mut |connection| {
                connection.flush()?;
                history.flush_acknowledged();
                Ok(())
            });
        }
        with(&mut |connection| {
            history.check(at, &connection.read(at, length as usize)?);
            Ok(())
        });
    }
}

/// Runs the workload over one protocol with one failure; returns whether the failure happened.
fn run(protocol: &str, plan: Plan) -> bool {
    let served = server();
    let nbd = || Ok(Box::new(Client::go(&served.socket, false)?) as Box<dyn Connection>);
    let nvme = || clients::connect_nvme(&served);
    let connect: Connect<'_> = if protocol == "nbd" { &nbd } else { &nvme };
    let mut history = History::new(CAPACITY, UNIT);
    arm(plan);
    run_workload(connect, &mut history, UNIT);
    let status = retry("the control socket", || control_request(&served, "power"));
    assert!(status.contains("\"on\""), "{status}");
    let has_failed = disarm();
    for other in [&nbd as Connect<'_>, &nvme] {
        let read = other().and_then(|mut other| other.read(0, 2 << 20));
        history.check(0, &read.expect("the server serves other clients"));
    }
    served.server.power_cut(true).expect("the power is on");
    history.power_cut();
    let read = nbd().and_then(|mut after| after.read(0, 2 << 20));
    history.check(0, &read.expect("the server keeps running after a power cut"));
    assert!(control_request(&served, "counters").is_ok());
    has_failed
}

#[test]
fn no_flushed_data_is_lost_if_any_call_of_the_server_fails() {
    let (mut calls, mut injected) = (0, 0);
    for which in ["nbd", "nvme"] {
        for (point, errors) in FAILURES {
            let mut most = 0;
            for errno in errors {
                let plan = |call| Plan { point, call, errno: errno.raw_os_error() };
                let fired = (0..CALLS_MAX).take_while(|call| run(which, plan(*call))).count();
                most = most.max(fired);
                injected += fired;
            }
            println!("{which}: {most} calls of {point:?}, {} errors each", errors.len());
            // Data that is already in the server's buffer needs no further call.
            assert!(most > 0, "{which} has no call of {point:?}");
            calls += most;
        }
    }
    println!("{calls} calls, {injected} failures injected");
    a_delayed_cut_is_refused_without_a_thread();
    a_server_without_a_thread_does_not_start();
}

/// Part of the test above, because failpoints are global to the process.
fn a_delayed_cut_is_refused_without_a_thread() {
    let served = server();
    let mut control = served.control();
    assert_eq!(control.verb("power")["power"], "on");
    arm(Plan { point: Point::Thread, call: 0, errno: Errno::AGAIN.raw_os_error() });
    let refused = control.try_send("{\"do\": \"power-cut\", \"after_s\": 100}").unwrap();
    assert!(refused["error"].as_str().unwrap().contains("no cut is planned"), "{refused}");
    assert!(disarm());
    // The connection stays open.
    assert_eq!(control.verb("power")["power"], "on");
}

fn a_server_without_a_thread_does_not_start() {
    let served = server();
    let folder = tempfile::tempdir().unwrap();
    let socket = Address::Unix(folder.path().join("socket"));
    let engine = served.server.engine().try_clone().unwrap();
    let mut second = Server::new(engine, Export::new("toy", "a toy", CAPACITY, UNIT));
    arm(Plan { point: Point::Thread, call: 0, errno: Errno::AGAIN.raw_os_error() });
    assert!(second.listen_nbd(&socket).is_err());
    assert!(disarm());
    assert!(second.listen_nbd(&socket).is_ok(), "the failed attempt left no socket");
}
