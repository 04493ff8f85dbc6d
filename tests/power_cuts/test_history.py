"""The checker itself: it accepts what an honest drive may do, and counts violations."""

from __future__ import annotations

from collections import Counter

import pytest
from drive_clients import UNIT_BYTES
from history import History, Twin, content, sequence_in

UNIT = 5


def history_of(steps: str, twin: Twin = Twin.VOLATILE) -> Counter[str]:
    """The violations in a sequence of steps.

    `w` write, `a` its acknowledgement, `f` flush, `x` end of the connection, `c3` the first read
    after a cut returns write 3, `n3` the same without a cut, `r3` a later read.
    """
    counts: Counter[str] = Counter()
    history = History(range(UNIT, UNIT + 1), twin, counts)
    for step in steps.split():
        data = content(UNIT, int(step[1:] or 0)) if step[1:] != "0" else bytes(UNIT_BYTES)
        match step[0]:
            case "w":
                history.issue(UNIT)
            case "a":
                history.acknowledge([UNIT], durable=False)
            case "f":
                history.flushed(history.flushing())
            case "x":
                history.connection_lost()
            case "r":
                history.later_read(UNIT, data)
            case _:
                history.first_read(UNIT, data, after_cut=step[0] == "c")
    return Counter({key: count for key, count in counts.items() if not key.startswith("units_")})


@pytest.mark.parametrize(
    "steps",
    [
        "w a f w a x c1",
        "w a f w a x c2 r2",
        "w a f w a w a x c1 r1 w a r4 x c1",
        "w a w x c2 r2",
        "w a w x c1 r1",
        "w a w x n1 x c2",
        "w a w x c0 r0",
    ],
)
def test_an_honest_volatile_drive_is_accepted(steps: str) -> None:
    assert not history_of(steps)


@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        ("w a f x c0", "lost_after_flush"),
        ("w a f w a f w a x c1", "lost_after_flush"),
        ("w a f w a f r1", "lost_after_flush"),
        ("w a x c1 x c0", "lost_after_flush"),  # a value read after a cut is in flash
        ("w a w a r1", "lost_on_one_connection"),
        ("w a w x c1 r2", "ghosts"),
        ("w a w x c1 w a r2", "ghosts"),
        ("w a w x c1 w a f x c2", "ghosts"),
        ("w a r7", "corrupt"),
        ("w a x c7", "corrupt"),
    ],
)
def test_a_violation_is_counted_by_its_rule(steps: str, rule: str) -> None:
    assert history_of(steps) == {rule: 1}


def test_a_protected_drive_must_keep_every_acknowledged_write() -> None:
    assert not history_of("w a w x c1", Twin.PROTECTED)
    assert history_of("w a x c0", Twin.PROTECTED) == {"lost_after_flush": 1}


def test_a_lying_drive_may_lose_writes_only_at_cuts() -> None:
    assert history_of("w a f x c0 r0", Twin.LYING) == {"lost_after_flush": 1}
    assert history_of("w a w a r1", Twin.LYING) == {"lost_on_one_connection": 1}


def test_a_torn_or_misplaced_unit_has_no_sequence_number() -> None:
    whole = content(UNIT, 3)
    assert sequence_in(UNIT, whole) == 3
    assert sequence_in(UNIT, whole[:2048] + content(UNIT, 4)[2048:]) is None
    assert sequence_in(UNIT, content(UNIT + 1, 3)) is None
