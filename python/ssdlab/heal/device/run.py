"""A device from the first look to the last measurement: look, measure, decide, rewrite, measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ssdlab.errors import Interrupted
from ssdlab.heal import outcome as told
from ssdlab.heal import pieces as p
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.speed import DeviceSpeedometer
from ssdlab.heal.device.windows import Window, gridded, measurable, overlap, windows
from ssdlab.heal.methods.rewriter import Rewritten
from ssdlab.heal.options import Watch, Wish
from ssdlab.heal.outcome import FileOutcome, MapRow
from ssdlab.heal.pieces import Piece, Range
from ssdlab.heal.speed import Speedometer
from ssdlab.storage_stack.blockdev import BlockDevice

FIRST_BYTES: Final = 32 << 20
"""After so much was rewritten it is asked whether that brought anything."""


class Rewriter(Protocol):
    """What rewrites a window of the device."""

    def rewrite(self, window: Window) -> Rewritten:
        """Rewrites it; it is on the drive when this returns."""


@dataclass(frozen=True)
class Patient:
    """A device as it was found: `ranges` are in use, `begin_at` is where a run before ended."""

    device: DirectDevice
    size_bytes: int
    block_bytes: int
    ranges: Sequence[Range]
    drives: Sequence[BlockDevice]
    begin_at: int = 0


def wish_words(wish: Wish) -> str:
    """What was asked for, for the journal: the same words may go on where a run ended."""
    return "all" if wish.everything else f"{list(wish.chosen)}" if wish.chosen else "slow"


class DeviceCourse:
    """The steps of one device, with what they found so far in `result`."""

    def __init__(self, patient: Patient, wish: Wish, watch: Watch, result: FileOutcome) -> None:
        self.patient, self.wish, self.watch, self.result = patient, wish, watch, result
        self.before: list[Piece] = []
        self.after: dict[int, Piece] = {}
        self.slow: list[Range] = []
        self.rewritten: list[Range] = []

    def run(self, rewriter: Callable[[], Rewriter]) -> None:
        """All steps; an interruption is told in the outcome. `rewriter` opens what rewrites."""
        try:
            self._measure_before()
            chosen = windows(self._choose())
            self._tell_plan(chosen)
            if chosen and not self.wish.dry_run:
                self._rewrite(rewriter(), chosen)
                self._measure_after()
        except (Interrupted, KeyboardInterrupt):
            self.result.interrupted = True
        finally:
            self._tell_map()

    def _measure_before(self) -> None:
        result, wish = self.result, self.wish
        meter = self.speedometer()
        ranges = measurable(self.patient.ranges, wish.piece_bytes, self.patient.size_bytes)
        try:
            self.before = meter.measure(ranges, "reading")
            fresh, result.fresh_from = told.fresh_of(wish.fresh_bytes_per_s, None, self.before)
            if fresh is not None:
                limit = fresh * wish.slower_than
                self.before = meter.best_of(self.before, limit, "reading again what was slow")
                self.slow = p.slow(self.before, fresh, wish.slower_than)
        finally:
            meter.close()
        result.fresh_mib_per_s = told.mib(fresh)
        result.before_mib_per_s = told.mib(p.overall(self.before))

    def _choose(self) -> list[Range]:
        used = self.patient.ranges
        if self.wish.measures:
            return overlap(used, self.slow)
        left = [
            Range(self.patient.begin_at, max(0, self.patient.size_bytes - self.patient.begin_at))
        ]
        used = overlap(used, left)
        if self.wish.everything:
            return used
        asked = (Range(*each) for each in self.wish.chosen)
        return overlap(used, p.aligned(asked, self.patient.block_bytes))

    def _tell_plan(self, chosen: Sequence[Window]) -> None:
        result = self.result
        ranges = p.joined(each for window in chosen for each in window.ranges)
        result.plan = [(each.offset, each.length) for each in ranges]
        result.planned_bytes = p.total(ranges)
        result.days_of_endurance = told.days_of_endurance(result.planned_bytes, self.patient.drives)
        self._tell_map()

    def _rewrite(self, rewriter: Rewriter, chosen: Sequence[Window]) -> None:
        done, asked = 0, not self.wish.measures
        for window in chosen:
            self.watch("rewriting", done, self.result.planned_bytes)
            self._note(window, rewriter.rewrite(window))
            done += window.length
            if not asked and FIRST_BYTES <= done < self.result.planned_bytes:
                asked = True
                if not self._brought_gain():
                    self.result.no_gain = True
                    return
        self.watch("rewriting", done, self.result.planned_bytes)

    def _note(self, window: Window, got: Rewritten) -> None:
        result = self.result
        result.moved_bytes += got.moved
        result.written_bytes += got.written
        result.left += [(each.offset, each.length) for each in got.left]
        result.why = got.why or result.why
        if not got.left:
            self.rewritten += window.ranges

    def _brought_gain(self) -> bool:
        was = self._touched()
        return p.brought_gain(was, self._measured(was, "reading what was rewritten first"))

    def _measure_after(self) -> None:
        was = self._touched()
        found = self._measured(was, "reading what was rewritten")
        self.after = {piece.range.offset: piece for piece in found}
        now = [self.after.get(piece.range.offset, piece) for piece in self.before]
        self.result.after_mib_per_s = told.mib(p.overall(now))

    def _touched(self) -> list[Piece]:
        step = self.wish.piece_bytes
        numbers = {each.offset // step for each in gridded(self.rewritten, step)}
        return [piece for piece in self.before if piece.range.offset // step in numbers]

    def _measured(self, pieces: Sequence[Piece], label: str) -> list[Piece]:
        """The same pieces as they read now: the best reading of those that still seem slow."""
        meter = self.speedometer()
        try:
            found = meter.measure([piece.range for piece in pieces], label)
            limit = (self.result.fresh_mib_per_s or 0) * told.MIB * self.wish.slower_than
            return meter.best_of(found, limit, label)
        finally:
            meter.close()

    def speedometer(self) -> Speedometer:
        """What measures; tests give readings of their own."""
        return DeviceSpeedometer(self.patient.device, self.watch)

    def _tell_map(self) -> None:
        step = self.wish.piece_bytes
        slow = {each.offset for each in gridded(self.slow, step)}
        touched = {piece.range.offset for piece in self._touched()}
        self.result.map = [
            MapRow(
                at := piece.range.offset,
                piece.range.length,
                told.mib(piece.bytes_per_s),
                told.mib(self.after[at].bytes_per_s) if at in self.after else None,
                at in slow,
                at in touched,
            )
            for piece in self.before
        ]
