"""Random writes to a fixed area of a full drive, erased before or used for long: spare and past.

The drive is filled in order. *Erased*: then nothing is written but the area, as often as in the
published half hour. *Aged*: all of it is written at random twice over, then the area twice. The
rate is that of the area's next round. Scaled to a share of the drive; `cargo bench -p
ssdlab-workload --bench provisioning` does it in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ssdlab.device import Drive, Job, open_twin, run_job
from ssdlab.profiles.toml_edit import with_number

Past = Literal["erased", "aged"]
BLOCK: Final = 4096
FILL: Final = 1 << 20
FLASH: Final = 512 << 30
AREA: Final = 40_000_000_000
VISIBLE: Final = {512: 1_000_215_216 * 512, 400: 400_000_000_000}
"""Bytes that the host sees, by the gigabytes that the table names."""
SHARE: Final = 1 / 16
"""Of the drive: 512 superblocks of the twin, 8 million mapped units."""
HALF_HOUR: Final = 490_000_000_000 / AREA
COUNTED: Final = ("host_writes", "nand_host_writes", "nand_collection_writes")


@dataclass(frozen=True)
class Lasting:
    """Requests a second in steady state, and flash units written for each of the host's."""

    per_s: float
    amplification: float


def lasting(profile: str, visible_gb: int, past: Past, share: float = SHARE) -> Lasting:
    """What the area takes in steady state.

    Raises:
        TargetError: the profile is wrong.
    """
    life = _Life(profile, VISIBLE[visible_gb], share)
    if past == "aged":
        life.at_random(life.visible, 2.0)
        life.at_random(life.area, 2.0)
    else:
        life.at_random(life.area, HALF_HOUR - 1.0)
    return life.at_random(life.area, 1.0)


class _Life:
    """A drive that was filled in order, and is then written at random."""

    def __init__(self, profile: str, visible: int, share: float) -> None:
        text = with_number(profile, "drive.capacity", f"{visible // 1024} KiB")
        text = with_number(text, "ftl.spare", 1 - visible / FLASH)
        self.visible, self.area = (int(size * share) // FILL * FILL for size in (visible, AREA))
        self.drive: Drive = open_twin("published", text, self.visible)
        self.jobs = 0
        self._write("sequential", FILL, self.visible, self.visible)

    def at_random(self, length: int, times: float) -> Lasting:
        """Writes so many times `length` to the first `length` bytes."""
        before = self._counted()
        per_s = self._write("random", BLOCK, length, int(times * length) // BLOCK * BLOCK)
        host, own, moved = (now - then for now, then in zip(self._counted(), before, strict=True))
        return Lasting(per_s, (own + moved) / host)

    def _counted(self) -> list[int]:
        counters = self.drive.counters()
        assert counters is not None, "a twin counts"
        return [counters[key] for key in COUNTED]

    def _write(
        self, pattern: Literal["sequential", "random"], block: int, length: int, amount: int
    ) -> float:
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
        found = run_job(self.drive, job)
        return found.requests / found.seconds
