"""Options of steady, and their defaults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab.device import Zipf
from ssdlab.errors import UsageError
from ssdlab.experiments.steady.parameters import Steady
from ssdlab.experiments.steady.plan import Plan, check, pattern_of, plan
from ssdlab.target import Directory, Twin, parse_target

MIB = 1 << 20


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"block": 3000}, "--block-size"),
        ({"depth": 0}, "--depth"),
        ({"drive_writes": 0.5}, "--drive-writes"),
        ({"spares": (0.28, 0.07)}, "--spare"),
        ({"spares": (0.95,)}, "--spare"),
        ({"spares": (0.9,), "region": 64 * MIB}, "--spare leaves"),
        ({"pattern": "zipf:-1"}, "--pattern"),
        ({"pattern": "zipf:x"}, "--pattern"),
    ],
)
def test_an_option_out_of_range_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=f"{message}.*"):
        check(replace(Plan(), **wrong))  # type: ignore[arg-type]


def test_the_region_is_the_whole_drive_by_default_and_at_most() -> None:
    twin = Twin("toshiba-xg5", 256 * MIB)
    assert plan(Steady(), twin, 0).region == twin.capacity_bytes // MIB * MIB
    assert plan(Steady(quick=True), Directory("."), 0).region == 512 * MIB
    with pytest.raises(UsageError, match=r"--size is 1GiB; .* at most 256 MiB, the drive's size"):
        plan(Steady(region="1GiB"), twin, 0)


def test_the_zipf_pattern_has_a_parameter() -> None:
    assert pattern_of("zipf:1.1") == Zipf(1.1)


def test_a_twin_and_a_block_device_have_a_capacity_and_a_directory_none(tmp_path: Path) -> None:
    assert parse_target("twin:toshiba-xg5", 1 << 30).capacity_bytes == 1 << 30
    assert parse_target(str(tmp_path)).capacity_bytes is None
