"""A loop device over memory: measures the cost of the host without a drive.

It disappears with its last user, even after a crash: the memory is a memfd, and the loop device is
set to autoclear. Source: include/uapi/linux/loop.h.
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
# struct loop_config: fd, block_size; loop_info64 (lo_device, inode, rdevice, offset, sizelimit,
# number, encryption (2), flags, names, key, init); reserved.
_CONFIG: Final = struct.Struct("=II 5Q 4I 64s64s32s2Q 64s")
_TRIES: Final = 8


@contextlib.contextmanager
def open_memory(size_bytes: int) -> Iterator[Drive]:
    """A sparse drive in memory.

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
