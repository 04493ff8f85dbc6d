"""`to_fio`: converts a job to an equivalent fio job file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ssdlab.device.fio.reading import FioJob, parse_fio
from ssdlab.device.fio.text import fio_error
from ssdlab.device.jobs import Job
from ssdlab.device.kinds import Aligned, Compressible, FlushEvery, Rate, Strided, Zipf

Line = tuple[str, object]


def to_fio(step: FioJob) -> str:
    """A fio job file with one section, which `parse_fio` converts back to this job.

    `exclusive`, `writable` and the limits in the options do not affect requests and are left out,
    as is the seed of the content: fio has one seed for everything.

    Raises:
        UsageError: fio has no such job; the message names the field.
    """
    if not re.fullmatch(r"(?!global)[^\[\]\n\r;#]{1,200}", step.name) or step.name.strip() == "":
        raise fio_error(
            step.name, "name", repr(step.name), "a line without [ ] ; # and global first"
        )
    lines = [*_requests(step), *_extent(step), *_opening(step)]
    text = "".join(f"{option}={value}\n" for option, value in lines)
    text = f"[{step.name}]\n{text}"
    _require_same(step, text)
    return text


def _require_same(step: FioJob, text: str) -> None:
    """Parses the text again, and refuses a field that differs: fio cannot express it."""
    [parsed] = parse_fio(text)
    for field in Job.__struct_fields__:
        value, by_fio = getattr(step.job, field), getattr(parsed.job, field)
        # `_lengths` checks the weights of lengths, which may be scaled.
        if value != by_fio and field not in {"block_mix", "seed"}:
            raise fio_error(step.name, field, value, f"{by_fio}, as in fio")


def _requests(step: FioJob) -> Iterator[Line]:
    job = step.job
    if job.op == "flush" or job.trim_share or (job.read_share and job.op != "write"):
        raise fio_error(step.name, "op", job.op, "read, write, trim, or write with a read_share")
    pattern = job.pattern
    in_order = pattern == "sequential" or isinstance(pattern, Strided)
    if job.read_share:
        if in_order:
            allowed = "0 for a pattern in order: see parse_fio"
            raise fio_error(step.name, "read_share", job.read_share, allowed)
        yield "rw", "randrw"
        yield "rwmixread", round(job.read_share * 100)
    else:
        yield "rw", job.op if in_order else f"rand{job.op}"
    if job.hint != "none":
        raise fio_error(step.name, "hint", "given", "none: hints are for twins only")
    yield from _lengths(step)
    yield from _places(step)
    yield "iodepth", job.queue_depth
    yield from _arrival(step)
    if job.sync == "durable":
        allowed = "none or flush; for O_DSYNC use the option dsync"
        raise fio_error(step.name, "sync", "durable", allowed)
    if isinstance(job.sync, FlushEvery):
        yield step.options.flush, job.sync.every


def _places(step: FioJob) -> Iterator[Line]:
    pattern, block = step.job.pattern, step.job.block_bytes
    if pattern == "random":
        yield "norandommap", 1
    elif isinstance(pattern, Aligned):
        yield "norandommap", 1
        yield "blockalign", pattern.alignment_bytes
    elif isinstance(pattern, Zipf):
        yield "random_distribution", f"zipf:{pattern.theta!r}"
    elif isinstance(pattern, Strided):
        yield "zonemode", "strided"
        yield "zonesize", block
        yield "zonerange", block
        yield "zoneskip", pattern.stride_bytes - block
    elif pattern not in {"sequential", "random_once"}:
        raise fio_error(step.name, "pattern", "extents", "another: fio has no list of extents")


def _lengths(step: FioJob) -> Iterator[Line]:
    mix = step.job.block_mix
    if not mix:
        yield "bs", step.job.block_bytes
        return
    total = sum(weight for _, weight in mix)
    percents = [weight / total * 100 for _, weight in mix]
    if any(abs(percent - round(percent)) > 1e-9 for percent in percents):
        raise fio_error(step.name, "block_mix", mix, "weights that are whole percents of their sum")
    pairs = zip(mix, percents, strict=True)
    yield "bssplit", ":".join(f"{size}/{round(percent)}" for (size, _), percent in pairs)


def _arrival(step: FioJob) -> Iterator[Line]:
    arrival, threads = step.job.arrival, step.job.threads
    if not isinstance(arrival, Rate):
        return
    per_thread = round(arrival.per_s / threads)
    if per_thread * threads != arrival.per_s:
        allowed = f"an integer for each of {threads} threads"
        raise fio_error(step.name, "arrival.rate.per_s", arrival.per_s, allowed)
    yield "rate_iops", per_thread
    if arrival.poisson:
        yield "rate_process", "poisson"


def _extent(step: FioJob) -> Iterator[Line]:
    job = step.job
    parts = job.threads if job.pattern in {"sequential", "random_once"} else 1
    length = _per_part(step, "length_bytes", parts)
    amount = _per_part(step, "amount_bytes", job.threads)
    yield "offset", job.offset_bytes
    yield "size", length
    if parts > 1:
        yield "offset_increment", length
    if amount not in {0, length}:
        yield "io_size", amount
    if job.seconds is not None:
        microseconds = round(job.seconds * 1e6)
        yield "runtime", f"{microseconds}us"
        if amount == 0:
            yield "time_based", 1
    elif amount == 0:
        raise fio_error(step.name, "amount_bytes", 0, "above 0, or 0 with seconds")
    if job.threads > 1:
        yield "numjobs", job.threads
        yield "group_reporting", 1


def _per_part(step: FioJob, field: str, parts: int) -> int:
    """A field of the job, divided equally among the parts or threads."""
    size = int(getattr(step.job, field))
    if size % parts:
        raise fio_error(step.name, field, size, f"a multiple of threads, {parts}")
    return size // parts


def _opening(step: FioJob) -> Iterator[Line]:
    options = step.options
    if options.batch:
        raise fio_error(step.name, "options", "batch", "without batch, which fio does not have")
    yield "ioengine", "psync" if step.engine == "sync" else "io_uring"
    yield "thread", 1
    if step.engine == "io_uring":
        yield "registerfiles", 1
    if options.registered_buffers:
        yield "fixedbufs", 1
    yield "direct", int(options.direct)
    yield "invalidate", int(step.invalidates)
    if options.dsync:
        yield "sync", "dsync"
    yield from _content(step)
    yield "randrepeat", 0
    if not step.fresh_seed:
        yield "randseed", step.job.seed
    if step.job.interval_us != Job(op="read").interval_us:
        yield "log_avg_msec", max(1, step.job.interval_us // 1000)
    yield from _around(step)
    if step.filename is not None:
        if re.search(r"[\\;#$\n\r]", step.filename) or step.filename != step.filename.strip():
            allowed = "a path without \\ ; # $ and without blanks at its ends"
            raise fio_error(step.name, "filename", step.filename, allowed)
        yield "filename", step.filename.replace(":", "\\:")


def _around(step: FioJob) -> Iterator[Line]:
    """What comes before and after the job."""
    if step.ramp_s:
        yield "ramp_time", f"{round(step.ramp_s * 1e6)}us"
    if step.flushes_at_end:
        yield "end_fsync", 1
    if step.stonewall:
        yield "stonewall", 1


def _content(step: FioJob) -> Iterator[Line]:
    content = step.options.content
    if content == "incompressible":
        yield "refill_buffers", 1
    elif content == "zeros":
        yield "zero_buffers", 1
    elif isinstance(content, Compressible):
        percent = round(100 - content.to * 100)
        if (100 - percent) / 100 != content.to:
            raise fio_error(step.name, "content", content.to, "a whole percent")
        yield "buffer_compress_percentage", percent
        yield "buffer_compress_chunk", 4096
    else:
        raise fio_error(step.name, "content", type(content).__name__, "compressible, or a word")
