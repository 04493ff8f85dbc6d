"""Heals one device: measures it, chooses what to rewrite, rewrites it, and measures again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ssdlab.errors import Interrupted
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.windows import Window, measurable_pieces, split_into_windows
from ssdlab.heal.methods.rewriter import RewriteResult
from ssdlab.heal.options import HealOptions, ProgressCallback
from ssdlab.heal.outcome import MIB, FileOutcome, MapRow, days_of_endurance, fresh_speed, mib_per_s
from ssdlab.heal.pieces import (
    Piece,
    Range,
    align,
    average_speed,
    intersection,
    is_faster,
    merge,
    slow_ranges,
    split_at_grid,
    total_bytes,
)
from ssdlab.heal.speed import ReadSpeedMeter
from ssdlab.storage_stack.blockdev import BlockDevice

FIRST_PART_BYTES: Final = 32 << 20
"""After this many bytes are rewritten, a measurement decides whether to continue."""


class Rewriter(Protocol):
    """Rewrites windows of a device."""

    def rewrite(self, window: Window) -> RewriteResult:
        """Rewrites a window; returns after the data is on the drive."""


@dataclass(frozen=True)
class DeviceLayout:
    """An open device, its `ranges` in use, and the byte `begin_at` where an earlier run stopped."""

    device: DirectDevice
    size_bytes: int
    block_bytes: int
    ranges: Sequence[Range]
    drives: Sequence[BlockDevice]
    begin_at: int = 0


class DeviceSpeedMeter(ReadSpeedMeter):
    """Measures through the descriptor of an open device, which cannot be opened a second time."""

    def __init__(self, device: DirectDevice, progress: ProgressCallback) -> None:
        """Measures an open device."""
        self._device, self._progress = device, progress

    def close(self) -> None:
        """Does nothing: the device stays open."""

    def _speed_of(self, each: Range) -> float | None:
        """Speed of a range in bytes per second; None also if it is mostly zeros.

        A drive can return zeros from its map without reading flash. Such pieces would set the fresh
        speed, and all others would look slow.
        """
        seconds, data_bytes = self._device.read_timed(each)
        return each.length / seconds if seconds > 0 and 2 * data_bytes >= each.length else None


def request_text(options: HealOptions) -> str:
    """The user's request, for the journal: a later run with the same text may continue this one."""
    if options.everything:
        return "all"
    return f"{list(options.ranges)}" if options.ranges else "slow"


class DeviceHeal:
    """The steps of healing one device; they record what they find in `result`."""

    def __init__(
        self,
        layout: DeviceLayout,
        options: HealOptions,
        progress: ProgressCallback,
        result: FileOutcome,
    ) -> None:
        self.layout, self.options, self.progress, self.result = layout, options, progress, result
        self.before: list[Piece] = []
        self.after: dict[int, Piece] = {}
        self.slow: list[Range] = []
        self.rewritten: list[Range] = []

    def run(self, rewriter: Callable[[], Rewriter]) -> None:
        """Does all steps; `rewriter` is called once, if anything is to be rewritten.

        An interruption is recorded in the result.
        """
        try:
            self._measure_before()
            chosen = split_into_windows(self._choose())
            self._record_plan(chosen)
            if chosen and not self.options.dry_run:
                self._rewrite(rewriter(), chosen)
                self._measure_after()
        except (Interrupted, KeyboardInterrupt):
            self.result.interrupted = True
        finally:
            self._record_map()

    def _measure_before(self) -> None:
        result, options = self.result, self.options
        if not options.timed:
            return
        meter = self.speed_meter()
        ranges = measurable_pieces(self.layout.ranges, options.piece_bytes, self.layout.size_bytes)
        try:
            self.before = meter.measure(ranges, "reading")
            fresh, result.fresh_from = fresh_speed(options.fresh_bytes_per_s, None, self.before)
            if fresh is not None:
                limit = fresh * options.slower_than
                self.before = meter.best_of(self.before, limit, "rereading slow pieces")
                self.slow = slow_ranges(self.before, fresh, options.slower_than)
        finally:
            meter.close()
        result.fresh_mib_per_s = mib_per_s(fresh)
        result.before_mib_per_s = mib_per_s(average_speed(self.before))

    def _choose(self) -> list[Range]:
        used = self.layout.ranges
        if self.options.measures:
            return intersection(used, self.slow)
        remaining = [
            Range(self.layout.begin_at, max(0, self.layout.size_bytes - self.layout.begin_at))
        ]
        used = intersection(used, remaining)
        if self.options.everything:
            return used
        requested = (Range(*each) for each in self.options.ranges)
        return intersection(used, align(requested, self.layout.block_bytes))

    def _record_plan(self, chosen: Sequence[Window]) -> None:
        result = self.result
        ranges = merge(each for window in chosen for each in window.ranges)
        result.plan = [(each.offset, each.length) for each in ranges]
        result.planned_bytes = total_bytes(ranges)
        result.days_of_endurance = days_of_endurance(result.planned_bytes, self.layout.drives)
        self._record_map()

    def _rewrite(self, rewriter: Rewriter, chosen: Sequence[Window]) -> None:
        done, gain_checked = 0, not self.options.measures
        for window in chosen:
            self.progress("rewriting", done, self.result.planned_bytes)
            self._record_rewrite(window, rewriter.rewrite(window))
            done += window.length
            if not gain_checked and FIRST_PART_BYTES <= done < self.result.planned_bytes:
                gain_checked = True
                if not self._first_part_is_faster():
                    self.result.no_gain = True
                    return
        self.progress("rewriting", done, self.result.planned_bytes)

    def _record_rewrite(self, window: Window, rewrite: RewriteResult) -> None:
        result = self.result
        result.moved_bytes += rewrite.moved_bytes
        result.written_bytes += rewrite.written_bytes
        result.left += [(each.offset, each.length) for each in rewrite.left]
        result.why = rewrite.reason or result.why
        if not rewrite.left:
            self.rewritten += window.ranges

    def _first_part_is_faster(self) -> bool:
        old = self._rewritten_pieces()
        return is_faster(old, self._measured(old, "reading the first rewritten part"))

    def _measure_after(self) -> None:
        if not self.options.timed:
            return
        old = self._rewritten_pieces()
        measured = self._measured(old, "reading what was rewritten")
        self.after = {piece.range.offset: piece for piece in measured}
        current = [self.after.get(piece.range.offset, piece) for piece in self.before]
        self.result.after_mib_per_s = mib_per_s(average_speed(current))

    def _rewritten_pieces(self) -> list[Piece]:
        step = self.options.piece_bytes
        numbers = {each.offset // step for each in split_at_grid(self.rewritten, step)}
        return [piece for piece in self.before if piece.range.offset // step in numbers]

    def _measured(self, pieces: Sequence[Piece], label: str) -> list[Piece]:
        """Measures these pieces; rereads slow ones several times and keeps the best reading."""
        meter = self.speed_meter()
        try:
            readings = meter.measure([piece.range for piece in pieces], label)
            limit = (self.result.fresh_mib_per_s or 0) * MIB * self.options.slower_than
            return meter.best_of(readings, limit, label)
        finally:
            meter.close()

    def speed_meter(self) -> ReadSpeedMeter:
        """The meter for this device; tests replace it."""
        return DeviceSpeedMeter(self.layout.device, self.progress)

    def _record_map(self) -> None:
        step = self.options.piece_bytes
        slow = {each.offset for each in split_at_grid(self.slow, step)}
        rewritten = {piece.range.offset for piece in self._rewritten_pieces()}
        self.result.map = [
            MapRow(
                offset := piece.range.offset,
                piece.range.length,
                mib_per_s(piece.bytes_per_s),
                mib_per_s(self.after[offset].bytes_per_s) if offset in self.after else None,
                offset in slow,
                offset in rewritten,
            )
            for piece in self.before
        ]
