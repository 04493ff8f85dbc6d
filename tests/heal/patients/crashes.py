"""All crash points of a heal of a device at rest: what the device and the journal hold at each.

Every write, flush and removal that a heal does to the device and to its journal is recorded, in
order. A crash may come after each. Then both drives may have lost, or spoilt, what they were not
yet told to flush: for the device some writes become garbage (none, the last, the first, all of
them; old and new bytes are the same, so a write that is merely lost changes nothing); the journal
has all, has none since its last flush, lacks the first write since then, or has half of the sectors
of its last write.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from devices import Device

from ssdlab.errors import SsdlabError
from ssdlab.heal.device import whole
from ssdlab.heal.device.whole import recover_device
from ssdlab.heal.options import Wish

GARBAGE = b"\xaa"


@dataclass(frozen=True)
class Event:
    """One change of the device or of the journal; a flush and a removal have no data."""

    drive: Literal["device", "journal"]
    what: Literal["write", "size", "flush", "remove"]
    offset: int = 0
    data: bytes = b""


@contextmanager
def recorded(device: Device) -> Iterator[list[Event]]:
    """The events of the block, as they come."""
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
    """What a call does to one of the two drives; None: nothing, or it is of another file."""
    if name == "unlink":
        return Event("journal", "remove") if Path(arguments[0]) == device.journal else None
    path = Path(f"/proc/self/fd/{arguments[0]}").readlink()
    made: dict[tuple[Path, str], Callable[[], Event]] = {
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
    make = made.get((path, name))
    return None if make is None else make()


@dataclass(frozen=True)
class Crash:
    """What is left: the journal's content, None if it is not there, and spoilt writes."""

    journal: bytes | None
    spoilt: tuple[Event, ...]


def crashes(events: list[Event]) -> Iterator[Crash]:
    """What may be left after a crash behind each event, and before the first; each once."""
    seen = set()
    for end in range(len(events) + 1):
        before = events[:end]
        waiting = _unflushed(before, "device")
        spoilt = {(), tuple(waiting[-1:]), tuple(waiting[:1]), tuple(waiting)}
        for journal in set(_journals(before)):
            for each in spoilt:
                crash = Crash(journal, each)
                key = (journal, each)
                if key not in seen:
                    seen.add(key)
                    yield crash


def _unflushed(events: list[Event], drive: str) -> list[Event]:
    own = [event for event in events if event.drive == drive]
    last = max((at for at, event in enumerate(own) if event.what == "flush"), default=-1)
    return own[last + 1 :]


def _journals(events: list[Event]) -> Iterator[bytes | None]:
    own = [event for event in events if event.drive == "journal"]
    lost = len(own) - len(_unflushed(events, "journal"))
    yield _written(own)
    yield _written(own[:lost])
    if [event.what for event in own[lost:]].count("write") > 1:
        first = next(at for at in range(lost, len(own)) if own[at].what == "write")
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
            assert content is not None, "it is made with all its blocks"
            content[event.offset : event.offset + len(event.data)] = event.data
    return None if content is None else bytes(content)


@dataclass
class Tally:
    """Crash images that were checked, those with something to put back, and what was wrong."""

    events: int = 0
    images: int = 0
    restored: int = 0
    bad: list[str] = field(default_factory=list)


def check_all(device: Device, wish: Wish, every: int = 1) -> Tally:
    """Heals the device once; then makes, recovers and compares every so many crash image."""
    whole_before = device.image.read_bytes()
    with recorded(device) as events, patch.object(whole, "session_of", lambda _: "before"):
        device.heal(wish)
    assert device.image.read_bytes() == whole_before, "the content is the same, bytes or not"
    tally = Tally(events=len(events))
    for number, crash in enumerate(crashes(events)):
        if number % every == 0:
            tally.images += 1
            _check(device, crash, whole_before, tally)
    device.check()
    return tally


def _check(device: Device, crash: Crash, wanted: bytes, tally: Tally) -> None:
    with device.node.open("r+b", buffering=0) as node:
        for event in crash.spoilt:
            os.pwrite(node.fileno(), GARBAGE * len(event.data), event.offset)
        os.fsync(node.fileno())
    if crash.journal is not None:
        device.journal.write_bytes(crash.journal)
        try:
            tally.restored += recover_device(device.node, device.journal).restored_bytes > 0
        except SsdlabError as error:
            tally.bad.append(f"not recovered: {error}")
            device.journal.unlink()
    if (found := device.image.read_bytes()) != wanted:
        at = next(at for at in range(len(wanted)) if found[at] != wanted[at])
        has = "no journal" if crash.journal is None else "a journal"
        tally.bad.append(f"byte {at} differs, with {len(crash.spoilt)} spoilt writes and {has}")
        device.image.write_bytes(wanted)
