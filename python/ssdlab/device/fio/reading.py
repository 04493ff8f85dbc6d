"""`parse_fio`: converts a fio job file to equivalent jobs.

Equivalent: the same distribution of operations, offsets, lengths and arrivals, and the same queue
depth. Differences that are accepted without a word:

- The same seed gives different random numbers.
- fio's zipf maps ranks to blocks by a hash, so that some share a block; here each has its own.
- With mixed or freely aligned lengths, the end of the region is drawn less often.
- fio counts writes between flushes when they start, ssdlab when they complete: equal at depth 1.
- fio changes its random content a little with each write; ssdlab generates new content.
- A size that is not a multiple of the block is rounded down.

`FioJob.notes` names those that a user should know. Mixed sequential reads and writes are refused:
in fio each has its own position, here they share one. So are strides beyond the end: fio continues
past the size to the end of the file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from ssdlab.device.fio.extent import with_extent
from ssdlab.device.fio.text import SIZE_RULE, JobSection, sections, size_bytes
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
from ssdlab.device.real import Engine, RealOptions
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

Mix = tuple[tuple[int, float], ...]
"""Lengths of requests in bytes, with their percentages."""
_ASYNCHRONOUS: Final = ("io_uring", "libaio", "posixaio")
_SYNCHRONOUS: Final = ("psync", "sync", "vsync", "pvsync", "pvsync2")


class FioJob(msgspec.Struct, frozen=True):
    """A job of a fio job file, and the options for opening its file.

    `filename` is None if the job has none. With `stonewall` a job waits for those before it, as all
    but the first do. With `fresh_seed` fio uses a new seed in each run, and so should
    the caller. `ramp_s` seconds of the job come before what is measured. With `invalidates` the
    page cache is emptied before, with `flushes_at_end` the file is flushed after the job. `notes`
    are sentences on what ssdlab does otherwise than fio.
    """

    name: str
    job: Job
    options: RealOptions
    engine: Engine = "sync"
    filename: str | None = None
    stonewall: bool = False
    fresh_seed: bool = False
    ramp_s: float = 0.0
    invalidates: bool = False
    flushes_at_end: bool = False
    notes: tuple[str, ...] = ()


def parse_fio(
    text: str,
    capacity_bytes: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[FioJob]:
    """The jobs of a fio job file, in order.

    `capacity_bytes` is the size of the device or twin that they are for, which is the default of
    `size`; None for a file. Variables are those of `environment`, by default the process's.

    Raises:
        UsageError: options or values that are not supported; the message names all of them.
    """
    found, problems = sections(text, os.environ if environment is None else environment)
    problems += _check_order(found)
    jobs = []
    for section in found:
        job = _job(section, capacity_bytes)
        # A problem of [global] is a problem of each job: report it once.
        known = {problem.partition(": ")[2] for problem in problems}
        problems += [text for text in section.problems if text.partition(": ")[2] not in known]
        if job is not None:
            jobs.append(job)
    if not found and not problems:
        problems.append("fio job file: it has no job; a job begins with its [name]")
    if problems:
        raise UsageError(_together(problems))
    return jobs


def _check_order(found: Sequence[JobSection]) -> list[str]:
    """The problems of several jobs in one file."""
    names = [section.name for section in found]
    problems = []
    if parallel := [section.name for section in found[1:] if "stonewall" not in section]:
        problems.append(
            f"fio job {parallel[0]!r}: stonewall is left out; it must be 1 in each job but the "
            "first: jobs run one after the other here, not in parallel"
        )
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        problems.append(f"fio job file: two jobs are called [{duplicate}]; names must differ")
    return problems


def _together(problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    numbered = (f"({number}) {problem}" for number, problem in enumerate(problems, 1))
    return f"{len(problems)} problems: {'; '.join(numbered)}"


def _job(section: JobSection, capacity: int | None) -> FioJob | None:
    """The job of a section; None if it has problems, which are then in `section.problems`."""
    attempt = section.attempt
    if section.text("rw", "read") not in _RW:
        allowed = f"{' '.join(_RW)}; sequential reads and writes (rw) are two jobs in one"
        section.problems.append(str(section.error("rw", allowed)))
    op, mixed, random = _RW.get(section.text("rw", "read"), ("read", False, False))
    mix: Mix = attempt(lambda: _block_mix(section), ())
    block = 0 if mix else attempt(lambda: _block(section, op, mixed=mixed), 4096)
    sizes = [size for size, _ in mix] or [block]
    threads = attempt(lambda: section.number("numjobs", 1, 1, 256), 1)
    interval_ms = attempt(lambda: section.number("log_avg_msec", 100), 100)
    job = Job(
        op=op,
        read_share=attempt(lambda: _read_share(section) if mixed else 0.0, 0.0),
        pattern=attempt(lambda: _pattern(section, sizes, random=random), "sequential"),
        block_bytes=block,
        block_mix=mix,
        seconds=attempt(lambda: _seconds(section, "runtime"), None),
        arrival=attempt(lambda: _arrival(section, block, mixed=mixed), "closed"),
        queue_depth=attempt(lambda: section.number("iodepth", 1, 1, 1024), 1),
        sync=attempt(lambda: _sync(section), "none"),
        threads=threads,
        seed=attempt(lambda: section.number("randseed", 0, 0, (1 << 63) - 1), 0),
        interval_us=1000 * (interval_ms or 100),
    )
    engine: Engine = attempt(lambda: _engine(section), "io_uring")
    if engine == "sync" and job.queue_depth > 1:
        section.notes.append("iodepth has no effect with a synchronous ioengine, as in fio.")
        job = msgspec.structs.replace(job, queue_depth=1)
    repeats = attempt(lambda: section.flag("randrepeat", default=True), default=True)
    if repeats and "randseed" in section:
        section.notes.append("randseed has no effect without randrepeat=0, as in fio.")
        job = msgspec.structs.replace(job, seed=0)
    filename = attempt(lambda: _filename(section), None)
    attempt(lambda: _check_files(section, random=random), None)
    if not section.problems:
        job = attempt(lambda: with_extent(section, job, capacity), job)
    options = attempt(lambda: _options(section, job, max(sizes)), RealOptions())
    fio = FioJob(
        name=section.name,
        job=job,
        options=options,
        engine=engine,
        filename=filename,
        stonewall=attempt(lambda: section.flag("stonewall"), default=True),
        fresh_seed=not repeats and "randseed" not in section,
        ramp_s=attempt(lambda: _seconds(section, "ramp_time"), None) or 0.0,
        invalidates=attempt(
            lambda: section.flag("invalidate", default=True) and not options.direct, default=False
        ),
        flushes_at_end=attempt(lambda: section.flag("end_fsync"), default=False),
        notes=tuple(dict.fromkeys(section.notes)),
    )
    attempt(lambda: _check_ramp(section, fio), None)
    return None if section.problems else fio


def _engine(section: JobSection) -> Engine:
    name = section.choice("ioengine", ("psync", *_ASYNCHRONOUS, *_SYNCHRONOUS))
    engine: Engine = "io_uring" if name in _ASYNCHRONOUS else "sync"
    if engine == "sync" and section.flag("fixedbufs"):
        raise section.error("fixedbufs", "given with ioengine=io_uring only")
    if name not in {"io_uring", "psync"}:
        how = "at the same queue depth" if engine == "io_uring" else "one at a time"
        section.notes.append(f"ioengine={name}: ssdlab's own engine sends the requests, {how}.")
    return engine


def _seconds(section: JobSection, option: str) -> float | None:
    if option not in section or section.text(option, "") == "0":
        return None
    return section.microseconds(option) / 1e6


def _block(section: JobSection, op: str, *, mixed: bool) -> int:
    """The block of the job's requests; fio may have one for reads, for writes and for trims."""
    if "bsrange" in section:
        low, _, high = section.text("bsrange", "").partition("-")
        if not size_bytes(low) or size_bytes(low) != size_bytes(high):
            raise section.error("bsrange", "one size twice, or left out: give sizes by bssplit")
        return size_bytes(low) or 0
    texts = section.text("bs", "4k").split(",")
    if len(texts) > 3:
        raise section.error("bs", "one size, or READ,WRITE,TRIM")
    # A size that is left out is the one before it; the first one is 4 KiB.
    sizes = [size_bytes("4k")]
    for text in texts:
        sizes.append(size_bytes(text) if text else sizes[-1])
    read, write, trim = (sizes[1:] + 2 * [sizes[-1]])[:3]
    block = {"read": read, "write": write, "trim": trim}[op]
    if not block:
        raise section.error("bs", f"above 0, {SIZE_RULE}")
    if mixed and read != write:
        raise section.error("bs", "the same for reads and writes")
    return block


def _check_files(section: JobSection, *, random: bool) -> None:
    section.choice("kb_base", ("1024",))
    if section.number("nrfiles", 1, 1) > 1 and not random:
        raise section.error("nrfiles", "1 for sequential access: ssdlab has one file")
    if section.text("verify", "0") not in {"0", "null"}:
        raise section.error("verify", "left out: ssdlab does not verify what it reads")


def _check_ramp(section: JobSection, fio: FioJob) -> None:
    if fio.ramp_s and isinstance(fio.job.pattern, Strided):
        raise section.error("ramp_time", "left out with strides")


def _read_share(section: JobSection) -> float:
    if "rwmixwrite" in section:
        return (100 - section.number("rwmixwrite", 50, 0, 100)) / 100
    return section.number("rwmixread", 50, 0, 100) / 100


def _block_mix(section: JobSection) -> Mix:
    if "bssplit" not in section:
        return ()
    allowed = "such as 4k/60:64k/40: sizes above 0, and whole percents above 0 that add up to 100"
    parts = [part.partition("/") for part in section.text("bssplit", "").split(":")]
    sizes = [size_bytes(size) for size, _, _ in parts]
    percents = [percent for _, _, percent in parts]
    if not all(sizes) or not all(p.isascii() and p.isdigit() for p in percents):
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
    shortest = min(sizes)
    alignment = section.size("blockalign", shortest)
    norandommap = section.flag("norandommap")
    if alignment == 0:
        raise section.error("blockalign", "above 0")
    if not norandommap and (len(sizes) > 1 or "bssplit" in section):
        section.notes.append("bssplit: blocks may come more than once, as with norandommap=1.")
        norandommap = True
    if ("blockalign" in section and (norandommap or alignment != shortest)) or uneven:
        return Aligned(alignment)
    return "random" if norandommap else "random_once"


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


def _arrival(section: JobSection, block: int, *, mixed: bool) -> Arrival:
    option = "rate" if "rate" in section else "rate_iops"
    poisson = section.choice("rate_process", ("linear", "poisson")) == "poisson"
    poisson |= section.flag("rate_poisson")
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
    sync = section.choice("sync", ("none", "0", "dsync", "1", "sync"))
    if sync in {"1", "sync"}:
        section.notes.append(f"sync={sync}: files are opened with O_DSYNC, not O_SYNC.")
    return RealOptions(
        direct=direct,
        writable=job.op != "read",
        queue_depth=job.queue_depth,
        request_bytes_max=longest,
        registered_buffers=section.flag("fixedbufs"),
        dsync=sync not in {"none", "0"},
        flush="fdatasync" if section.number("fdatasync", 0) else "fsync",
        content=_content(section),
        seed=job.seed,
    )


def _content(section: JobSection) -> Content:
    section.flag("refill_buffers")
    zeros = section.flag("zero_buffers")
    if "buffer_compress_percentage" not in section:
        return "zeros" if zeros else "incompressible"
    percent = section.number("buffer_compress_percentage", 0, 0, 99)
    if percent == 0:
        return "zeros" if zeros else "incompressible"
    if zeros:
        raise section.error("zero_buffers", "0 with buffer_compress_percentage")
    if section.size("buffer_compress_chunk", 512) != 4096:
        section.notes.append("buffer_compress_chunk: content compresses in chunks of 4096 bytes.")
    return Compressible((100 - percent) / 100)


def _filename(section: JobSection) -> str | None:
    if "filename" not in section:
        return None
    text = section.text("filename", "").replace("\\:", "\0")
    if not text or ":" in text or "\\" in text:
        raise section.error("filename", "one file; a colon in its name is \\:")
    return text.replace("\0", ":")
