"""ext4: EXT4_IOC_MOVE_EXT exchanges a file's blocks for a donor's, with the data, under its locks.

The kernel copies page by page through the page cache, each exchange in a transaction that also
pins the data (fs/ext4/move_extent.c), so a concurrent writer and a power cut find either place,
never a mixture. Trap: of a folio of many pages that is in the cache, each page but the first waits
for a commit that the kernel forces (seen: 11 ms a page, 16 MiB in 33 s). Taken from the cache
before, it is read anew by single pages, and 16 MiB take 0.1 s.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import time
from typing import Final

from ssdlab.errors import DeviceFailure
from ssdlab.heal.methods.donor import Donor
from ssdlab.heal.methods.rewriter import FRAGMENTED, Rewritten, open_seen
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.file_info import FileInfo

_MOVE_EXT: Final = 0xC028660F  # _IOWR('f', 15, struct move_extent)
_ARGUMENT: Final = struct.Struct("=LLQQQQ")  # reserved, donor, from, to, count, moved: in blocks
_WRITE_AND_WAIT: Final = 7  # SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE, _WAIT_AFTER
LARGEST_FOLIO: Final = 8 << 20
"""Of ext4 with blocks of 4 KiB (Linux 6.16)."""
STEP: Final = 1 << 20
"""So much is moved in one call: few pages come into the cache between dropping and moving."""
TRIES: Final = 4
REST_S: Final = 0.02


class MoveExtents:
    """A file of ext4 opened for rewriting."""

    def __init__(self, seen: FileInfo) -> None:
        """Opens it.

        Raises:
            TargetError: as `open_seen`.
        """
        self._path, self._block = seen.path, seen.block_bytes
        self._fd = open_seen(seen)

    def rewrite(self, chunk: Range) -> Rewritten:
        """As `Rewriter.rewrite`."""
        try:
            with Donor(self._path.parent) as donor:
                return self._rewrite(chunk, donor)
        except OSError as error:
            raise DeviceFailure(
                f"{self._path}: bytes from {chunk.offset} could not be moved ({error.strerror}); "
                "they are where they were"
            ) from error

    def close(self) -> None:
        """As `Rewriter.close`."""
        os.close(self._fd)

    def _rewrite(self, chunk: Range, donor: Donor) -> Rewritten:
        if not donor.suits(self._fd, chunk, chunk.offset):
            return Rewritten(0, 0, (chunk,), FRAGMENTED)
        self._drop(chunk, LARGEST_FOLIO)
        moved, left = 0, []
        for offset in range(chunk.offset, chunk.end, STEP):
            step = Range(offset, min(STEP, chunk.end - offset))
            got = self._step(step, donor.fd)
            moved += got
            if got < step.length:
                left.append(Range(offset + got, step.length - got))
        # In order, as the cache has them: the drive sees one stream.
        os.fdatasync(self._fd)
        os.posix_fadvise(self._fd, chunk.offset, chunk.length, os.POSIX_FADV_DONTNEED)
        return Rewritten(moved, moved, tuple(left), "a writer holds these pages" if left else "")

    def _step(self, step: Range, donor: int) -> int:
        """Moves a range from its start on; returns how far it came, in bytes."""
        moved = 0
        for again in range(TRIES):
            left = Range(step.offset + moved, step.length - moved)
            self._drop(left, STEP * 2)
            got, number = self._move(left, donor)
            moved += got
            if moved >= step.length or number in (errno.ENODATA, 0):
                break
            if number not in (errno.EBUSY, errno.EAGAIN, errno.EINTR):
                raise OSError(number, os.strerror(number))
            time.sleep(REST_S * again)
        return min(moved, step.length)

    def _drop(self, part: Range, folio: int) -> None:
        """Writes a range out, without a commit, and takes it from the page cache.

        Grown to multiples of `folio` bytes: the kernel drops no folio that sticks out of a range.
        """
        start = part.offset // folio * folio
        length = -(-part.end // folio) * folio - start
        libc = ctypes.CDLL(None, use_errno=True)
        sizes = (ctypes.c_int64(start), ctypes.c_int64(length))
        if libc.sync_file_range(self._fd, *sizes, _WRITE_AND_WAIT):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        os.posix_fadvise(self._fd, start, length, os.POSIX_FADV_DONTNEED)

    def _move(self, part: Range, donor: int) -> tuple[int, int]:
        """One call: bytes moved, and the error's number or 0."""
        first, count = part.offset // self._block, -(-part.length // self._block)
        argument = bytearray(_ARGUMENT.pack(0, donor, first, first, count, 0))
        number = 0
        try:
            fcntl.ioctl(self._fd, _MOVE_EXT, argument, True)
        except OSError as error:
            number = error.errno or errno.EIO
        return _ARGUMENT.unpack(argument)[5] * self._block, number
