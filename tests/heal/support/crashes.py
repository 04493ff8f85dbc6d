"""All crash points of a heal of an unmounted device: the contents of device and journal after each.

All writes, flushes and removals of the device and its journal are recorded in order. A crash can
follow each of them. Both drives can then lose or corrupt the writes since their last flush. On the
device, some of these writes become garbage: none, the last, the first, or all (a lost write changes
nothing, because it would write the same bytes). The journal has all of them, none, all but the
first, or only half of the sectors of the last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from sample_device import Device

from ssdlab.errors import SsdlabError
from ssdlab.heal.device import whole
from ssdlab.heal.device.whole import recover_device
from ssdlab.heal.options import HealOptions

GARBAGE = b"\xaa"


@dataclass(frozen=True)
class Event:
    """A write, flush or removal on the device or journal; only writes and sizes have data."""

    drive: Literal["device", "journal"]
    what: Literal["write", "size", "flush", "remove"]
    offset: int = 0
    data: bytes = b""


@contextmanager
def record_events(device: Device) -> Iterator[list[Event]]:
    """Records the events inside the block, in order."""
    events: list[Event] = []
    real = {name: getattr(os, name) for name in _RECORDED}

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            event = _event(device, name, arguments)
            result = real[name](*arguments, **named)
            if event is not None:
                events.append(event)
            return result

        return call

    with ExitStack() as undo:
        for name in _RECORDED:
            undo.enter_context(patch.object(os, name, wrapped(name)))
        yield events


_RECORDED = ("pwritev", "pwrite", "fdatasync", "fsync", "posix_fallocate", "unlink")


def _event(device: Device, name: str, arguments: tuple[Any, ...]) -> Event | None:
    """The event of a call; None if it changes neither the device nor the journal."""
    if name == "unlink":
        return Event("journal", "remove") if Path(arguments[0]) == device.journal else None
    path = Path(f"/proc/self/fd/{arguments[0]}").readlink()
    events: dict[tuple[Path, str], Callable[[], Event]] = {
        (device.node, "pwritev"): lambda: Event(
            "device", "write", arguments[2], b"".join(map(bytes, arguments[1]))
        ),
        (device.node, "fdatasync"): lambda: Event("device", "flush"),
        (device.journal, "pwrite"): lambda: Event(
            "journal", "write", arguments[2], bytes(arguments[1])
        ),
        (device.journal, "posix_fallocate"): lambda: Event(
            "journal", "size", 0, bytes(arguments[2])
        ),
        (device.journal, "fsync"): lambda: Event("journal", "flush"),
    }
    make_event = events.get((path, name))
    return None if make_event is None else make_event()


@dataclass(frozen=True)
class Crash:
    """The state after a crash: the journal's content, None if absent, and the garbage writes."""

    journal: bytes | None
    garbage: tuple[Event, ...]


def crashes(events: list[Event]) -> Iterator[Crash]:
    """All distinct states after a crash before the first event, and after each event."""
    yielded = set()
    for end in range(len(events) + 1):
        before = events[:end]
        unflushed = _unflushed(before, "device")
        garbage_choices = {(), tuple(unflushed[-1:]), tuple(unflushed[:1]), tuple(unflushed)}
        for journal in set(_journals(before)):
            for garbage in garbage_choices:
                crash = Crash(journal, garbage)
                key = (journal, garbage)
                if key not in yielded:
                    yielded.add(key)
                    yield crash


def _unflushed(events: list[Event], drive: str) -> list[Event]:
    own = [event for event in events if event.drive == drive]
    last = max((at for at, event in enumerate(own) if event.what == "flush"), default=-1)
    return own[last + 1 :]


def _journals(events: list[Event]) -> Iterator[bytes | None]:
    own = [event for event in events if event.drive == "journal"]
    flushed = len(own) - len(_unflushed(events, "journal"))
    yield _written(own)
    yield _written(own[:flushed])
    if [event.what for event in own[flushed:]].count("write") > 1:
        first = next(at for at in range(flushed, len(own)) if own[at].what == "write")
        yield _written([*own[:first], *own[first + 1 :]])
    if own and own[-1].what == "write":
        last = own[-1]
        half = Event("journal", "write", last.offset, last.data[: len(last.data) // 2 // 512 * 512])
        yield _written([*own[:-1], half])


def _written(events: list[Event]) -> bytes | None:
    content = None
    for event in events:
        if event.what == "remove":
            content = None
        elif event.what == "size":
            content = bytearray((content or b"").ljust(len(event.data), b"\0"))
        elif event.what == "write":
            assert content is not None, "the journal is created with its full size"
            content[event.offset : event.offset + len(event.data)] = event.data
    return None if content is None else bytes(content)


@dataclass
class Tally:
    """Events, crash images checked, those with restored data, and a line for each error."""

    events: int = 0
    images: int = 0
    restored: int = 0
    bad: list[str] = field(default_factory=list)


def check_all(device: Device, options: HealOptions, every: int = 1) -> Tally:
    """Heals the device once; then creates, recovers and compares every Nth crash image."""
    content = device.image.read_bytes()
    with (
        record_events(device) as events,
        patch.object(whole, "current_session", lambda _: "before"),
    ):
        device.heal(options)
    assert device.image.read_bytes() == content, "a heal does not change the content"
    tally = Tally(events=len(events))
    for number, crash in enumerate(crashes(events)):
        if number % every == 0:
            tally.images += 1
            _check(device, crash, content, tally)
    device.check()
    return tally


def _check(device: Device, crash: Crash, expected: bytes, tally: Tally) -> None:
    with device.node.open("r+b", buffering=0) as node:
        for event in crash.garbage:
            os.pwrite(node.fileno(), GARBAGE * len(event.data), event.offset)
        os.fsync(node.fileno())
    if crash.journal is not None:
        device.journal.write_bytes(crash.journal)
        try:
            tally.restored += recover_device(device.node, device.journal).restored_bytes > 0
        except SsdlabError as error:
            tally.bad.append(f"not recovered: {error}")
            device.journal.unlink()
    if (actual := device.image.read_bytes()) != expected:
        at = next(at for at in range(len(expected)) if actual[at] != expected[at])
        journal = "no journal" if crash.journal is None else "a journal"
        tally.bad.append(
            f"byte {at} differs, with {len(crash.garbage)} garbage writes and {journal}"
        )
        device.image.write_bytes(expected)
