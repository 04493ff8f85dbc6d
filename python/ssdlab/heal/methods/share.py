"""XFS and btrfs: copies a range in order to a donor, and lets the kernel share the donor's blocks.

FIDEDUPERANGE locks both files, compares the ranges byte by byte, and shares them in one transaction
only if they are equal. A write since the copy makes them differ, and that part is copied again. So
this method needs neither a freshness check nor a lease, and it works on a part of a file (an extent
exchange fails for the whole file after any write to it). The donor gives up its blocks immediately
afterwards, so that they belong to the file alone. The copy is on the drive before it is shared: a
power cut finds the old blocks or the new ones. Source: ioctl_fideduperange(2).
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from dataclasses import dataclass
from typing import Final

from ssdlab.errors import DeviceFailure
from ssdlab.heal.methods.rewriter import FRAGMENTED, Donor, RewriteResult, open_same_file
from ssdlab.heal.pieces import Range, total_bytes
from ssdlab.storage_stack.file_info import FileInfo

_FIDEDUPERANGE: Final = 0xC018_9436  # _IOWR(0x94, 54, struct file_dedupe_range)
_SOURCE: Final = struct.Struct("=QQHHL")  # offset, length, count of targets, reserved
_TARGET: Final = struct.Struct("=qQQlL")  # descriptor, offset, bytes shared, status, reserved
_DIFFERS: Final = 1
RETRY_BYTES: Final = (1 << 20, 1 << 20, 128 << 10, 128 << 10, 64 << 10, 64 << 10)
"""Part size for each try: data that differs is copied again and shared in parts of this size."""


@dataclass(frozen=True, slots=True)
class CopiedRange:
    """A range of the file, and the offset of its copy in the donor."""

    range: Range
    donor_offset: int


class Share:
    """A file opened for rewriting, on a file system whose files can share blocks."""

    def __init__(self, info: FileInfo) -> None:
        """Opens the file.

        Raises:
            TargetError: as `open_same_file`.
        """
        self._path, self._attributes = info.path, info.attributes
        self._block = info.block_bytes
        self._fd = open_same_file(info, os.O_DIRECT)

    def rewrite(self, chunk: Range) -> RewriteResult:
        """As `Rewriter.rewrite`."""
        try:
            with Donor(self._path.parent, self._attributes) as donor:
                return self._rewrite(chunk, donor)
        except OSError as error:
            raise DeviceFailure(
                f"{self._path}: bytes from {chunk.offset} could not be rewritten "
                f"({error.strerror}); the content is unchanged"
            ) from error

    def close(self) -> None:
        """As `Rewriter.close`.

        XFS keeps a flag in the inode and looks for shared blocks at each later write to the file;
        only a call that also changes the inode's ctime would clear it.
        """
        os.close(self._fd)

    def _rewrite(self, chunk: Range, donor: Donor) -> RewriteResult:
        size = os.fstat(self._fd).st_size
        end = min(chunk.end, size)
        if end <= chunk.offset:
            return RewriteResult(0, 0)
        if not donor.allocate_for(self._fd, chunk, 0):
            return RewriteResult(0, 0, (chunk,), FRAGMENTED)
        remaining = [Range(chunk.offset, end - chunk.offset)]
        written = 0
        for part_bytes in RETRY_BYTES:
            written += total_bytes(remaining)
            remaining = self._share_ranges(self._copy_ranges(remaining, donor), donor, part_bytes)
            donor.free_blocks()
            if not remaining:
                break
        moved = end - chunk.offset - total_bytes(remaining)
        reason = "another program keeps changing these" if remaining else ""
        return RewriteResult(moved, written, tuple(remaining), reason)

    def _copy_ranges(self, ranges: list[Range], donor: Donor) -> list[CopiedRange]:
        """Copies ranges to the donor, one after the other, and flushes them.

        The donor is truncated to the end of the last one: a file's last, partial block can be
        shared only if it is also the last block of the donor.
        """
        padded_bytes = sum(-(-each.length // self._block) * self._block for each in ranges)
        donor.allocate(0, padded_bytes)
        copies, position, end = [], 0, 0
        for each in ranges:
            length = self._copy(each, donor.fd, position)
            copies.append(CopiedRange(Range(each.offset, length), position))
            end = position + length
            position += -(-each.length // self._block) * self._block
        os.ftruncate(donor.fd, end)
        os.fdatasync(donor.fd)
        return copies

    def _copy(self, each: Range, donor: int, position: int) -> int:
        """Copies one range; returns the bytes copied: fewer if the file ends before it."""
        padded = -(-each.length // self._block) * self._block
        view = memoryview(mmap.mmap(-1, padded))  # page-aligned, as direct I/O requires
        copied = 0
        while copied < each.length:
            count = os.preadv(self._fd, [view[copied:]], each.offset + copied)
            if count <= 0:
                break
            copied += count
        written = 0
        while written < padded:
            written += os.pwritev(donor, [view[written:]], position + written)
        return min(copied, each.length)

    def _share_ranges(
        self, copies: list[CopiedRange], donor: Donor, part_bytes: int
    ) -> list[Range]:
        """Shares data that is still equal, whole ranges if possible; returns ranges that differ."""
        differing = []
        for copy in copies:
            if self._share_range(copy, donor.fd):
                continue
            for start in range(0, copy.range.length, part_bytes):
                length = min(part_bytes, copy.range.length - start)
                part = Range(copy.range.offset + start, length)
                if not self._share_range(CopiedRange(part, copy.donor_offset + start), donor.fd):
                    differing.append(part)
        return differing

    def _share_range(self, copy: CopiedRange, donor: int) -> bool:
        """Gives the file's range the donor's blocks; False if the contents differ."""
        done = 0
        while done < copy.range.length:
            argument = bytearray(
                _SOURCE.pack(copy.donor_offset + done, copy.range.length - done, 1, 0, 0)
                + _TARGET.pack(self._fd, copy.range.offset + done, 0, 0, 0)
            )
            fcntl.ioctl(donor, _FIDEDUPERANGE, argument, True)
            _, _, shared, status, _ = _TARGET.unpack_from(argument, _SOURCE.size)
            # EINVAL: the file's length has changed, so a different block is the last one.
            if status in (_DIFFERS, -errno.EINVAL):
                return False
            if status < 0:
                raise OSError(-status, os.strerror(-status))
            if not shared:
                return False
            done += shared
        return True
