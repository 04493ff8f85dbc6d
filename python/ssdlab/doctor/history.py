"""A drive's history: what `ssdlab doctor --remember` keeps of it, and what has changed since.

One JSON file for each drive in $XDG_STATE_HOME/ssdlab/drives (by default ~/.local/state), named by
a hash of its model and serial number; the serial number itself is not stored. It has `version`,
`model`, `size_bytes` and `entries`, oldest first: the time, and the numbers of `Entry` that were
known. The first entry and the latest `MOST - 1` are kept.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from ssdlab.doctor.checks.files import reference_mib_per_s
from ssdlab.doctor.checks.verdict import is_buffered_loop
from ssdlab.errors import UsageError
from ssdlab.input_files import read_bytes
from ssdlab.records import write_whole
from ssdlab.snapshot import Device, Snapshot

VERSION: Final = 1
MOST: Final = 400
MONTH: Final = timedelta(days=30)
MONTH_RANGE: Final = (timedelta(days=20), timedelta(days=45))
"""The age of an entry that represents a month ago."""
SLOWER: Final = 0.75
"""Reads are slower than before below this share of their speed: a read map varies by less."""
MONTHS_LEFT_MIN: Final = 12.0
"""A drive that reaches its endurance sooner wears too fast."""
WEAR_LEAST: Final = 2.0
"""Percentage points of wear from which its rate is known: drives report whole points."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One observation of a drive: the time in UTC, and the known numbers, as in `snapshot.Health`.

    `read_mib_per_s` is the speed of the fast parts of the files that were read.
    """

    when: str
    firmware: str | None = None
    worn: float | None = None
    spare_blocks: float | None = None
    media_errors: int | None = None
    pending: int | None = None
    reallocated: int | None = None
    link_errors: int | None = None
    unsafe_shutdowns: int | None = None
    hot_minutes: int | None = None
    power_on_hours: int | None = None
    temperature_c: float | None = None
    host_bytes: int | None = None
    flash_bytes: int | None = None
    read_mib_per_s: float | None = None

    @property
    def at(self) -> datetime:
        """The time."""
        return datetime.fromisoformat(self.when)


class History(msgspec.Struct, frozen=True):
    """The file of a drive."""

    model: str
    size_bytes: int | None
    entries: tuple[Entry, ...]
    version: int = VERSION


class Regression(msgspec.Struct, frozen=True):
    """Something that has become worse: a sentence with both values."""

    name: str
    says: str


class Changes(msgspec.Struct, frozen=True):
    """A drive now and before; `last`, `month_ago` and `first` are None without such an entry."""

    drive: str
    file: str
    now: Entry
    last: Entry | None
    month_ago: Entry | None
    first: Entry | None
    months_left: float | None
    regressions: tuple[Regression, ...]


@dataclass(frozen=True)
class _Rule:
    """A number that must not grow (or fall, if `falls`); `least` is the change that counts."""

    name: str
    label: str
    falls: bool = False
    least: float = 1.0


_RULES: Final = (
    _Rule("media_errors", "uncorrectable errors"),
    _Rule("pending", "sectors waiting to be reallocated"),
    _Rule("reallocated", "reallocated blocks"),
    _Rule("link_errors", "cable errors"),
    _Rule("spare_blocks", "spare blocks in percent", falls=True),
)


def folder() -> Path:
    """Where histories are kept."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "ssdlab" / "drives"


def file_of(drive: Device) -> Path | None:
    """The file of a drive; None if it names no serial number, which identifies it."""
    if not drive.serial:
        return None
    identity = f"{drive.model or ''}\n{drive.serial}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    word = re.sub(r"[^a-z0-9]+", "-", (drive.model or "drive").lower()).strip("-")[:40]
    return folder() / f"{word or 'drive'}-{digest}.json"


def entry_of(snapshot: Snapshot, drive: Device, when: datetime) -> Entry:
    """The numbers of a drive in a snapshot; the speed of reads only if it is the only drive."""
    health = drive.health
    known = {
        name: getattr(health, name)
        for name in Entry.__struct_fields__
        if health is not None and hasattr(health, name)
    }
    alone = len(snapshot.drives) == 1 and not any(map(is_buffered_loop, snapshot.devices))
    celsius = drive.temperature_c
    return Entry(
        when=when.astimezone(UTC).isoformat(timespec="seconds"),
        firmware=drive.firmware,
        read_mib_per_s=reference_mib_per_s(snapshot.files) if alone else None,
        **{**known, **({} if celsius is None else {"temperature_c": celsius})},
    )


def remember(snapshot: Snapshot, when: datetime) -> tuple[list[Changes], list[str]]:
    """Adds an entry to the history of each drive; the changes, and why a drive has none.

    Raises:
        UsageError: a file cannot be read or written.
    """
    changes, left_out = [], []
    for drive in snapshot.drives:
        path = file_of(drive)
        if path is None:
            left_out.append(
                f"{drive.name_and_model} reports no serial number, so it has no history"
            )
            continue
        before = read_history(path)
        entries = () if before is None else before.entries
        now = entry_of(snapshot, drive, when)
        changes.append(changes_since(drive.name_and_model, path, entries, now))
        kept = (*entries[:1], *entries[1:][-(MOST - 2) :], now)
        _write(path, History(drive.model or "", drive.size_bytes, kept))
    return changes, left_out


def read_history(path: Path) -> History | None:
    """The history in a file; None if there is no file.

    Raises:
        UsageError: it is not a history, or one of a later version.
    """
    try:
        history = msgspec.json.decode(read_bytes(path), type=History)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path} is not a drive's history ({error}); move it away") from error
    if history.version != VERSION:
        raise UsageError(
            f"{path} has version {history.version}, and this ssdlab writes {VERSION}; use a newer "
            "ssdlab, or move the file away"
        )
    return history


def _write(path: Path, history: History) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, msgspec.json.format(msgspec.json.encode(history), indent=1) + b"\n")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror}); set XDG_STATE_HOME to a directory with "
            "write permission"
        ) from error


def changes_since(drive: str, path: Path, entries: Sequence[Entry], now: Entry) -> Changes:
    """The earlier entries that `now` is compared with, and what has become worse."""
    last = entries[-1] if entries else None
    first = entries[0] if entries else None
    month_ago = _month_ago(entries, now)
    months_left = _months_left(entries, now)
    return Changes(
        drive=drive,
        file=str(path),
        now=now,
        last=last,
        month_ago=month_ago,
        first=first,
        months_left=months_left,
        regressions=tuple(_regressions(now, entries, month_ago, months_left)),
    )


def _month_ago(entries: Sequence[Entry], now: Entry) -> Entry | None:
    """The entry nearest to a month ago; None if none is near."""
    least, most = MONTH_RANGE
    near = [entry for entry in entries if least <= now.at - entry.at <= most]
    return min(near, key=lambda entry: abs(now.at - entry.at - MONTH), default=None)


def _months_left(entries: Sequence[Entry], now: Entry) -> float | None:
    """Months until the rated endurance is used up, at the rate since the first entry.

    None if wear is not known, or has not advanced far enough for a rate.
    """
    first = next((entry for entry in entries if entry.worn is not None), None)
    if first is None or first.worn is None or now.worn is None:
        return None
    points, elapsed = now.worn - first.worn, now.at - first.at
    if points < WEAR_LEAST or elapsed < timedelta(days=1):
        return None
    return max(0.0, 100.0 - now.worn) / points * (elapsed / MONTH)


def _last_with(entries: Sequence[Entry], name: str) -> Entry | None:
    """The latest entry in which a number is known: without root, health is not."""
    return next((each for each in reversed(entries) if getattr(each, name) is not None), None)


def _regressions(
    now: Entry, entries: Sequence[Entry], month_ago: Entry | None, months_left: float | None
) -> Iterator[Regression]:
    for rule in _RULES:
        last, value = _last_with(entries, rule.name), getattr(now, rule.name)
        if last is None or value is None:
            continue
        before = getattr(last, rule.name)
        change = before - value if rule.falls else value - before
        if change >= rule.least:
            says = f"{rule.label}: {before:g} on {last.when[:10]}, {value:g} now"
            yield Regression(rule.name, says)
    last = _last_with(entries, "read_mib_per_s")
    for earlier in dict.fromkeys(entry for entry in (last, month_ago) if entry is not None):
        speed, before_speed = now.read_mib_per_s, earlier.read_mib_per_s
        if speed is not None and before_speed and speed < SLOWER * before_speed:
            says = f"reads: {before_speed:.4g} MiB/s on {earlier.when[:10]}, {speed:.4g} MiB/s now"
            yield Regression("read_mib_per_s", says)
            break
    if months_left is not None and months_left < MONTHS_LEFT_MIN:
        says = (
            f"wear: at its rate so far the rated endurance is used up in {months_left:.1f} months"
        )
        yield Regression("worn", says)
