//! Each thread start, allocation, accept, receive, send and wait of the server fails once, in turn,
//! while a client writes, flushes and reads. Flushed data is kept, and the server keeps running.

mod history;
mod nbd;
mod nvme;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ssdlab_engine::Engine;
use ssdlab_engine::failpoints::{Plan, Point, arm, disarm};
use ssdlab_nbd::Export;
use ssdlab_server::{Address, Server};
use ssdlab_wire::Limits;
use tempfile::TempDir;

use history::History;
use ssdlab_testing::{CAPACITY, DriveOptions, FakeDrive, UNIT};

/// The errors of each kind of call.
const FAILURES: [(Point, &[i32]); 6] = [
    (Point::Accept, &[EMFILE, EINTR, ECONNABORTED, ENOMEM]),
    (Point::Thread, &[EAGAIN, ENOMEM]),
    (Point::Memory, &[ENOMEM]),
    (Point::Read, &[EIO, EINTR, ECONNRESET, EAGAIN]),
    (Point::Write, &[EIO, EINTR, EPIPE, ENOSPC]),
    (Point::Wait, &[EINTR, ENOMEM]),
];
const EINTR: i32 = 4;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EPIPE: i32 = 32;
const ECONNABORTED: i32 = 103;
const ECONNRESET: i32 = 104;

/// A server that hangs fails the test.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// More than any workload has calls of one kind.
const CALLS_MAX: u64 = 10_000;

/// A server with a fake drive, NBD and `NVMe`.
struct TestServer {
    server: Server,
    socket: PathBuf,
    control: PathBuf,
    nvme: SocketAddr,
    name: String,
    _folder: TempDir,
}

impl TestServer {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::in_memory(FakeDrive::new(DriveOptions {
            max_transfer: 512 << 10,
            ..DriveOptions::default()
        }));
        let export = Export::new("toy", "a toy", CAPACITY, UNIT);
        // Less memory than the longest write needs, so that writes wait for memory.
        let limits = Limits { payload_bytes: 256 << 10, ..Limits::default() };
        let mut server = Server::with_limits(engine, export, limits);
        let (socket, control) = (folder.path().join("socket"), folder.path().join("control"));
        server.listen_nbd(&Address::Unix(socket.clone())).unwrap();
        server.listen_control(&control).unwrap();
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let (address, identity) = server.listen_nvme_tcp(&any, "test", None).unwrap();
        let Address::Tcp(nvme) = address else { unreachable!("the address has a port") };
        Self { server, socket, control, nvme, name: identity.subnqn, _folder: folder }
    }
}

/// A connection of any protocol.
trait Connection {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn flush(&mut self) -> io::Result<()>;
    fn read(&mut self, offset: u64, length: usize) -> io::Result<Vec<u8>>;
}

type Connect<'a> = &'a dyn Fn() -> io::Result<Box<dyn Connection>>;

/// Sends a request to the control socket; returns the answer.
fn control_request(control: &Path, verb: &str) -> io::Result<String> {
    let stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    (&stream).write_all(format!("{{\"do\": \"{verb}\"}}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(answer) }
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
    let served = TestServer::new();
    let nbd = || nbd::connect(&served.socket);
    let nvme = || nvme::connect(served.nvme, &served.name);
    let connect: Connect<'_> = if protocol == "nbd" { &nbd } else { &nvme };
    let mut history = History::new(CAPACITY, UNIT);
    arm(plan);
    run_workload(connect, &mut history, UNIT);
    let status = retry("the control socket", || control_request(&served.control, "power"));
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
    assert!(control_request(&served.control, "counters").is_ok());
    has_failed
}

#[test]
fn no_flushed_data_is_lost_if_any_call_of_the_server_fails() {
    let (mut calls, mut injected) = (0, 0);
    for which in ["nbd", "nvme"] {
        for (point, errors) in FAILURES {
            let mut most = 0;
            for errno in errors {
                let plan = |call| Plan { point, call, errno: *errno };
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
    let served = TestServer::new();
    let mut control = UnixStream::connect(&served.control).unwrap();
    control.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut ask = |line: &str| {
        control.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(&control).read_line(&mut answer).unwrap();
        answer
    };
    assert!(ask("{\"do\": \"power\"}").contains("on"));
    arm(Plan { point: Point::Thread, call: 0, errno: EAGAIN });
    let refused = ask("{\"do\": \"power-cut\", \"after_s\": 100}");
    assert!(refused.contains("no cut is planned"), "{refused}");
    assert!(disarm());
    assert!(ask("{\"do\": \"power\"}").contains("on"), "the connection stays open");
}

fn a_server_without_a_thread_does_not_start() {
    let served = TestServer::new();
    let folder = tempfile::tempdir().unwrap();
    let socket = Address::Unix(folder.path().join("socket"));
    let engine = served.server.engine().try_clone().unwrap();
    let mut second = Server::new(engine, Export::new("toy", "a toy", CAPACITY, UNIT));
    arm(Plan { point: Point::Thread, call: 0, errno: EAGAIN });
    assert!(second.listen_nbd(&socket).is_err());
    assert!(disarm());
    assert!(second.listen_nbd(&socket).is_ok(), "the failed attempt left no socket");
}
