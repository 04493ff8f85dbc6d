"""A served twin's control socket: its counters, and its power."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import msgspec

from ssdlab.errors import TargetError, UsageError

PATIENCE_S: Final = 60.0
"""A server that has not answered by then never will."""


class CutTold(msgspec.Struct, frozen=True):
    """What a power cut did: units that lost writes, those writes, requests never answered."""

    lost_units: int
    lost_writes: int
    unanswered: int


class Power(msgspec.Struct, frozen=True):
    """How a drive's power is: cuts so far, what the last one did, the next that is planned."""

    power: Literal["on", "off"]
    cuts: int
    planned: dict[str, Any] | None = None
    last: CutTold | None = None


class Control:
    """A connection to the control socket of a server.

    Raises:
        UsageError: nobody listens there; in any call: the server refuses what was asked.
        TargetError: in any call: the server has ended.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        try:
            self._socket.connect(self.path)
        except OSError as error:
            self._socket.close()
            raise UsageError(
                f"no server listens on {path} ({error.strerror}); give the control socket of a "
                "running `ssdlab serve`"
            ) from error
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; the server goes on."""
        self._answers.close()
        self._socket.close()

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Sends one request as docs/serve.md has it; None stands for what is not given."""
        given = {key: value for key, value in more.items() if value is not None}
        try:
            self._socket.sendall(msgspec.json.encode({"do": do, **given}) + b"\n")
            line = self._answers.readline()
        except OSError as error:
            reason = error.strerror or error
            raise TargetError(f"{self.path}: the server has ended ({reason})") from error
        if not line:
            raise TargetError(f"{self.path}: the server has ended")
        answer = msgspec.json.decode(line, type=dict[str, Any])
        if "error" in answer:
            raise UsageError(f"{self.path}: {do}: {answer['error']}")
        return answer

    def counters(self) -> dict[str, float | None]:
        """What the drive and its server have counted, by name; None where not known yet."""
        return self.ask("counters")

    def power(self) -> Power:
        """How its power is."""
        return msgspec.convert(self.ask("power"), Power)

    def power_cut(self, *, on: bool = False) -> CutTold:
        """Cuts the power now, under all clients; `on` turns it on again at once."""
        return msgspec.convert(self.ask("power-cut", on=on)["cut"], CutTold)

    def plan_cut(
        self,
        *,
        after_writes: int | None = None,
        after_s: float | None = None,
        random: tuple[int, int] | None = None,
        on: bool = False,
    ) -> dict[str, Any]:
        """Plans a cut: while that write is half way (1 is the next), after a time, or at random.

        `random` is a seed and a number of writes: one of these, some of its way. One of the three
        is given. Returns the plan.
        """
        chance = None if random is None else {"seed": random[0], "writes": random[1]}
        planned = self.ask(
            "power-cut", after_writes=after_writes, after_s=after_s, random=chance, on=on
        )["planned"]
        assert isinstance(planned, dict)
        return planned

    def wait_for_cut(self, cuts: int, *, timeout_s: float = 60.0) -> Power:
        """Waits until there were so many cuts.

        Raises:
            TargetError: they did not come in time.
        """
        end = time.monotonic() + timeout_s
        while (power := self.power()).cuts < cuts:
            if time.monotonic() > end:
                raise TargetError(f"{self.path}: no power cut within {timeout_s:g} s")
            time.sleep(0.002)
        return power

    def power_on(self) -> Power:
        """Turns the power on: clients may come again."""
        return msgspec.convert(self.ask("power-on"), Power)
