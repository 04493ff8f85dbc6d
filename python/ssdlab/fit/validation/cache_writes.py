"""Write amplification of a flash cache (CacheLib) on a twin, with and without placement handles.

CacheLib writes small objects to random buckets of one area, and large ones in order around another.
With handles (NVMe flexible data placement) each has its own superblocks; without, both share them.
CacheLib's regions of 16 MiB and reclaim units of gigabytes are far apart in size; here requests of
both areas alternate unit by unit, in a superblock of 128 units.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ssdlab.device import Drive, Job, Listed, WriteHint, open_twin, run_job

CAPACITY: Final = 512 << 20
UNIT: Final = 16 << 10
"""The mapping unit of the twin: WAF depends on units per superblock and superblocks only."""
ROUNDS: Final = 2.5
"""How often the area of large objects is written, at most `WRITES_MAX` drive writes in all."""
WRITES_MAX: Final = 20.0
LAST: Final = 0.2
"""WAF is that of the last fifth of the run, as in the published logs."""
DEPTH: Final = 128
PART: Final = 1 << 14
"""Requests of one job: longer lists take more time to encode than to run."""
_HINTS: Final[tuple[WriteHint, WriteHint]] = ({"stream": 0}, {"stream": 1})
_PROFILE: Final = """\
[drive]
model = "generic"
capacity = "{capacity} B"
interface = "nvme"
[link]
bandwidth = "3200 MiB/s"
read_overhead = "10 us"
write_overhead = "4 us"
[flash]
channels = 8
dies_per_channel = 4
planes = 2
page = "16 KiB"
pages_per_block = 2
read = "60 us"
program = "700 us"
erase = "3500 us"
channel_bandwidth = "800 MiB/s"
[ftl]
mapping_unit = "16 KiB"
spare = {spare}
{placement}
[buffer]
size = "4 MiB"
power_loss_protection = true
"""
_HANDLES: Final = 'placement = "streams"\nstreams = 2'


def cache_waf(spare: float, small_area: float, small_share: float, *, handles: bool) -> float:
    """The WAF of a cache that fills the drive.

    `small_area` is the share of small objects in its space, `small_share` that in its bytes
    written.
    """
    placement = _HANDLES if handles else 'placement = "striped"'
    text = _PROFILE.format(capacity=CAPACITY, spare=spare, placement=placement)
    drive = open_twin("generic", text, CAPACITY)
    units, random = CAPACITY // UNIT, np.random.default_rng(1)
    small = round(small_area * units)
    large = units - small
    total = min(WRITES_MAX * units, ROUNDS * large / (1.0 - small_share))
    written, before = 0, (0.0, 0.0)
    for count in (round((1 - LAST) * total), round(LAST * total)):
        is_small = random.random(count) < small_share
        in_order = (written + np.cumsum(~is_small)) % large + small
        written += int((~is_small).sum())
        at = np.where(is_small, random.integers(0, small, count), in_order)
        before = units_written(drive)
        for first in range(0, count, PART):
            run_job(drive, _job(at[first : first + PART], is_small[first : first + PART]))
    host, flash = (now - then for now, then in zip(units_written(drive), before, strict=True))
    return flash / host


def units_written(drive: Drive) -> tuple[float, float]:
    """Mapping units that the host wrote to a twin, and that it programmed."""
    counters = drive.counters()
    assert counters is not None, "a twin counts"
    host = float(counters["host_writes"])
    return host, host * (counters["waf"] or 0.0)


def _job(units: npt.NDArray[np.int64], is_small: npt.NDArray[np.bool_]) -> Job:
    offsets = (units * UNIT).tolist()
    hints = [_HINTS[each] for each in is_small.tolist()]
    requests = tuple((offset, UNIT, hint) for offset, hint in zip(offsets, hints, strict=True))
    return Job(
        op="write",
        pattern=Listed(requests),
        length_bytes=CAPACITY,
        block_bytes=UNIT,
        amount_bytes=len(requests) * UNIT,
        queue_depth=DEPTH,
    )
