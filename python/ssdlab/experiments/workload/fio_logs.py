"""fio's logs (`write_bw_log`, `write_iops_log`, `write_lat_log`) as columns of `records.INTERVALS`.

A line is time in ms, value, direction (0 read, 1 write, 2 trim), block size, and more. Without
`log_avg_msec` each request has a line, whose fourth number is its size. With it a line is the mean
of a period: the rate in KiB/s (bw), requests/s (iops), or the latency in ns (lat), and its block
size is 0. Then requests need the log of iops and bytes that of bw, or either and the job's `bs`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from ssdlab.device.fio.text import size_bytes
from ssdlab.errors import UsageError
from ssdlab.input_files import read_text

PERIOD_MS: Final = 100
"""The intervals into which the lines of single requests are counted."""
KINDS: Final = ("bw", "iops", "lat", "clat")
_NAME: Final = re.compile(r"(?P<name>.+)_(?P<kind>bw|iops|lat|clat|slat)(\.(?P<job>\d+))?\.log")
_OPS: Final = ("read", "write", "trim")
_COUNTS: Final = {"read": "reads", "write": "writes", "trim": "trims"}


class Entry(NamedTuple):
    """A line of a log; `bytes` is 0 if it is the mean of a period."""

    ms: int
    value: float
    op: str
    bytes: int


@dataclass
class LogSet:
    """The logs of a job: the lines of each kind, of all threads."""

    name: str = ""
    files: dict[str, list[list[Entry]]] = field(default_factory=dict)
    """By kind, the lines of each thread."""

    @property
    def end_ms(self) -> int:
        """The time of the last line."""
        return max((rows[-1].ms for logs in self.files.values() for rows in logs), default=0)

    @property
    def single(self) -> str | None:
        """A kind of log that has a line for each request; None without one."""
        for kind in ("lat", "clat", "bw", "iops"):
            logs = self.files.get(kind, [])
            if logs and all(entry.bytes for rows in logs for entry in rows):
                return kind
        return None

    def bins(self, op: str) -> dict[int, int]:
        """Number of requests by latency in ns, from a log of single requests; {} without one."""
        if self.single not in {"lat", "clat"}:
            return {}
        rows = [entry for log in self.files[self.single] for entry in log if entry.op == op]
        return dict(Counter(round(entry.value) for entry in rows))


def logs_of_job(folder: Path, options: Mapping[str, str], threads: Iterable[int]) -> LogSet:
    """The logs that a job's options name, of the threads with these numbers, in `folder`.

    Raises:
        UsageError: a log is not one of fio's.
    """
    found = LogSet()
    for kind, option in (("bw", "bw"), ("iops", "iops"), ("lat", "lat"), ("clat", "lat")):
        prefix = options.get(f"write_{option}_log")
        if not prefix:
            continue
        names = [f"{Path(prefix).name}_{kind}.{number}.log" for number in threads]
        for name in [*names, f"{Path(prefix).name}_{kind}.log"]:
            if (folder / name).is_file() and (rows := _read(folder / name, "check the file")):
                found.files.setdefault(kind, []).append(rows)
    return found


def logs_of(path: Path, hint: str) -> LogSet:
    """The log at `path`, and the others of the same name in its folder.

    Raises:
        UsageError: it is not a log of fio; the message ends with `hint`.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise UsageError(f"{path} is not a result of fio; {hint}")
    found = LogSet(match["name"])
    for other in sorted(path.parent.iterdir()):
        same = _NAME.fullmatch(other.name)
        if same is None or same["name"] != match["name"] or same["kind"] not in KINDS:
            continue
        if rows := _read(other, hint):
            found.files.setdefault(same["kind"], []).append(rows)
    return found


def _read(path: Path, hint: str) -> list[Entry]:
    try:
        lines = read_text(path).splitlines()
        return [_entry(line) for line in lines if line.strip()]
    except (OSError, ValueError, IndexError) as error:
        raise UsageError(f"{path} is not a log of fio ({error}); {hint}") from error


def _entry(line: str) -> Entry:
    ms, value, op, size, *_ = (word.strip() for word in line.split(","))
    return Entry(int(ms), float(value), _OPS[int(op)], int(size))


def intervals_of(logs: LogSet, start_ns: int, options: Mapping[str, str]) -> dict[str, Any]:
    """The logs as columns; {} if they do not give both requests and bytes."""
    if (kind := logs.single) is not None:
        return _columns(_counted(logs.files[kind]), start_ns)
    block = size_bytes(options.get("bs", options.get("blocksize", "")))
    requests, moved = _sums(logs.files.get("iops", []), 1), _sums(logs.files.get("bw", []), 1024)
    if not requests and moved and block:
        requests = {key: value / block for key, value in moved.items()}
    if not moved and requests and block:
        moved = {key: value * block for key, value in requests.items()}
    if not requests or not moved:
        return {}
    keys = requests.keys() | moved.keys()
    return _columns({key: (requests.get(key, 0.0), moved.get(key, 0.0)) for key in keys}, start_ns)


Sums = dict[tuple[int, str], tuple[float, float]]
"""Requests and bytes by the start of the interval in ms and the operation."""


def _counted(logs: list[list[Entry]]) -> Sums:
    sums: Sums = {}
    for entry in (entry for rows in logs for entry in rows):
        key = (entry.ms // PERIOD_MS * PERIOD_MS, entry.op)
        requests, moved = sums.get(key, (0.0, 0.0))
        sums[key] = (requests + 1, moved + entry.bytes)
    return sums


def _sums(logs: list[list[Entry]], scale: int) -> dict[tuple[int, str], float]:
    """Means of periods, times their lengths: by the start of the period, over all threads."""
    sums: dict[tuple[int, str], float] = {}
    for rows in logs:
        period = _period(rows)
        last: dict[str, int] = {}
        for entry in rows:
            before = last.get(entry.op, 0)
            key = (round(before / period) * period, entry.op)
            amount = entry.value * scale * (entry.ms - before) / 1e3
            sums[key] = sums.get(key, 0.0) + amount
            last[entry.op] = entry.ms
    return sums


def _period(rows: list[Entry]) -> int:
    """The period of a log in ms, the same for logs of one job: their lines are some ms late."""
    times = sorted({entry.ms for entry in rows})
    gaps = sorted(later - earlier for earlier, later in zip([0, *times], times, strict=False))
    middle = gaps[len(gaps) // 2] if gaps else PERIOD_MS
    return max(1, round(middle, -1) or middle)


def _columns(sums: Sums, start_ns: int) -> dict[str, Any]:
    rows = []
    for ms in sorted({ms for ms, _ in sums}):
        by_op = {op: sums.get((ms, op), (0.0, 0.0)) for op in _OPS}
        row = {_COUNTS[op]: round(requests) for op, (requests, _) in by_op.items()}
        rows.append(
            {
                "start_ns": start_ns + ms * 1_000_000,
                "requests": sum(row.values()),
                "bytes": round(sum(moved for _, moved in by_op.values())),
                **row,
                "flushes": 0,
                "read_bytes": round(by_op["read"][1]),
                "write_bytes": round(by_op["write"][1]),
                "errors": 0,
            }
        )
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
