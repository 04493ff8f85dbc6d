"""Real files and block devices, by io_uring or one call at a time, past the page cache or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ssdlab._native import Drive
from ssdlab._native import nop_rate as native_nop_rate
from ssdlab._native import verify as native_verify
from ssdlab.device.kinds import Content, encode

Engine: TypeAlias = Literal["io_uring", "sync"]


class RealOptions(msgspec.Struct, frozen=True):
    """How a file or block device is opened, and how requests are put.

    `batch` hands requests over together and waits for a quarter of those in flight: fewer system
    calls and wake-ups, but a virtual disk may do less, and latencies are longer.
    `registered_buffers` pins memory once (`ulimit -l`), and None does where this process may; an
    outcome's engine tells. A drive may be used by another thread only between jobs. `dsync` is
    O_DSYNC, `flush` what a flush is. A block device is opened exclusively if `exclusive`.
    `request_bytes_max` bounds a job's block size.
    """

    direct: bool = True
    writable: bool = True
    exclusive: bool = True
    queue_depth: int = 32
    request_bytes_max: int = 1 << 20
    registered_buffers: bool | None = None
    batch: bool = False
    dsync: bool = False
    flush: Literal["fsync", "fdatasync"] = "fsync"
    content: Content = "incompressible"
    seed: int = 0


def open_real(
    path: Path,
    *,
    queue_depth: int = 32,
    request_bytes_max: int = 1 << 20,
    seed: int = 0,
    writable: bool = True,
) -> Drive:
    """Opens an existing file or block device past the page cache, by io_uring.

    A block device is opened exclusively. What is written is random data of the seed's stream.

    Raises:
        TargetError: it cannot be measured; never a silent fall-back to buffered I/O.
    """
    options = RealOptions(
        queue_depth=queue_depth,
        request_bytes_max=request_bytes_max,
        seed=seed,
        writable=writable,
    )
    return open_engine(path, options)


def open_engine(path: Path, options: RealOptions, engine: Engine = "io_uring") -> Drive:
    """Opens an existing file or block device with every option, by io_uring or pread and pwrite.

    Raises:
        TargetError: it cannot be measured.
        UsageError: no such engine or option.
    """
    return Drive.real(path, encode(options), engine)


def open_null(queue_depth: int = 32) -> Drive:
    """A device that has done every request at once: jobs on it cost what the engine costs."""
    return Drive.null(queue_depth)


def nop_rate(requests: int = 10_000_000) -> float:
    """Requests a second that io_uring does on one core where each does nothing.

    Raises:
        OSError: no io_uring here.
    """
    return native_nop_rate(requests)


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at stamped content found, up to the first 512 bytes that are not as written.

    `offset` is theirs, and `found` their stamp (offset, run, count) where they have one; both are
    None where all is as it was written.
    """

    good_bytes: int
    offset: int | None
    found: tuple[int, int, int] | None


def verify(path: Path, region: tuple[int, int], run: int, *, direct: bool = True) -> Verified:
    """Reads back (offset, length) bytes that a run wrote as `Stamped` content.

    Raises:
        TargetError: it cannot be read.
    """
    return Verified(**native_verify(path, region, run, direct=direct))
