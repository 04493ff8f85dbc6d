"""Runs on this machine's cores: a lost worker costs its own run, a failed one its own too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from multiprocessing import active_children
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from ssdlab.errors import UsageError
from ssdlab.sweep.design import Order
from ssdlab.sweep.here import Ended, perform_here
from ssdlab.sweep.work import memory_of, perform, workers_for

Told = Callable[[dict[str, Any] | None], dict[str, Any]]
ENDLESS = 1e8
"""Drive writes of a run that takes days."""
PATIENCE_S = 600


def test_a_worker_killed_in_mid_run_costs_one_run_a_second_try_and_nothing_twice(
    small: list[Order], told: Told
) -> None:
    # One that is over before its worker is killed gets a longer one after it.
    longer = (_longer(small[1], drive_writes) for drive_writes in (30.0, 300.0, 3000.0, 30000.0))
    assert any(_is_lost_once([small[0], long, *small[2:6]], told) for long in longer)


def _is_lost_once(runs: list[Order], told: Told) -> bool:
    """Whether the worker of the second, long run was killed while it was at it."""
    ended = _with_all_killed_after_the_first(runs)
    assert Counter(each.order.key for each in ended) == Counter(order.key for order in runs)
    assert all(each.row is not None for each in ended)
    assert active_children() == []
    [again] = [each for each in ended if each.order is runs[1]]
    assert told(again.row) == told(perform(runs[1]))
    assert again.attempts <= 2
    return again.attempts == 2


def _with_all_killed_after_the_first(runs: list[Order]) -> list[Ended]:
    ended = []
    with closing(perform_here(runs, 2)) as ends:
        for each in ends:
            ended.append(each)
            if len(ended) == 1:  # the long run is under way
                for child in active_children():
                    child.kill()
    return ended


def _longer(order: Order, drive_writes: float) -> Order:
    return msgspec.structs.replace(order, plan={**order.plan, "drive_writes": drive_writes})


def test_a_run_that_fails_is_tried_twice_and_leaves_the_others_alone(small: list[Order]) -> None:
    broken = msgspec.structs.replace(small[0], key="broken", profile="[drive]\n")
    ended = {each.order.key: each for each in perform_here([broken, *small[1:4]], 2)}
    assert len(ended) == 4
    assert ended["broken"].row is None
    assert ended["broken"].attempts == 2
    assert "TargetError" in ended["broken"].reason
    assert all(each.row for key, each in ended.items() if key != "broken")


def test_a_run_whose_worker_is_lost_twice_is_given_up_with_that_reason(
    small: list[Order],
) -> None:
    over = Event()

    def lose_all() -> None:
        while not over.wait(0.2):
            for child in active_children():
                child.kill()

    enemy = Thread(target=lose_all)
    enemy.start()
    try:
        [ended] = perform_here([_longer(small[0], ENDLESS)], 1)
    finally:
        over.set()
        enemy.join()
    assert (ended.row, ended.reason, ended.attempts) == (None, "its worker was killed", 2)


def test_closing_ends_what_is_still_running(small: list[Order]) -> None:
    ends = perform_here([small[0], *(_longer(order, ENDLESS) for order in small[1:])], 2)
    assert next(ends).order is small[0]
    ending = Thread(target=ends.close, daemon=True)
    ending.start()
    ending.join(PATIENCE_S)
    left = active_children()
    for child in left:
        child.kill()
    assert left == []


def test_memory_bounds_how_many_run_at_a_time(small: list[Order]) -> None:
    one = memory_of(small[0])
    assert workers_for(small, 8, available=3 * one) == 2
    assert workers_for(small, 1, available=100 * one) == 1
    assert workers_for(small[:1], 8, available=100 * one) == 1
    with pytest.raises(UsageError, match="smaller capacity"):
        workers_for(small, None, available=one)


def test_a_larger_twin_is_planned_more_memory_than_it_takes(small: list[Order]) -> None:
    large = msgspec.structs.replace(small[0], flash=512 << 30)
    assert memory_of(large) - memory_of(small[0]) > 10 * (500 << 30) // 4096
