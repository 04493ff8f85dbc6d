"""Layouts in which a unit has several chunks of a stripe: planes that read independently."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from known_layouts import MIB, Twin
from random_drives import NoisyDrive
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.device import Drive, open_twin
from ssdlab.experiments.stripe.analysis import conclude
from ssdlab.experiments.stripe.measure import Plan, measure
from ssdlab.experiments.stripe.probes import Procedure, run_procedure
from ssdlab.experiments.stripe.repeats import ONCE, Chunks, Repeats, find_repeats
from ssdlab.profiles.toml_edit import set_value, set_values
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession

NOISE = 0.05


def _run(text: str) -> Conclusion:
    drive = cast(Drive, NoisyDrive(open_twin("known", text), NOISE, random.Random(1)))
    session = RunSession(OpenTarget(drive, {}))
    plan = Plan(size=256 * MIB, reads=4096)
    session.run_plan(measure, plan)
    return conclude(Evidence(session.recording.tables(), plan.parameters()))


@pytest.mark.parametrize(
    ("twin", "found"),
    [
        (Twin(3, 4, chunk=128, planes=4, page=16), (16, 1536, 48, 2, 64)),
        (Twin(4, 2, chunk=4, planes=2, page=16), (4, 256, 16, 4, 32)),
        (Twin(4, 2, chunk=32, planes=2, page=16), (16, 256, 16, None, None)),
    ],
    ids=["pages of a chunk", "chunks of a page", "one page of a chunk"],
)
def test_planes_are_the_units_of_their_layout(twin: Twin, found: tuple[Any, ...]) -> None:
    conclusion = _run(set_value(twin.profile(1024), "flash.independent_plane_reads", True))
    names = ("chunk_kib", "stripe_kib", "units", "chunks_per_unit", "chunk_distance_kib")
    values = {name: finding.value for name, finding in conclusion.findings.items()}
    assert tuple(values.get(name) for name in names) == found
    assert ("planes that read independently" in conclusion.verdict) is (found[3] is not None)


def _found(units: list[int], first: int = 1) -> Repeats | None:
    """What is found in a stripe whose chunks, of one byte, are on these units."""

    def conflict(one: int, other: int) -> Procedure[bool]:
        yield from ()
        return units[one % len(units)] == units[other % len(units)]

    return run_procedure(find_repeats(Chunks(len(units), first, 1), conflict), lambda _: None)


@pytest.mark.parametrize("first", range(24))
@pytest.mark.parametrize(
    ("unit_of", "repeats"),
    [
        (lambda chunk: chunk, ONCE),
        (lambda chunk: (chunk // 8, chunk % 4), Repeats(2, 4)),
        (lambda chunk: (chunk // 12, chunk % 3), Repeats(4, 3)),
        (lambda chunk: chunk // 2, Repeats(2, 1)),
    ],
)
def test_any_chunk_shows_how_often_its_unit_occurs(
    first: int, unit_of: Callable[[int], Any], repeats: Repeats
) -> None:
    assert _found([hash(unit_of(chunk)) for chunk in range(24)], first) == repeats


def test_chunks_of_a_unit_are_found_at_each_divisor_of_the_stripe() -> None:
    """20 dies with three planes, and three chunks in a page."""
    assert _found([hash((chunk // 60, chunk % 20)) for chunk in range(180)]) == Repeats(3, 20)


@pytest.mark.parametrize("read_us", [64.0, 72.0, 84.0])
def test_dies_that_share_a_slow_channel_do_not_contradict_a_stripe(read_us: float) -> None:
    """Two dies of a channel wait in one queue, but are a little faster than one."""
    text = Twin(4, 4, chunk=32, page=16, read=(read_us,), channel=200).profile(1024)
    text = set_values(text, {"flash.cache_register": False, "ftl.mapping_unit": "16 KiB"})
    findings = _run(text).findings
    assert (findings["chunk_kib"].value, findings["units"].value) == (32, 16)


@pytest.mark.parametrize(
    "units",
    [
        [chunk // 2 for chunk in range(41)],
        [7 if chunk == 16 else chunk // 8 * 4 + chunk % 4 + 6 for chunk in range(24)],
        [1, 0, 2, 3, 4, 5, 0, 7],
        [0, 1, 0, 1, 2, 3, 2, 4],
        [0, 1, 2, 0, 1, 2, 3, 3, 4, 4, 5, 5],
        [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3],
    ],
)
def test_units_that_occur_more_often_than_others_are_irregular(units: list[int]) -> None:
    assert _found(units) is None
