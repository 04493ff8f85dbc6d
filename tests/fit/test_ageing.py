"""Read times of an ageing file are scaled to the drive's file."""

from __future__ import annotations

import pytest

from ssdlab import profiles
from ssdlab.fit.ageing import FINAL_FILE, AgeingRow, twin_seconds
from ssdlab.profiles.toml_edit import set_value

ROW = AgeingRow("drive", 4096.0, (50.0, 800.0), (1.0, 1.0, 1.0))
CACHE = {"size": "128000 MiB", "mode": "dynamic", "program": "229 us", "read": "20 us"}


@pytest.mark.parametrize("has_cache", [False, True])
def test_the_size_of_the_scaled_file_does_not_decide_the_times(*, has_cache: bool) -> None:
    """In idle time, an SLC cache folds as large a share of a small file as of a large one."""
    profile = set_value(profiles.load("toshiba-xg5"), "flash.program", "20 ms")
    for key, value in CACHE.items() if has_cache else ():
        profile = set_value(profile, f"slc.{key}", value)
    small, large = (twin_seconds(profile, ROW, size=size) for size in (FINAL_FILE, 2 * FINAL_FILE))
    assert small == pytest.approx(large, rel=0.05)


def test_reads_do_not_wait_for_a_protected_buffer_that_is_not_scaled() -> None:
    profile = set_value(profiles.load("toshiba-xg5"), "flash.program", "10 ms")
    for key, value in (*CACHE.items(), ("program", "8 ms")):
        profile = set_value(profile, f"slc.{key}", value)
    profile = set_value(profile, "buffer.size", "32 MiB")
    honest, protected = (
        twin_seconds(set_value(profile, "buffer.power_loss_protection", value), ROW)
        for value in (False, True)
    )
    assert protected[0] == pytest.approx(honest[0], rel=0.25)
