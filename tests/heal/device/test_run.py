"""The measured speeds of a device decide what is rewritten; the speeds here are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.run import DeviceHeal, DeviceLayout
from ssdlab.heal.device.windows import Window
from ssdlab.heal.methods.rewriter import RewriteResult
from ssdlab.heal.options import HealOptions
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.pieces import Piece, Range
from ssdlab.heal.speed import ReadSpeedMeter

M = 1 << 20
FRESH, SLOW = 500.0 * M, 200.0 * M


@dataclass
class SimulatedDevice:
    """400 MiB, slow from 100 to 180 MiB until rewritten; the MiB at 140 is free."""

    gets_faster: bool = True
    aged: set[int] = field(default_factory=lambda: set(range(100, 180)) - {140})
    rewritten: list[Range] = field(default_factory=list)

    def measure(self, ranges: Sequence[Range], _label: str) -> list[Piece]:
        return [Piece(each, SLOW if self._is_slow(each) else FRESH) for each in ranges]

    def best_of(self, pieces: list[Piece], _limit: float, _label: str) -> list[Piece]:
        return pieces

    def close(self) -> None:
        pass

    def rewrite(self, window: Window) -> RewriteResult:
        self.rewritten += window.ranges
        if self.gets_faster:
            for each in window.ranges:
                self.aged -= set(range(each.offset // M, -(-each.end // M)))
        return RewriteResult(window.length, window.length)

    def _is_slow(self, each: Range) -> bool:
        return any(at in self.aged for at in range(each.offset // M, -(-each.end // M)))


def healed(simulated: SimulatedDevice, options: HealOptions, begin_at: int = 0) -> FileOutcome:
    ranges = [Range(M, 139 * M), Range(141 * M, 259 * M)]
    device = cast(DirectDevice, None)
    layout = DeviceLayout(device, 400 * M, 4096, ranges, (), begin_at)
    result = FileOutcome("device")

    class SimulatedHeal(DeviceHeal):
        def speed_meter(self) -> ReadSpeedMeter:
            return cast(ReadSpeedMeter, simulated)

    SimulatedHeal(layout, options, lambda *_: None, result).run(lambda: simulated)
    return result


def test_only_slow_pieces_in_use_are_rewritten() -> None:
    simulated = SimulatedDevice()
    outcome = healed(simulated, HealOptions(piece_bytes=4 * M))
    assert outcome.plan == [(100 * M, 40 * M), (141 * M, 39 * M)]
    assert outcome.written_bytes == sum(each.length for each in simulated.rewritten) == 79 * M
    assert [row.offset_bytes // M for row in outcome.map if row.is_slow] == list(range(100, 180, 4))
    assert all(row.after_mib_per_s == 500 for row in outcome.map if row.is_rewritten)
    assert outcome.after_mib_per_s == 500


def test_a_heal_stops_if_the_first_part_is_not_faster() -> None:
    simulated = SimulatedDevice(gets_faster=False)
    outcome = healed(simulated, HealOptions(piece_bytes=4 * M))
    assert outcome.no_gain
    assert outcome.written_bytes == 32 * M


@pytest.mark.parametrize(("begin_at", "planned"), [(0, 398), (200 * M, 200)])
def test_a_complete_rewrite_continues_where_an_earlier_run_stopped(
    begin_at: int, planned: int
) -> None:
    simulated = SimulatedDevice()
    outcome = healed(simulated, HealOptions(everything=True, piece_bytes=4 * M), begin_at)
    assert outcome.planned_bytes == outcome.written_bytes == planned * M


def test_chosen_ranges_are_extended_to_blocks_and_limited_to_space_in_use() -> None:
    simulated = SimulatedDevice()
    outcome = healed(
        simulated, HealOptions(ranges=((0, M + 1), (139 * M, 3 * M)), piece_bytes=4 * M)
    )
    assert outcome.plan == [(M, 4096), (139 * M, M), (141 * M, M)]
