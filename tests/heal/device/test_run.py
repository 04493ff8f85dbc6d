"""What is measured of a device decides what is rewritten; readings here are given, not timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.run import DeviceCourse, Patient
from ssdlab.heal.device.windows import Window
from ssdlab.heal.methods.rewriter import Rewritten
from ssdlab.heal.options import Wish
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.pieces import Piece, Range
from ssdlab.heal.speed import Speedometer

M = 1 << 20
FRESH, SLOW = 500.0 * M, 200.0 * M


@dataclass
class Given:
    """A device of 400 MiB, slow from 100 to 180 MiB until it is rewritten; 140 MiB is free."""

    mends: bool = True
    aged: set[int] = field(default_factory=lambda: set(range(100, 180)) - {140})
    rewritten: list[Range] = field(default_factory=list)

    def measure(self, ranges: Sequence[Range], _label: str) -> list[Piece]:
        return [Piece(each, SLOW if self._is_slow(each) else FRESH) for each in ranges]

    def best_of(self, pieces: list[Piece], _limit: float, _label: str) -> list[Piece]:
        return pieces

    def close(self) -> None:
        pass

    def rewrite(self, window: Window) -> Rewritten:
        self.rewritten += window.ranges
        if self.mends:
            for each in window.ranges:
                self.aged -= set(range(each.offset // M, -(-each.end // M)))
        return Rewritten(window.length, window.length)

    def _is_slow(self, each: Range) -> bool:
        return any(at in self.aged for at in range(each.offset // M, -(-each.end // M)))


def healed(given: Given, wish: Wish, begin_at: int = 0) -> FileOutcome:
    ranges = [Range(M, 139 * M), Range(141 * M, 259 * M)]
    device = cast(DirectDevice, None)
    patient = Patient(device, 400 * M, 4096, ranges, (), begin_at)
    result = FileOutcome("device")

    class RunSession(DeviceCourse):
        def speedometer(self) -> Speedometer:
            return cast(Speedometer, given)

    RunSession(patient, wish, lambda *_: None, result).run(lambda: given)
    return result


def test_what_is_slow_and_in_use_is_rewritten_and_nothing_else() -> None:
    given = Given()
    outcome = healed(given, Wish(piece_bytes=4 * M))
    assert outcome.plan == [(100 * M, 40 * M), (141 * M, 39 * M)]
    assert outcome.written_bytes == sum(each.length for each in given.rewritten) == 79 * M
    assert [row.offset_bytes // M for row in outcome.map if row.is_slow] == list(range(100, 180, 4))
    assert all(row.after_mib_per_s == 500 for row in outcome.map if row.is_rewritten)
    assert outcome.after_mib_per_s == 500


def test_a_first_part_that_brings_no_gain_is_the_last() -> None:
    given = Given(mends=False)
    outcome = healed(given, Wish(piece_bytes=4 * M))
    assert outcome.no_gain
    assert outcome.written_bytes == 32 * M


@pytest.mark.parametrize(("begin_at", "planned"), [(0, 398), (200 * M, 200)])
def test_all_of_it_is_rewritten_from_where_a_run_before_ended(begin_at: int, planned: int) -> None:
    given = Given()
    outcome = healed(given, Wish(everything=True, piece_bytes=4 * M), begin_at)
    assert outcome.planned_bytes == outcome.written_bytes == planned * M


def test_chosen_ranges_are_grown_to_blocks_and_cut_to_what_is_in_use() -> None:
    given = Given()
    outcome = healed(given, Wish(chosen=((0, M + 1), (139 * M, 3 * M)), piece_bytes=4 * M))
    assert outcome.plan == [(M, 4096), (139 * M, M), (141 * M, M)]
