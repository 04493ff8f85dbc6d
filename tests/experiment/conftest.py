"""What the tests of experiments share: a small plan, and a listener that ends a run."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from ssdlab.experiment.aging import Plan
from ssdlab.experiment.frame.progress import Report

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def small_plan() -> Plan:
    """A whole run of the experiment in a fraction of a second."""
    amounts = (256 * KIB, 512 * KIB)
    return Plan(size=16 * MIB, amounts=amounts, rests_s=(0.0, 0.01), seed=1)


@pytest.fixture
def ctrl_c_at() -> Callable[[str], Callable[[Report], None]]:
    """`ctrl_c_at(words)`: a listener that presses Ctrl-C in the first step with these words."""

    def make(words: str) -> Callable[[Report], None]:
        pressed: list[str] = []

        def listen(report: Report) -> None:
            if words in report.label and not pressed:
                pressed.append(report.label)
                signal.raise_signal(signal.SIGINT)

        return listen

    return make
