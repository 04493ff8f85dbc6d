"""Real files and block devices: by io_uring or pread/pwrite, direct or buffered."""

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
    """Options for opening a file or block device, and for submitting requests.

    `batch`: submit requests together and wait for a quarter of those in flight. This saves system
    calls and wake-ups, but raises latencies and may slow a virtual disk. `registered_buffers`: pin
    the buffers once (needs `ulimit -l`); None: if allowed, which `Outcome.engine` shows. `dsync`:
    open with O_DSYNC. `flush`: the call for a flush. `exclusive`: open a block device with O_EXCL.
    `request_bytes_max`: largest block size of a job. Another thread may use the drive only between
    jobs.
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
    """Opens an existing file or block device for direct I/O by io_uring.

    A block device is opened exclusively. Writes contain random data generated from `seed`.

    Raises:
        TargetError: it cannot be opened, or not for direct I/O: there is no fallback to buffered.
    """
    options = RealOptions(
        queue_depth=queue_depth,
        request_bytes_max=request_bytes_max,
        seed=seed,
        writable=writable,
    )
    return open_engine(path, options)


def open_engine(path: Path, options: RealOptions, engine: Engine = "io_uring") -> Drive:
    """Opens an existing file or block device with all options, by io_uring or pread/pwrite.

    Raises:
        TargetError: it cannot be opened with these options.
        UsageError: unknown engine or option.
    """
    return Drive.real(path, encode(options), engine)


def open_null(queue_depth: int = 32) -> Drive:
    """A device that completes each request at once: measures the cost of the engine itself."""
    return Drive.null(queue_depth)


def nop_rate(requests: int = 10_000_000) -> float:
    """IORING_OP_NOP requests per second on one core.

    Raises:
        OSError: io_uring is not available.
    """
    return native_nop_rate(requests)


@dataclass(frozen=True, slots=True)
class Verified:
    """The bytes of stamped content that are as written, and the first 512 bytes that are not.

    `offset` is the offset of the mismatch, `found` its stamp (offset, run, count) if it has one;
    both are None if everything is as written.
    """

    good_bytes: int
    offset: int | None
    found: tuple[int, int, int] | None


def verify(path: Path, region: tuple[int, int], run: int, *, direct: bool = True) -> Verified:
    """Checks a region (offset, length in bytes) that a run wrote as `Stamped` content.

    Raises:
        TargetError: it cannot be read.
    """
    return Verified(**native_verify(path, region, run, direct=direct))
