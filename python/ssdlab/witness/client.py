"""The writer's side of the witness: messages go out in the order they were made, and none twice.

No caller waits for the network: messages queue up, leave in batches, and are kept until the server
has them on its disk. A connection that is lost is made again, and what the server lacks is sent.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.witness.journal import Record, unpack
from ssdlab.witness.protocol import NUMBER, Frame, ProtocolError, Session, keep_alive

BATCH_MAX: Final = 4096
KEPT_MAX: Final = 200_000
"""So many messages may wait for the server: then the writers wait, too."""
RETRY_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
CONNECT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Witness:
    """Where a witness is, and the secret that it shares."""

    address: tuple[str, int]
    secret: bytes

    def session(self) -> Session:
        """A proven session.

        Raises:
            ProtocolError, OSError: there is no witness, or it does not know the secret.
        """
        connection = socket.create_connection(self.address, timeout=CONNECT_S)
        keep_alive(connection)
        session = Session(connection)
        try:
            session.greet(self.secret)
        except BaseException:
            session.close()
            raise
        return session

    def reach(self) -> Session:
        """As `session`, for a first contact.

        Raises:
            UsageError: it cannot be reached, or the secret is wrong.
        """
        host, port = self.address
        try:
            return self.session()
        except OSError as error:
            raise UsageError(
                f"the witness {host}:{port} cannot be used ({error.strerror or error}); start "
                "`ssdlab witness serve` there, and give --secret the file that it made"
            ) from error

    def records(self, run: str | None, target: str | None) -> tuple[str, list[Record]]:
        """A run's name and its journal; without a name the newest run of a target.

        Raises:
            UsageError: there is none, or the witness cannot be reached.
        """
        session = self.reach()
        try:
            found = session.ask(Frame.FETCH, {"run": run, "target": target}, Frame.WELCOME)
            data = bytearray()
            while part := session.expect(Frame.LOG):
                data += part
        except OSError as error:
            raise UsageError(f"the witness went away ({error}); try again") from error
        finally:
            session.close()
        return found["run"], [record for record, _ in unpack(bytes(data))]

    def note(self, run: str, event: dict[str, Any]) -> None:
        """Journals an event of a run.

        Raises:
            UsageError: the witness cannot be reached.
        """
        session = self.reach()
        try:
            session.ask(Frame.BEGIN, {"run": run, "purpose": "verify"}, Frame.WELCOME)
            session.ask(Frame.EVENT, event, Frame.NOTED)
        except OSError as error:
            raise UsageError(f"the witness went away ({error}); try again") from error
        finally:
            session.close()


class Link:
    """A round's stream of messages to the witness."""

    def __init__(self, witness: Witness, begin: dict[str, Any]) -> None:
        """Begins a round; `begin` names run and session and describes the target.

        Raises:
            UsageError: the witness cannot be reached or refuses.
        """
        self._witness, self._begin = witness, {"purpose": "write", "resumes": False, **begin}
        self._kept: deque[bytes] = deque()
        self._first = self._sent = 0
        self._changed = threading.Condition()
        self._closing = False
        self.failure: UsageError | None = None
        self.reconnects = -1
        session = witness.reach()
        try:
            self.round: int = self._welcome(session)
        except OSError as error:
            session.close()
            raise UsageError(f"the witness went away ({error}); try again") from error
        except UsageError:
            session.close()
            raise
        self._thread = threading.Thread(target=self._run, args=(session,), daemon=True)
        self._thread.start()

    def tell(self, message: bytes) -> None:
        """Queues a message; waits only where the server has been away for very long.

        Raises:
            UsageError: the witness has refused to go on.
        """
        with self._changed:
            while len(self._kept) >= KEPT_MAX and self.failure is None:
                self._changed.wait()
            if self.failure is not None:
                raise self.failure
            self._kept.append(message)
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Messages that the witness has not yet made durable."""
        return len(self._kept)

    def drain(self, timeout_s: float) -> bool:
        """Waits until the witness has all; False where it has not by then."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._kept or self.failure is not None, timeout_s
            )

    def close(self) -> None:
        """Ends; what the witness has not got by now it never gets."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self, first: Session) -> None:
        """Streams, and connects again where the connection is lost, until closed or refused."""
        session: Session | None = first
        pause = iter(RETRY_S)
        while not self._is_closing():
            try:
                if session is None:
                    session = self._witness.session()
                    self._begin["resumes"] = True
                    self._welcome(session)
                    pause = iter(RETRY_S)
                self._stream(session)
            except UsageError as error:
                if session is not None:
                    session.close()
                self._fail(error)
                return
            except OSError:
                if session is not None:
                    session.close()
                session = None
                with self._changed:
                    self._changed.wait_for(self._is_closing, next(pause, RETRY_S[-1]))

    def _is_closing(self) -> bool:
        return self._closing

    def _fail(self, error: UsageError) -> None:
        with self._changed:
            self.failure = error
            self._changed.notify_all()

    def _welcome(self, session: Session) -> int:
        welcome = session.ask(Frame.BEGIN, self._begin, Frame.WELCOME)
        with self._changed:
            self._forget(welcome["received"])
            self._sent = self._first
            self.reconnects += 1
        return int(welcome["round"])

    def _stream(self, session: Session) -> None:
        """Sends what there is, one batch on its way at a time; returns when closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._kept)
                if self._closing:
                    session.close()
                    return
                batch = [self._kept[at] for at in range(min(len(self._kept), BATCH_MAX))]
                number = self._first
            session.send(Frame.BATCH, NUMBER.pack(number) + b"".join(batch))
            (durable,) = NUMBER.unpack(session.expect(Frame.DURABLE))
            with self._changed:
                self._forget(durable)

    def _forget(self, durable: int) -> None:
        """Drops what the server has on its disk."""
        if not self._first <= durable <= self._first + len(self._kept):
            raise ProtocolError(f"the witness has {durable} messages, and was never sent them")
        while self._first < durable:
            self._kept.popleft()
            self._first += 1
        self._changed.notify_all()
