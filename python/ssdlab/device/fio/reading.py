"""`parse_fio`: converts a fio job file to equivalent jobs.

Equivalent: the same distribution of operations, offsets, lengths and arrivals, and the same queue
depth. Accepted differences:

- The same seed gives different random numbers.
- fio's zipf maps ranks to blocks by a hash, so that some share a block; here each has its own.
- With mixed or freely aligned lengths, the end of the region is drawn less often.
- fio counts writes between flushes when they start, ssdlab when they complete: equal at depth 1.
- fio changes its random content a little with each write; ssdlab generates new content.

If ssdlab does not support fio's default, the option must be given: `invalidate=0` without
`direct=1`, a size, `offset_increment` for several jobs that access a file in order. Mixed
sequential reads and writes are refused: in fio each has its own position, here they share one. So
are strides beyond the end: fio continues past the size to the end of the file.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from ssdlab.device.fio.text import JobSection, sections, size_bytes
from ssdlab.device.jobs import Job
from ssdlab.device.kinds import (
    Aligned,
    Arrival,
    Compressible,
    Content,
    FlushEvery,
    Pattern,
    Rate,
    Strided,
    Sync,
    Zipf,
)
from ssdlab.device.real import RealOptions
from ssdlab.errors import UsageError

# For each value of fio's `rw`: the job's `op`, whether reads are mixed in, whether it is random.
_RW: dict[str, tuple[Literal["read", "write", "trim"], bool, bool]] = {
    "read": ("read", False, False),
    "write": ("write", False, False),
    "trim": ("trim", False, False),
    "randread": ("read", False, True),
    "randwrite": ("write", False, True),
    "randtrim": ("trim", False, True),
    "randrw": ("write", True, True),
}


class FioJob(msgspec.Struct, frozen=True):
    """A job of a fio job file, and the options for opening its file.

    `filename` is None if the job has none. With `stonewall` a job waits for those before it;
    otherwise they run in parallel. With `fresh_seed` fio uses a new seed in each run, and so should
    the caller.
    """

    name: str
    job: Job
    options: RealOptions
    engine: Literal["io_uring", "sync"] = "sync"
    filename: str | None = None
    stonewall: bool = False
    fresh_seed: bool = False


def parse_fio(text: str) -> list[FioJob]:
    """The jobs of a fio job file, in order.

    Raises:
        UsageError: an option or value that is not supported; the message names it.
    """
    jobs = [_job(section) for section in sections(text)]
    if not jobs:
        raise UsageError("fio job file: it has no job; a job begins with its [name]")
    return jobs


def _job(section: JobSection) -> FioJob:
    if section.text("rw", "read") not in _RW:
        raise section.error("rw", " ".join(_RW))
    op, mixed, random = _RW[section.text("rw", "read")]
    mix = _block_mix(section)
    block = 0 if mix else section.size("bs", 4096)
    sizes = [size for size, _ in mix] or [block]
    if min(sizes) == 0:
        raise section.error("bssplit" if mix else "bs", "above 0")
    threads = section.number("numjobs", 1, 1, 256)
    seed = section.number("randseed", 0, 0, (1 << 63) - 1)
    repeats = section.flag("randrepeat", default=True)
    if repeats and "randseed" in section:
        raise section.error("randseed", "given with randrepeat=0: otherwise fio ignores it")
    job = Job(
        op=op,
        read_share=_read_share(section) if mixed else 0.0,
        pattern=_pattern(section, sizes, random=random),
        offset_bytes=section.size("offset", 0),
        block_bytes=block,
        block_mix=mix,
        seconds=section.microseconds("runtime") / 1e6 if "runtime" in section else None,
        arrival=_arrival(section, block, mixed=mixed),
        queue_depth=section.number("iodepth", 1, 1, 1024),
        sync=_sync(section),
        threads=threads,
        seed=seed,
        interval_us=1000 * section.number("log_avg_msec", 100, 1),
    )
    job = _with_extent(section, job, max(sizes))
    engine: Literal["io_uring", "sync"] = "sync"
    if section.choice("ioengine", ("psync", "io_uring")) == "io_uring":
        engine = "io_uring"
    elif job.queue_depth > 1:
        raise section.error(
            "iodepth", "1 with ioengine=psync, the default; or use ioengine=io_uring"
        )
    elif section.flag("fixedbufs"):
        raise section.error("fixedbufs", "given with ioengine=io_uring only")
    return FioJob(
        name=section.name,
        job=job,
        options=_options(section, job, max(sizes)),
        engine=engine,
        filename=_filename(section),
        stonewall=section.flag("stonewall"),
        fresh_seed=not repeats and "randseed" not in section,
    )


def _read_share(section: JobSection) -> float:
    if "rwmixwrite" in section:
        return (100 - section.number("rwmixwrite", 50, 0, 100)) / 100
    return section.number("rwmixread", 50, 0, 100) / 100


def _block_mix(section: JobSection) -> tuple[tuple[int, float], ...]:
    if "bssplit" not in section:
        return ()
    allowed = "as 4k/60:64k/40, without bs, whole percents above 0 that add up to 100"
    parts = [part.partition("/") for part in section.text("bssplit", "").split(":")]
    sizes = [size_bytes(size) for size, _, _ in parts]
    percents = [percent for _, _, percent in parts]
    if "bs" in section or None in sizes or not all(p.isascii() and p.isdigit() for p in percents):
        raise section.error("bssplit", allowed)
    weights = [int(percent[:9]) for percent in percents]
    if min(weights) == 0 or sum(weights) != 100:
        raise section.error("bssplit", allowed)
    return tuple((size or 0, float(weight)) for size, weight in zip(sizes, weights, strict=True))


def _pattern(section: JobSection, sizes: list[int], *, random: bool) -> Pattern:
    if section.choice("zonemode", ("none", "strided")) == "strided":
        return _strided(section, sizes, random=random)
    if not random:
        for option in ("blockalign", "random_distribution"):
            if option in section:
                raise section.error(option, "left out if rw is not random")
        return "sequential"
    return _at_random(section, sizes)


def _at_random(section: JobSection, sizes: list[int]) -> Pattern:
    uneven = math.gcd(*sizes) != min(sizes)
    distribution, _, theta = section.text("random_distribution", "random").partition(":")
    if distribution == "zipf":
        if "blockalign" in section or uneven:
            raise section.error("blockalign", "the shortest block, which divides all, with zipf")
        return Zipf(_theta(section, theta))
    if distribution != "random" or theta:
        raise section.error("random_distribution", "random or zipf:THETA")
    return _evenly(section, sizes, uneven=uneven)


def _evenly(section: JobSection, sizes: list[int], *, uneven: bool) -> Pattern:
    """The pattern for uniform offsets; with fio's random map (the default) each block once."""
    alignment = section.size("blockalign", min(sizes))
    norandommap = section.flag("norandommap")
    if alignment == 0:
        raise section.error("blockalign", "above 0")
    if "blockalign" in section and (norandommap or alignment != min(sizes)):
        return Aligned(alignment)
    if norandommap:
        if uneven:
            raise section.error("blockalign", f"given: the shortest of {sizes} does not divide all")
        return "random"
    if len(sizes) > 1 or "bssplit" in section:
        raise section.error("norandommap", "1 with bssplit: mixed lengths rule out once per block")
    return "random_once"


def _theta(section: JobSection, text: str) -> float:
    try:
        theta = float(text)
    except ValueError:
        theta = 0.0
    if not 0 < theta <= 10 or theta == 1:
        raise section.error("random_distribution", "zipf:THETA, above 0 and up to 10, not 1")
    return theta


def _strided(section: JobSection, sizes: list[int], *, random: bool) -> Strided:
    if random or "bssplit" in section or "blockalign" in section:
        raise section.error("zonemode", "none with random rw, bssplit or blockalign")
    for option in ("zonesize", "zonerange"):
        if section.size(option, 0) != sizes[0]:
            raise section.error(option, f"bs, {sizes[0]}: one block, then the stride")
    return Strided(sizes[0] + section.size("zoneskip", 0))


def _with_extent(section: JobSection, job: Job, longest: int) -> Job:
    """The job with its region and amount; fio's size and io_size are per thread."""
    length = section.size("size", 0)
    if length == 0 or length % longest:
        raise section.error("size", f"given in bytes, a multiple of the longest block, {longest}")
    if job.threads > 1 and job.pattern in {"sequential", "random_once"}:
        if section.size("offset_increment", 0) != length:
            raise section.error(
                "offset_increment", "equal to size: each of numjobs has its own part"
            )
        whole = length * job.threads
    elif "offset_increment" in section:
        raise section.error("offset_increment", "left out: the region of this job has no parts")
    else:
        whole = length
    amount = _amount(section, job, length)
    if isinstance(job.pattern, Strided):
        pass_bytes = ((length - longest) // job.pattern.stride_bytes + 1) * longest
        if not 0 < amount <= pass_bytes:
            allowed = f"up to {pass_bytes}, once through size, and no time_based, with strides"
            raise section.error("io_size", allowed)
    return msgspec.structs.replace(job, length_bytes=whole, amount_bytes=amount * job.threads)


def _amount(section: JobSection, job: Job, length: int) -> int:
    """Bytes per thread; 0 if only the time ends the job."""
    amount = section.size("io_size", length)
    if amount == 0 or (job.block_bytes and amount % job.block_bytes):
        raise section.error("io_size", f"a multiple of the block, {job.block_bytes}")
    if section.flag("time_based"):
        if job.seconds is None:
            raise section.error("time_based", "given with runtime only")
        if "io_size" in section:
            raise section.error("io_size", "left out with time_based")
        return 0
    return amount


def _arrival(section: JobSection, block: int, *, mixed: bool) -> Arrival:
    option = "rate" if "rate" in section else "rate_iops"
    poisson = section.choice("rate_process", ("linear", "poisson")) == "poisson"
    if option not in section:
        if "rate_process" in section:
            raise section.error("rate_process", "given with rate_iops or rate only")
        return "closed"
    if mixed or not block or ("rate" in section and "rate_iops" in section):
        raise section.error(
            option, "left out with randrw (fio has one each), bssplit, or the other"
        )
    by_bytes = section.size("rate", 0)
    per_s = by_bytes / block if by_bytes else section.number("rate_iops", 0)
    if per_s <= 0:
        raise section.error(option, "above 0")
    if poisson and (per_s != int(per_s) or 1_000_000 % int(per_s)):
        raise section.error(option, "a divisor of 1000000 a second: fio's Poisson gap is whole us")
    return Rate(float(per_s * section.number("numjobs", 1, 1, 256)), poisson)


def _sync(section: JobSection) -> Sync:
    fsync, fdatasync = section.number("fsync", 0), section.number("fdatasync", 0)
    if fsync and fdatasync:
        raise section.error("fdatasync", "0 with fsync")
    return FlushEvery(fsync or fdatasync) if fsync or fdatasync else "none"


def _options(section: JobSection, job: Job, longest: int) -> RealOptions:
    direct = not section.flag("buffered") if "buffered" in section else section.flag("direct")
    if section.flag("invalidate", default=True) and not direct:
        raise section.error(
            "invalidate", "0 without direct=1: ssdlab leaves the page cache as it is"
        )
    return RealOptions(
        direct=direct,
        writable=job.op != "read",
        queue_depth=job.queue_depth,
        request_bytes_max=longest,
        registered_buffers=section.flag("fixedbufs"),
        dsync=section.choice("sync", ("none", "0", "dsync")) == "dsync",
        flush="fdatasync" if section.number("fdatasync", 0) else "fsync",
        content=_content(section),
        seed=job.seed,
    )


def _content(section: JobSection) -> Content:
    section.flag("refill_buffers")
    zeros = section.flag("zero_buffers")
    if "buffer_compress_percentage" not in section:
        return "zeros" if zeros else "incompressible"
    percent = section.number("buffer_compress_percentage", 0, 1, 99)
    if zeros:
        raise section.error("zero_buffers", "0 with buffer_compress_percentage")
    if section.size("buffer_compress_chunk", 512) != 4096:
        raise section.error("buffer_compress_chunk", "4096, which is fixed here")
    return Compressible((100 - percent) / 100)


def _filename(section: JobSection) -> str | None:
    if "filename" not in section:
        return None
    text = section.text("filename", "").replace("\\:", "\0")
    if not text or ":" in text or "\\" in text:
        raise section.error("filename", "one file; a colon in its name is \\:")
    return text.replace("\0", ":")
