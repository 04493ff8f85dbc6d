"""What readings say of two places: hand-made answers to the questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from ssdlab.experiments.stripe.conflict import (
    READINGS_MAX,
    Ask,
    Book,
    Inquiry,
    Reading,
    answered,
    one_queue,
    reading_of,
    share_a_unit,
)

PAIR = Ask(1 << 20, (0, 32 << 10))
HERE, THERE = Ask(1 << 20), Ask(1 << 20, (32 << 10,))


def _told(inquiry: Inquiry[bool | None], **readings: Reading) -> tuple[bool | None, int]:
    """What an inquiry finds out, and how many answers it took; one answer for each question."""
    words = {PAIR.name: "pair", HERE.name: "here", THERE.name: "there"}
    asked: list[str] = []

    def answer(ask: Ask) -> Reading:
        asked.append(ask.name)
        return readings[words[ask.name]]

    return answered(inquiry, answer), len(asked)


def test_latencies_that_lie_far_apart_are_of_two_units() -> None:
    assert _told(share_a_unit(Book(), PAIR), pair=Reading(100, 1.3)) == (False, 2)


def test_one_queue_no_faster_than_one_place_is_one_unit() -> None:
    told = _told(share_a_unit(Book(), PAIR), pair=Reading(103, 0.1), here=Reading(100, 0.1))
    assert told == (True, 4)


def test_one_queue_that_is_faster_than_each_place_is_two_dies_on_a_channel() -> None:
    alone = Reading(100, 0.0)
    told, _ = _told(share_a_unit(Book(), PAIR), pair=Reading(150, 0), here=alone, there=alone)
    assert told is False


def test_places_of_unequal_speed_on_one_unit_are_held_against_the_faster() -> None:
    slow, fast = Reading(50, 0.1), Reading(100, 0.1)
    told, _ = _told(share_a_unit(Book(), PAIR), pair=Reading(67, 0.1), here=slow, there=fast)
    assert told is True


def test_what_stays_between_the_bounds_is_asked_often_and_then_left_open() -> None:
    assert _told(one_queue(Book(), PAIR), pair=Reading(100, 0.7)) == (None, READINGS_MAX)
    alone = Reading(100, 0.0)
    told, asked = _told(share_a_unit(Book(), PAIR), pair=Reading(120, 0), here=alone, there=alone)
    assert told is None
    assert asked == 3 * READINGS_MAX


def test_an_inquiry_without_an_answer_ends_with_nothing() -> None:
    answers: Iterator[Reading | None] = iter([Reading(100, 1.3), None])
    answer: Callable[[Ask], Reading | None] = lambda _ask: next(answers)  # noqa: E731
    assert answered(one_queue(Book(), PAIR), answer) is None


def test_the_spread_is_the_middle_four_fifths_over_the_median() -> None:
    latency = np.array([10, 20, 30, 1000], dtype=np.uint64)
    counts = np.array([10, 45, 40, 5], dtype=np.uint64)
    reading = reading_of(2.0, 8 << 20, latency, counts)
    assert reading.mib_per_s == pytest.approx(4.0)
    assert reading.spread == pytest.approx((30 - 10) / 20)


def test_a_question_is_known_by_its_words() -> None:
    assert HERE.name == "every 1024 KiB"
    assert PAIR.name == "every 1024 KiB + 0 KiB or 32 KiB"
    assert Ask(1 << 20, (4096,), 8192).name == "every 1024 KiB + 4 KiB, by 8 KiB"
