"""Two twins as RAID 1, through Python."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.device import Drive, Job, open_mirror, open_twin, run_job
from ssdlab.errors import TargetError, UsageError
from ssdlab.fit.published import ProvisionedDrive

MIB = 1 << 20
PROFILE = profiles.load("samsung-840-pro")


def _write(drive: Drive, length: int, pattern: str = "random") -> float:
    return run_job(
        drive,
        Job(
            "write",
            pattern="random" if pattern == "random" else "sequential",
            length_bytes=length,
            block_bytes=4096,
            amount_bytes=length,
            queue_depth=32,
        ),
    ).seconds


def _written(drive: Drive) -> list[int]:
    both = [drive.counters(member) for member in (0, 1)]
    return [counters["host_writes"] for counters in both if counters is not None]


def _flash_and_host(drive: Drive, member: int) -> tuple[int, int]:
    """Units written to the flash of a member, and by the host."""
    counters = drive.counters(member)
    assert counters is not None
    flash = counters["nand_host_writes"] + counters["nand_collection_writes"]
    return flash, counters["host_writes"]


def test_writes_go_to_both_twins_at_the_speed_of_one() -> None:
    mirror, single = (opened("x", PROFILE, 256 * MIB) for opened in (open_mirror, open_twin))
    assert mirror.is_virtual
    assert mirror.engine == "mirror"
    assert _write(mirror, 32 * MIB) == pytest.approx(_write(single, 32 * MIB), rel=0.01)
    assert _written(mirror) == [8192, 8192]


def test_a_resync_writes_all_of_the_second_twin() -> None:
    mirror = open_mirror("x", PROFILE, 256 * MIB)
    _write(mirror, 16 * MIB)
    assert mirror.resync()
    first, second = _written(mirror)
    assert second - first == 256 * MIB // 4096
    assert not open_twin("x", PROFILE, 256 * MIB).resync()


def test_after_a_resync_the_second_twin_has_to_collect_garbage_until_the_rest_is_trimmed() -> None:
    array = ProvisionedDrive(PROFILE, 1_000_215_216 * 512, 1 / 256, mirrored=True)

    def amplified() -> list[float]:
        before = [_flash_and_host(array.drive, member) for member in (0, 1)]
        for _ in range(8):
            array.write_randomly(array.area, 1.0)
        after = [_flash_and_host(array.drive, member) for member in (0, 1)]
        return [(b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(before, after, strict=True)]

    array.write_in_order(array.area)
    assert max(amplified()) < 1.05
    assert array.drive.resync()
    first, second = amplified()
    assert first < 1.05
    assert second > 1.2
    array.trim_beyond_area()
    amplified()
    assert max(amplified()) < 1.05


def test_a_mirror_has_one_queue_and_takes_a_valid_profile() -> None:
    mirror = open_mirror("x", PROFILE, 256 * MIB)
    job = Job("read", length_bytes=MIB, block_bytes=4096, amount_bytes=MIB, threads=2)
    with pytest.raises(UsageError, match="1 for a mirror"):
        run_job(mirror, job)
    with pytest.raises(TargetError, match="x"):
        open_mirror("x", "[drive]")
