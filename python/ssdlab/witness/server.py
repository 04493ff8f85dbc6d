"""The witness's server: appends each message to a journal, and acknowledges it once it is durable.

One thread per client. The writes on the drive never wait for the server.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.errors import SsdlabError, UsageError
from ssdlab.witness.journal import MAGIC, Batch, Journal, unpack
from ssdlab.witness.ledger import FLUSHED, MESSAGE, decode_messages
from ssdlab.witness.limits import RUN_NAME, SUFFIX
from ssdlab.witness.protocol import NUMBER, Frame, ProtocolError, Session, keep_alive

LOG_BYTES: Final = 1 << 20
"""Largest payload of a LOG frame in bytes."""


class CutTrigger:
    """Calls `cut` once per round, after `choose_count()` acknowledged flushes."""

    def __init__(self, choose_count: Callable[[], int], cut: Callable[[], None]) -> None:
        self._choose_count, self._cut = choose_count, cut
        self._left: int | None = None

    def begin_round(self) -> None:
        """Starts to count the flushes of a new round."""
        self._left = self._choose_count()

    def count(self, messages: bytes) -> None:
        """Counts the flushes among messages just received."""
        if self._left is None:
            return
        self._left -= int((decode_messages(messages)["kind"] == FLUSHED).sum())
        if self._left <= 0:
            self._left = None
            self._cut()


class Server:
    """A running server; `stop` ends it. `log` gets a line for each connection."""

    def __init__(self, folder: Path, secret: bytes, address: tuple[str, int]) -> None:
        """Starts to listen; port 0 takes a free one.

        Raises:
            OSError: the address cannot be bound, or the folder cannot be created.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._secret = folder, secret
        self.log: Callable[[str], None] = lambda _line: None
        self.cut_trigger: CutTrigger | None = None
        self._journals: dict[str, Journal] = {}
        self._guard = threading.Lock()
        self._sessions: set[Session] = set()
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._listener = socket.create_server(address, family=family)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        threading.Thread(target=self._accept, name="listener", daemon=True).start()

    def stop(self) -> None:
        """Closes all connections; acknowledged messages are in the journals."""
        # Only shutdown() wakes a thread that waits in accept().
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
            session.server_handshake(self._secret)
            self._answer(session, name)
        except ProtocolError as error:
            self.log(f"{name}: {error}")
        except SsdlabError as error:
            session.send(Frame.REFUSED, str(error).encode())
        except OSError as error:
            self.log(f"{name}: {error.strerror or error}")
        except (msgspec.DecodeError, KeyError, TypeError, struct.error):
            self.log(f"{name}: received a frame with an invalid payload")
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
            raise ProtocolError(f"received a frame {kind.name}, expected BEGIN")
        request = msgspec.json.decode(payload)
        with self._guard:
            journal = self._journal(request["run"])
            answer = self._begin(journal, request)
        session.send(Frame.WELCOME, msgspec.json.encode(answer))
        self.log(f"{name}: run {request['run'][:8]}, round {answer['round']}, {request['purpose']}")
        self._receive(session, journal, request.get("session"))

    def _begin(self, journal: Journal, request: dict[str, Any]) -> dict[str, Any]:
        if request["purpose"] == "write":
            if journal.is_closed:
                raise UsageError(
                    "this run is closed: its last verification found lost data; begin a new run"
                )
            if request["session"] != journal.session:
                if request["resumes"]:
                    raise UsageError("another writer has begun a round of this run; start again")
                event = {"event": "round", "round": journal.rounds + 1, **request}
                journal.append({**event, "time_s": time.time()})
                journal.sync()
                if self.cut_trigger is not None:
                    self.cut_trigger.begin_round()
        return {"round": journal.rounds, "received": journal.received}

    def _receive(self, session: Session, journal: Journal, name: str | None) -> None:
        """Appends batches and events to the journal until the client disconnects."""
        while True:
            kind, payload = session.receive()
            with self._guard:
                if name is not None and name != journal.session:
                    raise UsageError("another writer has begun a round of this run")
                if kind == Frame.BATCH:
                    self._append_batch(journal, payload)
                elif kind == Frame.EVENT:
                    event = {**msgspec.json.decode(payload), "time_s": time.time()}
                    journal.append({"round": journal.rounds, **event})
                else:
                    raise ProtocolError(f"received a frame {kind.name}, expected BATCH or EVENT")
            journal.sync()
            if kind == Frame.EVENT:
                session.send(Frame.NOTED, b"{}")
            else:
                session.send(Frame.DURABLE, NUMBER.pack(journal.received))

    def _append_batch(self, journal: Journal, payload: bytes) -> None:
        (number,) = NUMBER.unpack_from(payload)
        messages = payload[NUMBER.size :]
        if number != journal.received or len(messages) % MESSAGE.itemsize:
            raise ProtocolError(f"received message {number}, expected {journal.received}")
        journal.append(Batch(time.time(), journal.rounds, number, messages))
        if self.cut_trigger is not None:
            self.cut_trigger.count(messages)

    def _journal(self, run: str) -> Journal:
        if not RUN_NAME.fullmatch(run):
            raise UsageError(f"{run!r} is not a run; a run has 32 hexadecimal digits")
        if run not in self._journals:
            self._journals[run] = Journal(self.folder / f"{run}{SUFFIX}")
        return self._journals[run]

    def _send_journal(self, session: Session, request: dict[str, Any]) -> None:
        path = self._find(request.get("run"), request.get("target"))
        session.send(Frame.WELCOME, msgspec.json.encode({"run": path.stem}))
        data = path.read_bytes()[len(MAGIC) :]
        for at in range(0, len(data), LOG_BYTES):
            session.send(Frame.LOG, data[at : at + LOG_BYTES])
        session.send(Frame.LOG, b"")

    def _find(self, run: str | None, target: str | None) -> Path:
        """The journal of a run, or of the target's newest run."""
        if run is not None:
            path = self.folder / f"{run}{SUFFIX}"
            if not RUN_NAME.fullmatch(run) or not path.exists():
                raise UsageError(f"the witness has no run {run}; leave --run out for the newest")
            return path
        first_rounds = [(_first_round(path), path) for path in self.folder.glob(f"*{SUFFIX}")]
        times = [
            (event["time_s"], path)
            for event, path in first_rounds
            if target in {None, event.get("target")}
        ]
        if not times:
            raise UsageError(f"the witness has no run of {target}; give --run, or write first")
        return max(times)[1]


def _first_round(path: Path) -> dict[str, Any]:
    """The event that begins the first round; for an empty journal, an event with time 0."""
    with path.open("rb") as file:
        head = file.read(len(MAGIC) + (1 << 16))[len(MAGIC) :]
    first = next((record for record, _ in unpack(head)), None)
    return first if isinstance(first, dict) else {"time_s": 0.0}
