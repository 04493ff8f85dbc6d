"""ext4: EXT4_IOC_MOVE_EXT moves a file's data to a donor's blocks, under the kernel's locks.

The kernel copies page by page through the page cache, and exchanges each page's blocks in a
transaction that orders the data first (fs/ext4/move_extent.c). A concurrent writer or a power cut
therefore finds the old blocks or the new ones, never a mixture. Trap: if a folio of many pages is
in the page cache, each page after the first waits for a forced journal commit (measured: 11 ms a
page, 16 MiB in 33 s). If the range is first dropped from the cache, it is read back as single
pages, and 16 MiB take 0.1 s.
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
from ssdlab.heal.methods.rewriter import FRAGMENTED, Donor, RewriteResult, open_same_file
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.file_info import FileInfo

_MOVE_EXT: Final = 0xC028660F  # _IOWR('f', 15, struct move_extent)
_ARGUMENT: Final = struct.Struct("=LLQQQQ")  # reserved, donor, from, to, count, moved: in blocks
_WRITE_AND_WAIT: Final = 7  # SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE, _WAIT_AFTER
MAX_FOLIO_BYTES: Final = 8 << 20
"""The largest folio of ext4 with 4 KiB blocks (Linux 6.16)."""
STEP_BYTES: Final = 1 << 20
"""Bytes that one call moves: few, so that few pages return to the cache before they are moved."""
MAX_TRIES: Final = 4
RETRY_DELAY_S: Final = 0.02


class MoveExtents:
    """An ext4 file opened for rewriting."""

    def __init__(self, info: FileInfo) -> None:
        """Opens the file.

        Raises:
            TargetError: as `open_same_file`.
        """
        self._path, self._block = info.path, info.block_bytes
        self._fd = open_same_file(info)

    def rewrite(self, chunk: Range) -> RewriteResult:
        """As `Rewriter.rewrite`."""
        try:
            with Donor(self._path.parent) as donor:
                return self._rewrite(chunk, donor)
        except OSError as error:
            raise DeviceFailure(
                f"{self._path}: bytes from {chunk.offset} could not be moved ({error.strerror}); "
                "the content is unchanged"
            ) from error

    def close(self) -> None:
        """As `Rewriter.close`."""
        os.close(self._fd)

    def _rewrite(self, chunk: Range, donor: Donor) -> RewriteResult:
        if not donor.allocate_for(self._fd, chunk, chunk.offset):
            return RewriteResult(0, 0, (chunk,), FRAGMENTED)
        self._drop_from_cache(chunk, MAX_FOLIO_BYTES)
        moved, left = 0, []
        for offset in range(chunk.offset, chunk.end, STEP_BYTES):
            step = Range(offset, min(STEP_BYTES, chunk.end - offset))
            step_moved = self._move_step(step, donor.fd)
            moved += step_moved
            if step_moved < step.length:
                left.append(Range(offset + step_moved, step.length - step_moved))
        # The pages are written from the cache in file order: the drive sees one sequential stream.
        os.fdatasync(self._fd)
        os.posix_fadvise(self._fd, chunk.offset, chunk.length, os.POSIX_FADV_DONTNEED)
        reason = "these pages are in use by another program" if left else ""
        return RewriteResult(moved, moved, tuple(left), reason)

    def _move_step(self, step: Range, donor: int) -> int:
        """Moves a range, with retries; returns how many bytes from its start were moved."""
        moved = 0
        for attempt in range(MAX_TRIES):
            left = Range(step.offset + moved, step.length - moved)
            self._drop_from_cache(left, STEP_BYTES * 2)
            call_moved, error = self._move(left, donor)
            moved += call_moved
            if moved >= step.length or error in (errno.ENODATA, 0):
                break
            if error not in (errno.EBUSY, errno.EAGAIN, errno.EINTR):
                raise OSError(error, os.strerror(error))
            time.sleep(RETRY_DELAY_S * attempt)
        return min(moved, step.length)

    def _drop_from_cache(self, part: Range, folio: int) -> None:
        """Writes a range back, without a journal commit, and drops it from the page cache.

        It is extended to multiples of `folio`: the kernel only drops folios that are fully inside.
        """
        start = part.offset // folio * folio
        length = -(-part.end // folio) * folio - start
        libc = ctypes.CDLL(None, use_errno=True)
        sizes = (ctypes.c_int64(start), ctypes.c_int64(length))
        if libc.sync_file_range(self._fd, *sizes, _WRITE_AND_WAIT):
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        os.posix_fadvise(self._fd, start, length, os.POSIX_FADV_DONTNEED)

    def _move(self, part: Range, donor: int) -> tuple[int, int]:
        """Calls EXT4_IOC_MOVE_EXT once; returns the bytes moved, and the errno or 0."""
        first, count = part.offset // self._block, -(-part.length // self._block)
        argument = bytearray(_ARGUMENT.pack(0, donor, first, first, count, 0))
        code = 0
        try:
            fcntl.ioctl(self._fd, _MOVE_EXT, argument, True)
        except OSError as error:
            code = error.errno or errno.EIO
        return _ARGUMENT.unpack(argument)[5] * self._block, code
