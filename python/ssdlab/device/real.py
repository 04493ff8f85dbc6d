"""I/O on real files, block devices and memory by io_uring or pread/pwrite, direct or buffered."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from ssdlab._native import Drive
from ssdlab._native import nop_rate as native_nop_rate
from ssdlab._native import verify as native_verify
from ssdlab.device.kinds import Content, encode
from ssdlab.errors import TargetError

Engine: TypeAlias = Literal["io_uring", "sync"]
_CONTROL: Final = Path("/dev/loop-control")
_GET_FREE: Final = 0x4C82
_CONFIGURE: Final = 0x4C0A  # Linux 5.8
_AUTOCLEAR: Final = 4
# struct loop_config: fd, block_size; loop_info64 (lo_device, inode, rdevice, offset, sizelimit,
# number, encryption (2), flags, names, key, init); reserved.
_CONFIG: Final = struct.Struct("=II 5Q 4I 64s64s32s2Q 64s")
_TRIES: Final = 8


class RealOptions(msgspec.Struct, frozen=True):
    """Options for opening a file or block device, and for submitting requests.

    `batch`: submit requests together and wait for a quarter of those in flight. This saves system
    calls and wake-ups, but raises latencies and may slow a virtual disk. `registered_buffers`: pin
    the buffers once (needs `ulimit -l`); None: if allowed, which `Outcome.engine` shows. `dsync`:
    open with O_DSYNC. `flush`: the call that flushes. `exclusive`: open a block device with O_EXCL.
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
        TargetError: it cannot be opened for direct I/O; there is no fallback to buffered I/O.
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
    """How many bytes of stamped content are as written, and the first 512 bytes that are not.

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


@contextlib.contextmanager
def open_memory(size_bytes: int) -> Iterator[Drive]:
    """A sparse loop device over memory: measures the cost of the host without a drive.

    It disappears with its last user, even after a crash: the memory is a memfd, and the loop device
    is set to autoclear. Source: include/uapi/linux/loop.h.

    Raises:
        TargetError: no loop device can be set up, for example without root.
    """
    try:
        memory = os.memfd_create("ssdlab", os.MFD_CLOEXEC)
    except OSError as error:
        raise _setup_error(error) from error
    try:
        os.ftruncate(memory, size_bytes)
        loop, path = _attach(memory)
    except OSError as error:
        raise _setup_error(error) from error
    finally:
        os.close(memory)  # the loop device holds a reference
    try:
        yield open_real(path)
    finally:
        os.close(loop)


def _setup_error(error: OSError) -> TargetError:
    hint = "" if os.geteuid() == 0 else "; run as root"
    return TargetError(f"a loop device over memory cannot be set up ({error.strerror}){hint}")


def _attach(memory: int) -> tuple[int, Path]:
    """File descriptor and path of a loop device over the memfd; closing it detaches the device."""
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            path = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            loop = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(loop, _CONFIGURE, _configuration(memory))
            except OSError as error:
                os.close(loop)
                if error.errno != errno.EBUSY:  # another program took the device
                    raise
            else:
                return loop, path
    finally:
        os.close(control)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _configuration(memory: int) -> bytes:
    zeros = (0, 0, 0, 0, 0)
    flags = (0, 0, 0, _AUTOCLEAR)
    name = b"ssdlab, in memory"
    return _CONFIG.pack(memory, 0, *zeros, *flags, name, b"", b"", 0, 0, b"")
