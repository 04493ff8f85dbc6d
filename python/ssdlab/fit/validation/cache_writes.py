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

from ssdlab.device import Job, Listed, WriteHint
from ssdlab.fit.validation.usual_twin import usual_twin, waf_of

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
_FTL: Final = 'mapping_unit = "16 KiB"'
_SHARED: Final = f'{_FTL}\nplacement = "striped"'
_HANDLES: Final = f'{_FTL}\nplacement = "streams"\nstreams = 2'


def cache_waf(spare: float, small_area: float, small_share: float, *, handles: bool) -> float:
    """The WAF of a cache that fills the drive.

    `small_area` is the share of small objects in its space, `small_share` that in its bytes
    written.
    """
    ftl = _HANDLES if handles else _SHARED
    drive = usual_twin(CAPACITY, spare, pages=2, buffer="4 MiB", ftl=ftl)
    units, random = CAPACITY // UNIT, np.random.default_rng(1)
    small = round(small_area * units)
    large = units - small
    total = min(WRITES_MAX * units, ROUNDS * large / (1.0 - small_share))
    written, waf = 0, 0.0
    for count in (round((1 - LAST) * total), round(LAST * total)):
        is_small = random.random(count) < small_share
        in_order = (written + np.cumsum(~is_small)) % large + small
        written += int((~is_small).sum())
        at = np.where(is_small, random.integers(0, small, count), in_order)
        parts = (slice(first, first + PART) for first in range(0, count, PART))
        waf = waf_of(drive, *(_job(at[part], is_small[part]) for part in parts))
    return waf


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
