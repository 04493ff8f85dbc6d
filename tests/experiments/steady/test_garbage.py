"""Known garbage: where collection begins, and what it costs, whatever the order of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.steady import garbage
from ssdlab.experiments.steady.garbage import AT_RANDOM, NOT_MEASURED, Garbage, known_garbage
from ssdlab.stats.steady import Progress

REGION = 8000.0
ENDS = (1 / 8, 1 / 4, 1 / 2, 3 / 4)


def _drive(
    hidden: float,
    once: Sequence[float] = (1.0,) * 100,
    link: float = 1.0,
    period: float = 0.0,
) -> dict[str, Progress]:
    """Curves of a drive that programs a byte per second; `once`: rates of the first writes.

    `period`: bytes between the stops of a drive that collects whole victims.
    """
    curves = {"once": Progress([REGION / 100 / rate for rate in once], [REGION / 100] * 100)}
    written = start = 0.0
    for end in ENDS:
        amount = REGION * (end - start) / 200
        seconds = []
        for _ in range(200):
            if written < hidden:
                seconds.append(amount * max(1.0, 1 / link))
            elif not period:
                seconds.append(amount / end)
            else:
                stops = (written - hidden + amount) // period - (written - hidden) // period
                seconds.append(amount + stops * period * (1 / end - 1))
            written += amount
        curves[str(end)] = Progress(seconds, [amount] * 200)
        start = end
    return curves


def _known(
    monkeypatch: pytest.MonkeyPatch,
    curves: dict[str, Progress],
    buffer: float = 0.0,
    ends: Sequence[float] = ENDS,
) -> Garbage | str:
    steps: list[dict[str, Any]] = [{"case": "once", "value": None}]
    steps += [{"case": "again", "value": end} for end in ends]
    monkeypatch.setattr(Evidence, "steps", lambda _self, _phase=None: steps)
    monkeypatch.setattr(
        garbage, "progress", lambda _, found: curves[str(found[0]["value"] or found[0]["case"])]
    )
    return known_garbage(Evidence({}, {}), buffer)


@pytest.mark.parametrize(
    ("hidden", "trimmed"), [(400.0, 1 / 8), (960.0, 1 / 4), (1000.0, 1 / 4), (3000.0, 1 / 2)]
)
def test_hidden_flash_and_the_first_part_that_shows_collection(
    hidden: float, trimmed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Collection that begins near the end of a part shows its rate in the next one."""
    found = _known(monkeypatch, _drive(hidden))
    assert isinstance(found, Garbage)
    assert found.trimmed == trimmed
    assert found.rate == pytest.approx(trimmed, rel=0.01)
    assert found.hidden is not None
    assert found.hidden.value == pytest.approx(hidden, rel=0.03)
    assert found.waf == 1 / trimmed


def test_what_a_buffer_holds_at_the_end_of_a_part_may_have_been_collected_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A buffer of a fifth of the first part: collection begins in the flush after it."""
    buffer, amount = 200.0, 5.0

    def part(cost: float) -> Progress:
        return Progress([1e-6] * 40 + [cost * amount] * 160, [amount] * 200)

    curves = _drive(950.0) | {"0.125": part(1.0), "0.25": part(4.0)}
    found = _known(monkeypatch, curves, buffer)
    assert isinstance(found, Garbage)
    assert found.hidden.low < 810.0
    assert found.hidden.high == 1000.0


@pytest.mark.parametrize(("cost", "is_known"), [(4.0, True), (5.0, True), (7.0, False)])
def test_a_cost_that_hardly_depends_on_the_valid_share_is_not_that_of_collection(
    cost: float, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part after that of WAF 8, which costs 8, has a WAF of 4 and costs about half as much."""
    curves = _drive(400.0)
    amount = REGION / 8 / 200
    curves["0.25"] = Progress([cost * amount] * 200, [amount] * 200)
    found = _known(monkeypatch, curves)
    assert isinstance(found, Garbage) is is_known
    assert is_known or "hardly depends" in str(found)


@pytest.mark.parametrize("period", [90.0, 130.0, 170.0])
def test_the_rate_of_a_drive_that_collects_whole_victims_is_that_of_whole_victims(
    period: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plateau of 300 to 600 bytes contains two to six stops, and a part of one."""
    found = _known(monkeypatch, _drive(1100.0, period=period))
    assert isinstance(found, Garbage)
    assert found.rate == pytest.approx(found.trimmed, rel=0.03)
    assert found.hidden.low <= 1100.0 <= found.hidden.high


def test_a_plateau_with_a_single_stop_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _known(monkeypatch, _drive(6000.0, period=1000.0))
    assert isinstance(found, str)


def test_a_rate_that_falls_before_any_block_is_written_twice_shows_victims_at_random(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The share of full superblocks among the victims grows as the region fills."""
    once = [1 - at / 110 for at in range(100)]
    assert _known(monkeypatch, _drive(400.0, once)) == AT_RANDOM
    assert _known(monkeypatch, _drive(400.0, once), ends=()) == AT_RANDOM
    assert _known(monkeypatch, _drive(400.0), ends=()) == NOT_MEASURED


def test_a_drive_that_collects_full_superblocks_too_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rate is lower from the start, and falls again where the share of victims is known."""
    curves = _drive(600.0)
    eighth = curves["0.125"]
    seconds = eighth.between(0.0, eighth.written, 200)
    seconds[seconds < seconds.max() / 2] *= 1.3
    curves["0.125"] = Progress(seconds, [eighth.written / 200] * 200)
    found = _known(monkeypatch, curves)
    assert isinstance(found, str)
    assert "several steps" in found


@pytest.mark.parametrize(
    ("hidden", "cost", "is_known"),
    [(3000.0, 1.05, True), (3000.0, 1.25, False), (900.0, 1.25, True)],
)
def test_a_drive_that_chooses_from_many_collects_before_all_hidden_flash_has_taken_data(
    hidden: float, cost: float, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the rate is lower just before the fall; with little hidden flash, that may be chance."""
    curves = _drive(hidden)
    end = 0.125 if hidden < 1000 else 0.5
    part, start = curves[str(end)], 0.0 if hidden < 1000 else 2000.0
    amount = part.written / 200
    seconds = part.between(0.0, part.written, 200)
    at = start + amount * np.arange(200)
    seconds[(at > 0.8 * hidden) & (at < 0.95 * hidden)] *= cost
    curves[str(end)] = Progress(seconds, [amount] * 200)
    found = _known(monkeypatch, curves)
    assert isinstance(found, Garbage) is is_known
    assert is_known or "several steps" in str(found)


@pytest.mark.parametrize(("cost", "is_known"), [(1.25, False), (1.35, True)])
def test_the_last_part_shows_collection_if_it_costs_what_its_victims_do(
    cost: float, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of each victim is valid, which costs 1.33 programs."""
    curves = _drive(5000.0)
    curves["0.75"] = Progress([10.0] * 100 + [10.0 * cost] * 100, [10.0] * 200)
    found = _known(monkeypatch, curves)
    assert isinstance(found, Garbage) is is_known


def test_victims_chosen_from_a_few_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    once = [1.0] * 80 + [0.7] * 20
    found = _known(monkeypatch, _drive(400.0, once))
    assert isinstance(found, str)
    assert "from a few" in found


def test_a_drive_whose_rate_does_not_fall_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _known(monkeypatch, _drive(REGION))
    assert isinstance(found, str)
    assert "did not lower the rate" in found
