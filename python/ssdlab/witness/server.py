"""The witness's server: takes what a drive acknowledged, and makes it durable before it says so.

A thread a client. What arrives while the journal is being synced is synced together: no client
waits for another's round trip, and no write on the drive waits for the server at all.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.errors import SsdlabError, UsageError
from ssdlab.witness.journal import MAGIC, SUFFIX, Batch, Journal, unpack
from ssdlab.witness.ledger import ENTRY, FLUSHED, entries
from ssdlab.witness.protocol import NUMBER, Frame, ProtocolError, Session, keep_alive

RUN_NAME: Final = re.compile(r"[0-9a-f]{32}")
CHUNK: Final = 1 << 20
Teller = Callable[[str], None]


class Watch:
    """Calls `reached` once a round, when so many acknowledged flushes have come in it."""

    def __init__(self, flushes: Callable[[], int], reached: Callable[[], None]) -> None:
        self._next, self._reached = flushes, reached
        self._left: int | None = None

    def begin(self) -> None:
        """A round begins."""
        self._left = self._next()

    def count(self, messages: bytes) -> None:
        """Messages have come."""
        if self._left is None:
            return
        self._left -= int((entries(messages)["kind"] == FLUSHED).sum())
        if self._left <= 0:
            self._left = None
            self._reached()


class Server:
    """A running server; `stop` ends it."""

    def __init__(self, folder: Path, secret: bytes, address: tuple[str, int]) -> None:
        """Listens at once; port 0 takes a free one.

        Raises:
            OSError: the address or the folder cannot be had.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._secret = folder, secret
        self.tell: Teller = lambda _line: None
        self.watch: Watch | None = None
        self._journals: dict[str, Journal] = {}
        self._guard = threading.Lock()
        self._sessions: set[Session] = set()
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._listener = socket.create_server(address, family=family)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        threading.Thread(target=self._accept, name="listener", daemon=True).start()

    def stop(self) -> None:
        """Ends all connections; what was acknowledged is in the journals."""
        # A thread that waits in accept() is woken by shutdown() alone.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._guard:
            for session in self._sessions:
                session.close()
            for journal in self._journals.values():
                journal.sync()
                journal.close()
            self._journals.clear()

    def _accept(self) -> None:
        while True:
            try:
                connection, peer = self._listener.accept()
            except OSError:
                return
            name = f"{peer[0]}:{peer[1]}"
            threading.Thread(target=self._serve, args=(connection, name), daemon=True).start()

    def _serve(self, connection: socket.socket, name: str) -> None:
        keep_alive(connection)
        session = Session(connection)
        with self._guard:
            self._sessions.add(session)
        try:
            session.admit(self._secret)
            self._answer(session, name)
        except ProtocolError as error:
            self.tell(f"{name}: {error}")
        except SsdlabError as error:
            session.send(Frame.REFUSED, str(error).encode())
        except OSError as error:
            self.tell(f"{name}: {error.strerror or error}")
        except (msgspec.DecodeError, KeyError, TypeError, struct.error):
            self.tell(f"{name}: what came is no frame of a witness")
        finally:
            with self._guard:
                self._sessions.discard(session)
            session.close()

    def _answer(self, session: Session, name: str) -> None:
        kind, payload = session.receive()
        if kind == Frame.FETCH:
            self._send_journal(session, msgspec.json.decode(payload))
            return
        if kind != Frame.BEGIN:
            raise ProtocolError(f"a frame {kind.name} where BEGIN was due")
        asked = msgspec.json.decode(payload)
        with self._guard:
            journal = self._journal(asked["run"])
            welcome = self._welcome(journal, asked)
        session.send(Frame.WELCOME, msgspec.json.encode(welcome))
        self.tell(f"{name}: run {asked['run'][:8]}, round {welcome['round']}, {asked['purpose']}")
        self._take(session, journal, asked.get("session"))

    def _welcome(self, journal: Journal, asked: dict[str, Any]) -> dict[str, Any]:
        """Begins a round, goes on with it, or lets a verifier in."""
        if asked["purpose"] == "write":
            if journal.is_closed:
                raise UsageError("this run has lost data: its finding stands; begin a new run")
            if asked["session"] != journal.session:
                if asked["resumes"]:
                    raise UsageError("another writer has begun a round of this run; start anew")
                event = {"event": "round", "round": journal.rounds + 1, **asked}
                journal.append({**event, "time_s": time.time()})
                journal.sync()
                if self.watch is not None:
                    self.watch.begin()
        return {"round": journal.rounds, "received": journal.received}

    def _take(self, session: Session, journal: Journal, name: str | None) -> None:
        """Journals what comes until the client goes."""
        while True:
            kind, payload = session.receive()
            with self._guard:
                if name is not None and name != journal.session:
                    raise UsageError("another writer has begun a round of this run")
                if kind == Frame.BATCH:
                    self._take_batch(journal, payload)
                elif kind == Frame.EVENT:
                    event = {**msgspec.json.decode(payload), "time_s": time.time()}
                    journal.append({"round": journal.rounds, **event})
                else:
                    raise ProtocolError(f"a frame {kind.name} where messages were due")
            journal.sync()
            if kind == Frame.EVENT:
                session.send(Frame.NOTED, b"{}")
            else:
                session.send(Frame.DURABLE, NUMBER.pack(journal.received))

    def _take_batch(self, journal: Journal, payload: bytes) -> None:
        (number,) = NUMBER.unpack_from(payload)
        messages = payload[NUMBER.size :]
        if number != journal.received or len(messages) % ENTRY.itemsize:
            raise ProtocolError(f"message {number} where {journal.received} was due")
        journal.append(Batch(time.time(), journal.rounds, number, messages))
        if self.watch is not None:
            self.watch.count(messages)

    def _journal(self, run: str) -> Journal:
        if not RUN_NAME.fullmatch(run):
            raise UsageError(f"{run!r} is no run: it has 32 hexadecimal digits")
        if run not in self._journals:
            self._journals[run] = Journal(self.folder / f"{run}{SUFFIX}")
        return self._journals[run]

    def _send_journal(self, session: Session, asked: dict[str, Any]) -> None:
        path = self._find(asked.get("run"), asked.get("target"))
        session.send(Frame.WELCOME, msgspec.json.encode({"run": path.stem}))
        data = path.read_bytes()[len(MAGIC) :]
        for at in range(0, len(data), CHUNK):
            session.send(Frame.LOG, data[at : at + CHUNK])
        session.send(Frame.LOG, b"")

    def _find(self, run: str | None, target: str | None) -> Path:
        """The journal of a run, or the newest of a target."""
        if run is not None:
            path = self.folder / f"{run}{SUFFIX}"
            if not RUN_NAME.fullmatch(run) or not path.exists():
                raise UsageError(f"the witness has no run {run}; leave --run out for the newest")
            return path
        begun = [(_beginning(path), path) for path in self.folder.glob(f"*{SUFFIX}")]
        times = [(at["time_s"], path) for at, path in begun if target in {None, at.get("target")}]
        if not times:
            raise UsageError(f"the witness has no run of {target}; give --run, or write first")
        return max(times)[1]


def make_secret(path: Path) -> None:
    """Makes a file with a new secret that its owner alone can read; one that is there stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(fd, "wb") as file:
        file.write(os.urandom(32).hex().encode() + b"\n")


def _beginning(path: Path) -> dict[str, Any]:
    """How a journal's first round begins; of one that holds none yet, a time before all others."""
    with path.open("rb") as file:
        head = file.read(len(MAGIC) + (1 << 16))[len(MAGIC) :]
    first = next((each for each, _ in unpack(head)), None)
    return first if isinstance(first, dict) else {"time_s": 0.0}
