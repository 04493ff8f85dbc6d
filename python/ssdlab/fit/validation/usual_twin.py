"""A twin of which only the spare and the size of its superblocks matter, to measure its WAF.

WAF depends on no time and, for a given number of superblocks, on no size. So these twins are small;
their other numbers are those of a usual drive.
"""

from __future__ import annotations

from typing import Final

from ssdlab.device import Drive, Job, open_twin, run_job

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
pages_per_block = {pages}
read = "60 us"
program = "700 us"
erase = "3500 us"
channel_bandwidth = "800 MiB/s"
[ftl]
spare = {spare}
{ftl}
[buffer]
size = "{buffer}"
power_loss_protection = true
"""


def usual_twin(
    capacity_bytes: int, spare: float, *, pages: int = 6, buffer: str = "1 MiB", ftl: str = ""
) -> Drive:
    """A fresh twin with `pages` to an erase block; `ftl` are further lines of its section."""
    text = _PROFILE.format(
        capacity=capacity_bytes, spare=spare, pages=pages, buffer=buffer, ftl=ftl
    )
    return open_twin("generic", text, capacity_bytes)


def waf_of(drive: Drive, *jobs: Job) -> float:
    """Runs jobs of writes on a twin, and returns their write amplification."""
    before = _units_written(drive)
    for job in jobs:
        run_job(drive, job)
    host, flash = (now - then for now, then in zip(_units_written(drive), before, strict=True))
    return flash / host


def _units_written(drive: Drive) -> tuple[float, float]:
    """Mapping units that the host wrote to a twin, and that it programmed."""
    counters = drive.counters()
    assert counters is not None, "a twin counts"
    host = float(counters["host_writes"])
    return host, host * (counters["waf"] or 0.0)
