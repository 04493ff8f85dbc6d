"""What times of flushes and what is said of a drive make together."""

from __future__ import annotations

import pytest

from ssdlab.experiments.fsync.analysis import Probe, _cost, class_of

SAID = {word: (word, "its maker") for word in ("protected", "volatile", "unknown")}
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("probe", "said", "word"),
    [
        # empty, write, flush in us
        (Probe(5, 11, 766), "volatile", "volatile"),
        (Probe(5, 11, 766), "unknown", "volatile"),
        (Probe(5, 11, 81), "volatile", "volatile"),  # 76: what the fastest flash takes
        (Probe(5, 11, 79), "volatile", "ignores flush"),
        (Probe(45, 84, 45), "protected", "protected"),
        (Probe(45, 84, 45), "unknown", "ignores flush"),
        (Probe(45, 84, 45), "volatile", "ignores flush"),
        (Probe(400, 60, 420), "protected", "protected"),
        (Probe(400, 60, 420), "unknown", None),  # slow, whatever there is to flush
        (Probe(5, 900, 6), "unknown", None),  # the write waited itself
    ],
)
def test_flushes_that_wait_for_flash_are_volatile_and_others_what_is_said(
    probe: Probe, said: str, word: str | None
) -> None:
    assert class_of(probe, SAID[said], NONE).value == word


def test_a_drive_that_is_said_to_be_protected_and_still_waits_is_volatile_with_advice() -> None:
    found = class_of(Probe(5, 60, 1200), SAID["protected"], NONE)
    assert found.value == "volatile"
    assert "hdparm -W 0" in found.why


def test_a_suspicion_is_called_one_and_names_the_witness() -> None:
    found = class_of(Probe(5, 11, 6), SAID["volatile"], NONE)
    assert "suspicion" in found.why
    assert "ssdlab witness" in found.why


def test_without_barriers_no_drive_is_judged() -> None:
    found = class_of(Probe(5, 11, 6), SAID["volatile"], frozenset({"no-barrier"}))
    assert found.value is None
    assert "sends no flush" in found.why


@pytest.mark.parametrize(
    ("penalty", "low", "words"),
    [
        (1.05, 1.01, "next to nothing"),
        (1.4, 0.9, "less than the repeats scatter"),
        (1.4, 1.2, "1.4 times slower"),
        (8.56, None, "8.56 times slower"),
    ],
)
def test_a_cost_within_the_scatter_is_not_called_one(
    penalty: float, low: float | None, words: str
) -> None:
    assert words in _cost(penalty, low)
