"""A drive in memory: a loop device over memory, that shows what the host takes without a drive.

It is gone with its last user, however that ends: the memory has no name, and the loop device
detaches itself (autoclear). Source: include/uapi/linux/loop.h.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ssdlab._native import Drive
from ssdlab.device.real import open_real
from ssdlab.errors import TargetError

_CONTROL: Final = Path("/dev/loop-control")
_GET_FREE: Final = 0x4C82
_CONFIGURE: Final = 0x4C0A  # Linux 5.8
_AUTOCLEAR: Final = 4
# fd, block size; then lo_device, inode, rdevice, offset, sizelimit, number, encryption (2), flags,
# names, key, init; then what is reserved.
_CONFIG: Final = struct.Struct("=II 5Q 4I 64s64s32s2Q 64s")
_TRIES: Final = 8


@contextlib.contextmanager
def open_memory(size_bytes: int) -> Iterator[Drive]:
    """A drive of this size in memory; only what is written takes some.

    Raises:
        TargetError: no loop device can be had: it takes root.
    """
    try:
        memory = os.memfd_create("ssdlab", os.MFD_CLOEXEC)
    except OSError as error:
        raise _refused(error) from error
    try:
        os.ftruncate(memory, size_bytes)
        loop, path = _attached(memory)
    except OSError as error:
        raise _refused(error) from error
    finally:
        os.close(memory)  # the loop device keeps it
    try:
        yield open_real(path)
    finally:
        os.close(loop)


def _refused(error: OSError) -> TargetError:
    root = "" if os.geteuid() == 0 else ", which takes root"
    return TargetError(f"no loop device over memory can be had{root} ({error.strerror})")


def _attached(memory: int) -> tuple[int, Path]:
    """A loop device over it, held open so that it stays, and its path."""
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            path = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            loop = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(loop, _CONFIGURE, _configuration(memory))
            except OSError as error:
                os.close(loop)
                if error.errno != errno.EBUSY:  # another program was faster
                    raise
            else:
                return loop, path
    finally:
        os.close(control)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _configuration(memory: int) -> bytes:
    places = (0, 0, 0, 0, 0)
    flags = (0, 0, 0, _AUTOCLEAR)
    name = b"ssdlab, in memory"
    return _CONFIG.pack(memory, 0, *places, *flags, name, b"", b"", 0, 0, b"")
