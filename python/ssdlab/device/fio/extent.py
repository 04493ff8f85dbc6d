"""Where a fio job reads or writes, and how much: size, offset, io_size, loops and numjobs."""

from __future__ import annotations

import math

import msgspec

from ssdlab.device.fio.text import JobSection
from ssdlab.device.jobs import Job
from ssdlab.device.kinds import Strided


def with_extent(section: JobSection, job: Job, capacity: int | None) -> Job:
    """The job with its region and amount; fio's size and io_size are per thread.

    `capacity` is the size of the device or twin; None for a file.

    Raises:
        UsageError: no size, or one that does not fit the other options.
    """
    longest = max([size for size, _ in job.block_mix] or [job.block_bytes])
    offset = section.share_or_size("offset", capacity) if "offset" in section else 0
    if "%" in section.text("offset", ""):
        offset -= offset % longest
    length = _length(section, capacity, offset)
    length -= length % longest
    if length == 0:
        raise section.error("size", f"at least the longest block, {longest}")
    whole = length
    if job.threads > 1:
        room = math.inf if capacity is None else capacity - offset
        job, whole = _with_parts(section, job, length, longest, room)
    elif section.size("offset_increment", 0):
        section.notes.append("offset_increment has no effect with numjobs=1, as in fio.")
    amount = _amount(section, job, length)
    if isinstance(job.pattern, Strided):
        pass_bytes = ((length - longest) // job.pattern.stride_bytes + 1) * longest
        if not 0 < amount <= pass_bytes:
            allowed = f"up to {pass_bytes}, once through size, and no time_based, with strides"
            raise section.error("io_size", allowed)
    return msgspec.structs.replace(
        job, offset_bytes=offset, length_bytes=whole, amount_bytes=amount * job.threads
    )


def _length(section: JobSection, capacity: int | None, offset: int) -> int:
    """The size of the region of one thread."""
    option = "size" if "size" in section else "filesize"
    if option in section:
        return section.share_or_size(option, None if capacity is None else capacity - offset)
    if capacity is None:
        raise section.error("size", "given: a test file in a directory has no size yet")
    return max(0, capacity - offset)


def _with_parts(
    section: JobSection, job: Job, length: int, longest: int, room: float
) -> tuple[Job, int]:
    """The job with the pattern of several threads, and the length of the region of all.

    `length` is that of one thread's region, `longest` the longest block, `room` the bytes of the
    target from the offset on. In fio, threads have one region if they have one file and no
    `offset_increment`; without a file name each has a file.
    """
    ordered = job.pattern in {"sequential", "random_once"}
    increment = 0
    if "offset_increment" in section:
        whole = None if room == math.inf else int(room)
        increment = section.share_or_size("offset_increment", whole)
    if increment:
        if not ordered or increment - increment % longest != length:
            allowed = "equal to size, for access in order or each block once; or left out"
            raise section.error("offset_increment", allowed)
        return job, length * job.threads
    if not ordered:
        return job, length
    if "filename" not in section and length * job.threads <= room:
        return job, length * job.threads
    if job.pattern == "random_once":
        section.notes.append("numjobs: blocks may come more than once, as with norandommap=1.")
        return msgspec.structs.replace(job, pattern="random"), length
    section.notes.append(
        "numjobs: each thread goes through a part of the region; in fio each goes through all."
    )
    part = length // job.threads // longest * longest
    if part == 0:
        raise section.error("size", f"at least a block for each of {job.threads} threads")
    return job, part * job.threads


def _amount(section: JobSection, job: Job, length: int) -> int:
    """Bytes per thread; 0 if only the time ends the job."""
    amount = section.share_or_size("io_size", length) if "io_size" in section else length
    if job.block_bytes:
        amount -= amount % job.block_bytes
    if amount == 0:
        raise section.error("io_size", f"at least the block, {job.block_bytes}")
    if section.flag("time_based"):
        if job.seconds is None:
            raise section.error("time_based", "given with runtime only")
        if "io_size" in section:
            section.notes.append("io_size has no effect with time_based, as in fio.")
        return 0
    return amount * section.number("loops", 1, 1)
