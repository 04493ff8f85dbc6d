"""XFS and btrfs: a range is copied in order to a donor, and the kernel shares the donor's blocks.

FIDEDUPERANGE compares both under the locks of both files and shares only what is equal byte by
byte, in one transaction: a write that came between makes it differ, and that part is copied anew.
So it needs no freshness check and no lease, and a part of a file is enough (unlike the exchange of
extents, which fails for the whole file after any write to it). The donor lets go at once, and
the blocks are the file's alone. The copy is on the drive before it is shared: a power cut finds
the old place or the new one. Source: ioctl_fideduperange(2).
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
from ssdlab.heal.methods.donor import Donor
from ssdlab.heal.methods.rewriter import FRAGMENTED, Rewritten, open_seen
from ssdlab.heal.pieces import Range, total
from ssdlab.storage_stack.file_info import FileInfo

_FIDEDUPERANGE: Final = 0xC018_9436  # _IOWR(0x94, 54, struct file_dedupe_range)
_SOURCE: Final = struct.Struct("=QQHHL")  # offset, length, count of targets, reserved
_TARGET: Final = struct.Struct("=qQQlL")  # descriptor, offset, bytes shared, status, reserved
_DIFFERS: Final = 1
GRAINS: Final = (1 << 20, 1 << 20, 128 << 10, 128 << 10, 64 << 10, 64 << 10)
"""What differs is copied anew in parts of these sizes, one try each; then it is left."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A range of the file and where its copy begins in the donor."""

    range: Range
    donor_offset: int


class Share:
    """A file opened for rewriting where files may share blocks."""

    def __init__(self, seen: FileInfo) -> None:
        """Opens it.

        Raises:
            TargetError: as `open_seen`.
        """
        self._path, self._attributes = seen.path, seen.attributes
        self._block = seen.block_bytes
        self._fd = open_seen(seen, os.O_DIRECT)

    def rewrite(self, chunk: Range) -> Rewritten:
        """As `Rewriter.rewrite`."""
        try:
            with Donor(self._path.parent, self._attributes) as donor:
                return self._rewrite(chunk, donor)
        except OSError as error:
            raise DeviceFailure(
                f"{self._path}: bytes from {chunk.offset} could not be rewritten "
                f"({error.strerror}); they are where they were"
            ) from error

    def close(self) -> None:
        """As `Rewriter.close`.

        XFS goes on looking for shared blocks at each write to the file: a mark in its inode, which
        only a call that changes the time of its last change takes away.
        """
        os.close(self._fd)

    def _rewrite(self, chunk: Range, donor: Donor) -> Rewritten:
        size = os.fstat(self._fd).st_size
        end = min(chunk.end, size)
        if end <= chunk.offset:
            return Rewritten(0, 0)
        if not donor.suits(self._fd, chunk, 0):
            return Rewritten(0, 0, (chunk,), FRAGMENTED)
        wanted = [Range(chunk.offset, end - chunk.offset)]
        written = 0
        for grain in GRAINS:
            written += total(wanted)
            wanted = self._shared(self._copied(wanted, donor), donor, grain)
            donor.give_back()
            if not wanted:
                break
        moved = end - chunk.offset - total(wanted)
        return Rewritten(moved, written, tuple(wanted), "a writer changes these" if wanted else "")

    def _copied(self, ranges: list[Range], donor: Donor) -> list[Copied]:
        """Copies ranges into the donor, one behind the other, and waits until they are written.

        The donor's end is the end of the last one: the last block of a file is shared only so.
        """
        room = sum(-(-each.length // self._block) * self._block for each in ranges)
        donor.reserve(0, room)
        found, position, end = [], 0, 0
        for each in ranges:
            length = self._copy(each, donor.fd, position)
            found.append(Copied(Range(each.offset, length), position))
            end = position + length
            position += -(-each.length // self._block) * self._block
        os.ftruncate(donor.fd, end)
        os.fdatasync(donor.fd)
        return found

    def _copy(self, each: Range, donor: int, position: int) -> int:
        """Copies one range; returns how many bytes of it there are."""
        padded = -(-each.length // self._block) * self._block
        view = memoryview(mmap.mmap(-1, padded))  # aligned to a page, as direct I/O demands
        got = 0
        while got < each.length:
            some = os.preadv(self._fd, [view[got:]], each.offset + got)
            if some <= 0:
                break
            got += some
        put = 0
        while put < padded:
            put += os.pwritev(donor, [view[put:]], position + put)
        return min(got, each.length)

    def _shared(self, copies: list[Copied], donor: Donor, grain: int) -> list[Range]:
        """Shares what is still equal, whole if it can; returns what differs by now."""
        differing = []
        for copy in copies:
            if self._share(copy, donor.fd):
                continue
            for start in range(0, copy.range.length, grain):
                length = min(grain, copy.range.length - start)
                part = Range(copy.range.offset + start, length)
                if not self._share(Copied(part, copy.donor_offset + start), donor.fd):
                    differing.append(part)
        return differing

    def _share(self, copy: Copied, donor: int) -> bool:
        """Whether the file's range has the donor's blocks now; False: it differs."""
        done = 0
        while done < copy.range.length:
            argument = bytearray(
                _SOURCE.pack(copy.donor_offset + done, copy.range.length - done, 1, 0, 0)
                + _TARGET.pack(self._fd, copy.range.offset + done, 0, 0, 0)
            )
            fcntl.ioctl(donor, _FIDEDUPERANGE, argument, True)
            _, _, shared, status, _ = _TARGET.unpack_from(argument, _SOURCE.size)
            # The file got another length meanwhile: then its last block is another.
            if status in (_DIFFERS, -errno.EINVAL):
                return False
            if status < 0:
                raise OSError(-status, os.strerror(-status))
            if not shared:
                return False
            done += shared
        return True
