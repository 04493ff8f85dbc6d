"""Random writes to a fixed area of a full drive that was erased before, or aged by long use.

The drive is filled sequentially. *Erased*: then only the area is written, as often as in the
published half hour. *Aged*: twice the whole capacity is written at random, then the area twice. The
result is the rate of the next round over the area. The drive is scaled down; `cargo bench -p
ssdlab-workload --bench provisioning` runs it at full size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ssdlab.device import Drive, Job, open_twin, run_job
from ssdlab.profiles.toml_edit import set_value

Past = Literal["erased", "aged"]
BLOCK: Final = 4096
FILL_BLOCK: Final = 1 << 20
FLASH: Final = 512 << 30
AREA: Final = 40_000_000_000
VISIBLE: Final = {512: 1_000_215_216 * 512, 400: 400_000_000_000}
"""Visible bytes, by the gigabytes that the table states."""
SCALE: Final = 1 / 16
"""Share of the drive: 512 superblocks of the twin, 8 million mapping units."""
HALF_HOUR: Final = 490_000_000_000 / AREA
"""Rounds over the area in the published half hour."""
COUNTED: Final = ("host_writes", "nand_host_writes", "nand_collection_writes")


@dataclass(frozen=True)
class SteadyRate:
    """Requests per second in steady state, and write amplification (WAF)."""

    per_s: float
    waf: float


def steady_rate(profile: str, visible_gb: int, past: Past, scale: float = SCALE) -> SteadyRate:
    """The steady rate of random writes to the area.

    Raises:
        TargetError: the profile is invalid.
    """
    drive = _FilledDrive(profile, VISIBLE[visible_gb], scale)
    if past == "aged":
        drive.write_randomly(drive.visible, 2.0)
        drive.write_randomly(drive.area, 2.0)
    else:
        drive.write_randomly(drive.area, HALF_HOUR - 1.0)
    return drive.write_randomly(drive.area, 1.0)


class _FilledDrive:
    """A twin of the given visible capacity in bytes, filled sequentially."""

    def __init__(self, profile: str, visible: int, scale: float) -> None:
        text = set_value(profile, "drive.capacity", f"{visible // 1024} KiB")
        text = set_value(text, "ftl.spare", 1 - visible / FLASH)
        self.visible, self.area = (
            int(size * scale) // FILL_BLOCK * FILL_BLOCK for size in (visible, AREA)
        )
        self.drive: Drive = open_twin("published", text, self.visible)
        self.jobs = 0
        self._write("sequential", FILL_BLOCK, self.visible, self.visible)

    def write_randomly(self, length: int, times: float) -> SteadyRate:
        """Writes `times` x `length` bytes at random to the first `length` bytes."""
        before = self._counts()
        per_s = self._write("random", BLOCK, length, int(times * length) // BLOCK * BLOCK)
        host, own, moved = (now - then for now, then in zip(self._counts(), before, strict=True))
        return SteadyRate(per_s, (own + moved) / host)

    def _counts(self) -> list[int]:
        counters = self.drive.counters()
        assert counters is not None, "a twin counts"
        return [counters[key] for key in COUNTED]

    def _write(
        self, pattern: Literal["sequential", "random"], block: int, length: int, amount: int
    ) -> float:
        """Requests per second of one write job."""
        self.jobs += 1
        job = Job(
            op="write",
            pattern=pattern,
            length_bytes=length,
            block_bytes=block,
            amount_bytes=amount,
            queue_depth=32,
            seed=self.jobs,
            interval_ms=60_000,
        )
        result = run_job(self.drive, job)
        return result.requests / result.seconds
