"""`parse_fio`: jobs of ours equal to those of a fio job file.

Equal means the same requests in law: kind, place, length, time of arrival, what is outstanding.
What differs all the same, and is accepted:

- fio's random numbers are others than ours, by the same seed too.
- fio's zipf scatters ranks by a hash that lets some share a block; ours gives each its own.
- Where lengths are mixed or aligned freely, the last longest block of a region is drawn less often.
- fio counts the writes between flushes as they start, ours as they end: the same at depth 1.
- fio's own content is random at first and changed a little by each write, ours is made anew.

Where fio's default is something that ours does not do, the option must be there: `invalidate=0`
without `direct=1`, a size, `offset_increment` where several jobs go through a file in order.
Reads and writes that go through a file in order have a place each in fio and one place here: they
are refused, as are strides past the end, where fio goes on beyond the size to the end of the file.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from ssdlab.device.fio.text import Given, sections, size_bytes
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

# fio's word for `rw` gives: what the job's `op` is, whether reads are mixed in, whether at random.
_KINDS: dict[str, tuple[Literal["read", "write", "trim"], bool, bool]] = {
    "read": ("read", False, False),
    "write": ("write", False, False),
    "trim": ("trim", False, False),
    "randread": ("read", False, True),
    "randwrite": ("write", False, True),
    "randtrim": ("trim", False, True),
    "randrw": ("write", True, True),
}


class FioJob(msgspec.Struct, frozen=True):
    """A job of a fio job file, and how its file is opened.

    `filename` is None where the job names none. After `stonewall` a job waits for those before it;
    else they run side by side. Where `fresh_seed`, fio takes another seed each time: so should who
    runs this.
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
        UsageError: something that ours does not know or cannot do; one line that names it.
    """
    found = [_job(given) for given in sections(text)]
    if not found:
        raise UsageError("fio job file: no job in it; a job begins with its [name]")
    return found


def _job(given: Given) -> FioJob:
    if given.text("rw", "read") not in _KINDS:
        raise given.refuse("rw", " ".join(_KINDS))
    op, mixed, random = _KINDS[given.text("rw", "read")]
    mix = _block_mix(given)
    block = 0 if mix else given.size("bs", 4096)
    sizes = [size for size, _ in mix] or [block]
    if min(sizes) == 0:
        raise given.refuse("bssplit" if mix else "bs", "above 0")
    threads = given.number("numjobs", 1, 1, 256)
    seed = given.number("randseed", 0, 0, (1 << 63) - 1)
    repeats = given.flag("randrepeat", default=True)
    if repeats and "randseed" in given:
        raise given.refuse("randseed", "given with randrepeat=0: fio overlooks it otherwise")
    job = Job(
        op=op,
        read_share=_read_share(given) if mixed else 0.0,
        pattern=_pattern(given, sizes, random=random),
        offset_bytes=given.size("offset", 0),
        block_bytes=block,
        block_mix=mix,
        seconds=given.microseconds("runtime") / 1e6 if "runtime" in given else None,
        arrival=_arrival(given, block, mixed=mixed),
        queue_depth=given.number("iodepth", 1, 1, 1024),
        sync=_sync(given),
        threads=threads,
        seed=seed,
        interval_ms=given.number("log_avg_msec", 100, 1),
    )
    job = _with_extent(given, job, max(sizes))
    engine: Literal["io_uring", "sync"] = "sync"
    if given.choice("ioengine", ("psync", "io_uring")) == "io_uring":
        engine = "io_uring"
    elif job.queue_depth > 1:
        raise given.refuse("iodepth", "1 with ioengine=psync, fio's default; or say io_uring")
    elif given.flag("fixedbufs"):
        raise given.refuse("fixedbufs", "given with ioengine=io_uring only")
    return FioJob(
        name=given.section,
        job=job,
        options=_options(given, job, max(sizes)),
        engine=engine,
        filename=_filename(given),
        stonewall=given.flag("stonewall"),
        fresh_seed=not repeats and "randseed" not in given,
    )


def _read_share(given: Given) -> float:
    if "rwmixwrite" in given:
        return (100 - given.number("rwmixwrite", 50, 0, 100)) / 100
    return given.number("rwmixread", 50, 0, 100) / 100


def _block_mix(given: Given) -> tuple[tuple[int, float], ...]:
    if "bssplit" not in given:
        return ()
    allowed = "as 4k/60:64k/40, without bs, whole percents above 0 that add up to 100"
    parts = [part.partition("/") for part in given.text("bssplit", "").split(":")]
    sizes = [size_bytes(size) for size, _, _ in parts]
    percents = [percent for _, _, percent in parts]
    if "bs" in given or None in sizes or not all(p.isascii() and p.isdigit() for p in percents):
        raise given.refuse("bssplit", allowed)
    weights = [int(percent[:9]) for percent in percents]
    if min(weights) == 0 or sum(weights) != 100:
        raise given.refuse("bssplit", allowed)
    return tuple((size or 0, float(weight)) for size, weight in zip(sizes, weights, strict=True))


def _pattern(given: Given, sizes: list[int], *, random: bool) -> Pattern:
    if given.choice("zonemode", ("none", "strided")) == "strided":
        return _strided(given, sizes, random=random)
    if not random:
        for option in ("blockalign", "random_distribution"):
            if option in given:
                raise given.refuse(option, "left out where rw is not random")
        return "sequential"
    return _at_random(given, sizes)


def _at_random(given: Given, sizes: list[int]) -> Pattern:
    uneven = math.gcd(*sizes) != min(sizes)
    distribution, _, theta = given.text("random_distribution", "random").partition(":")
    if distribution == "zipf":
        if "blockalign" in given or uneven:
            raise given.refuse("blockalign", "the shortest block, which divides all, with zipf")
        return Zipf(_theta(given, theta))
    if distribution != "random" or theta:
        raise given.refuse("random_distribution", "random or zipf:THETA")
    return _evenly(given, sizes, uneven=uneven)


def _evenly(given: Given, sizes: list[int], *, uneven: bool) -> Pattern:
    """Of fio's map: each block once while it is on."""
    alignment = given.size("blockalign", min(sizes))
    norandommap = given.flag("norandommap")
    if alignment == 0:
        raise given.refuse("blockalign", "above 0")
    if "blockalign" in given and (norandommap or alignment != min(sizes)):
        return Aligned(alignment)
    if norandommap:
        if uneven:
            raise given.refuse("blockalign", f"given: the shortest of {sizes} does not divide all")
        return "random"
    if len(sizes) > 1 or "bssplit" in given:
        raise given.refuse("norandommap", "1 with bssplit: no block once while lengths are mixed")
    return "random_once"


def _theta(given: Given, text: str) -> float:
    try:
        theta = float(text)
    except ValueError:
        theta = 0.0
    if not 0 < theta <= 10 or theta == 1:
        raise given.refuse("random_distribution", "zipf:THETA, above 0 and up to 10, not 1")
    return theta


def _strided(given: Given, sizes: list[int], *, random: bool) -> Strided:
    if random or "bssplit" in given or "blockalign" in given:
        raise given.refuse("zonemode", "none with random rw, bssplit or blockalign")
    for option in ("zonesize", "zonerange"):
        if given.size(option, 0) != sizes[0]:
            raise given.refuse(option, f"bs, {sizes[0]}: one block, then the stride")
    return Strided(sizes[0] + given.size("zoneskip", 0))


def _with_extent(given: Given, job: Job, longest: int) -> Job:
    """The job with its region and its amount, which fio counts by thread."""
    length = given.size("size", 0)
    if length == 0 or length % longest:
        raise given.refuse("size", f"given in bytes, a multiple of the longest block, {longest}")
    if job.threads > 1 and job.pattern in {"sequential", "random_once"}:
        if given.size("offset_increment", 0) != length:
            raise given.refuse("offset_increment", "size: each of numjobs has its own part here")
        whole = length * job.threads
    elif "offset_increment" in given:
        raise given.refuse("offset_increment", "left out: no parts of the region in this job")
    else:
        whole = length
    amount = _amount(given, job, length)
    if isinstance(job.pattern, Strided):
        pass_bytes = ((length - longest) // job.pattern.stride_bytes + 1) * longest
        if not 0 < amount <= pass_bytes:
            allowed = f"up to {pass_bytes}, once through size, and no time_based, with strides"
            raise given.refuse("io_size", allowed)
    return msgspec.structs.replace(job, length_bytes=whole, amount_bytes=amount * job.threads)


def _amount(given: Given, job: Job, length: int) -> int:
    """Bytes of each thread; 0 where only time ends it."""
    amount = given.size("io_size", length)
    if amount == 0 or (job.block_bytes and amount % job.block_bytes):
        raise given.refuse("io_size", f"a multiple of the block, {job.block_bytes}")
    if given.flag("time_based"):
        if job.seconds is None:
            raise given.refuse("time_based", "given with runtime only")
        if "io_size" in given:
            raise given.refuse("io_size", "left out with time_based")
        return 0
    return amount


def _arrival(given: Given, block: int, *, mixed: bool) -> Arrival:
    option = "rate" if "rate" in given else "rate_iops"
    poisson = given.choice("rate_process", ("linear", "poisson")) == "poisson"
    if option not in given:
        if "rate_process" in given:
            raise given.refuse("rate_process", "given with rate_iops or rate only")
        return "closed"
    if mixed or not block or ("rate" in given and "rate_iops" in given):
        raise given.refuse(option, "left out with randrw (fio has one each), bssplit, or the other")
    by_bytes = given.size("rate", 0)
    per_s = by_bytes / block if by_bytes else given.number("rate_iops", 0)
    if per_s <= 0:
        raise given.refuse(option, "above 0")
    if poisson and (per_s != int(per_s) or 1_000_000 % int(per_s)):
        raise given.refuse(option, "a divisor of 1000000 a second: fio's Poisson gap is whole us")
    return Rate(float(per_s * given.number("numjobs", 1, 1, 256)), poisson)


def _sync(given: Given) -> Sync:
    fsync, fdatasync = given.number("fsync", 0), given.number("fdatasync", 0)
    if fsync and fdatasync:
        raise given.refuse("fdatasync", "0 where fsync is given")
    return FlushEvery(fsync or fdatasync) if fsync or fdatasync else "none"


def _options(given: Given, job: Job, longest: int) -> RealOptions:
    direct = not given.flag("buffered") if "buffered" in given else given.flag("direct")
    if given.flag("invalidate", default=True) and not direct:
        raise given.refuse("invalidate", "0 without direct=1: the page cache stays as it is here")
    return RealOptions(
        direct=direct,
        writable=job.op != "read",
        queue_depth=job.queue_depth,
        request_bytes_max=longest,
        registered_buffers=given.flag("fixedbufs"),
        dsync=given.choice("sync", ("none", "0", "dsync")) == "dsync",
        flush="fdatasync" if given.number("fdatasync", 0) else "fsync",
        content=_content(given),
        seed=job.seed,
    )


def _content(given: Given) -> Content:
    given.flag("refill_buffers")
    zeros = given.flag("zero_buffers")
    if "buffer_compress_percentage" not in given:
        return "zeros" if zeros else "incompressible"
    percent = given.number("buffer_compress_percentage", 0, 1, 99)
    if zeros:
        raise given.refuse("zero_buffers", "0 with buffer_compress_percentage")
    if given.size("buffer_compress_chunk", 512) != 4096:
        raise given.refuse("buffer_compress_chunk", "4096, as it is here")
    return Compressible((100 - percent) / 100)


def _filename(given: Given) -> str | None:
    if "filename" not in given:
        return None
    text = given.text("filename", "").replace("\\:", "\0")
    if not text or ":" in text or "\\" in text:
        raise given.refuse("filename", "one file; a colon in its name is \\:")
    return text.replace("\0", ":")
