"""Sizes of test files: they fit the room, the time and the drive's speed."""

from __future__ import annotations

import pytest

from ssdlab.checkup.parts import LIMIT_S, RESERVED_S, USUAL_SIZES, Sizing, choose, measured_rates
from ssdlab.errors import UsageError
from ssdlab.experiments import Aging, Cache
from ssdlab.target import Directory, Twin

MIB = 1 << 20
HERE = Directory(".")
SATA = {"fill": 500e6, "read": 500e6, "overwrite": 80e6}


def test_with_room_and_a_fast_drive_the_usual_sizes_are_used() -> None:
    for name, size in USUAL_SIZES.items():
        chosen = choose(name, HERE, Sizing(10 << 30, SATA, RESERVED_S[name])).parameters
        assert chosen is not None
        assert chosen.experiment() == name
        assert getattr(chosen, "size", None) in {size, None}


@pytest.mark.parametrize("name", ["suite", "fsync", "aging", "cache"])
def test_a_test_file_is_no_larger_than_the_room(name: str) -> None:
    chosen = choose(name, HERE, Sizing(20 * MIB + 5, SATA, 100.0)).parameters
    assert chosen is not None
    assert getattr(chosen, "size", None) == 20 * MIB
    refused = choose(name, HERE, Sizing(15 * MIB, SATA, 100.0))
    assert refused.parameters is None
    free = "5 % of the file system, at least 1 GiB and at most 8 GiB, must stay free"
    assert f"only 15 MiB may be used, because {free}" in refused.why_not


def test_on_a_slow_drive_the_files_are_halved_until_the_time_suffices() -> None:
    slow = {"fill": 40e6, "read": 40e6, "overwrite": 2e6}
    aging = choose("aging", HERE, Sizing(10 << 30, slow, 80.0)).parameters
    cache = choose("cache", HERE, Sizing(10 << 30, slow, 50.0)).parameters
    assert isinstance(aging, Aging)
    assert isinstance(cache, Cache)
    assert aging.size == 32 * MIB
    assert cache.size == 256 * MIB
    slowest = {"fill": 1e6, "read": 1e6, "overwrite": 2e4}
    refused = choose("aging", HERE, Sizing(10 << 30, slowest, 80.0))
    assert refused.parameters is None
    assert "would take about" in refused.why_not


def test_a_twin_has_no_time_to_fit() -> None:
    slowest = Sizing(1 << 30, {"fill": 1e6, "overwrite": 1e3}, 1.0)
    aging = choose("aging", Twin("toshiba-xg5", 1 << 30), slowest).parameters
    assert isinstance(aging, Aging)
    assert aging.size == 512 * MIB


def test_the_rates_are_those_of_the_suite() -> None:
    rows = [
        {"test": "sequential", "op": "write", "mean": 400.0},
        {"test": "sequential x1", "op": "read", "mean": 300.0},
        {"test": "random 4k", "op": "write", "mean": 20.0},
        {"test": "access time", "op": "read", "mean": 90.0},
    ]
    assert measured_rates(rows) == {"fill": 400.0 * MIB, "read": 300.0 * MIB, "overwrite": 20 * MIB}


def test_the_reserved_times_leave_time_for_the_doctor() -> None:
    assert 20 <= LIMIT_S - sum(RESERVED_S.values()) <= 60


def test_a_block_device_is_refused() -> None:
    from pathlib import Path

    from ssdlab.checkup.execute import options_for
    from ssdlab.target import BlockDevice

    with pytest.raises(UsageError, match="never overwrites one; give a directory on it"):
        options_for(BlockDevice("/dev/sdz"), Path("runs"), 0)
