"""Rewrites one window of an unmounted device: read, journal, write in place, flush, read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.errors import DeviceFailure
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.journal import Identity, Journal, Record, checksum
from ssdlab.heal.device.windows import Window, drop_zero_pages
from ssdlab.heal.methods.rewriter import RewriteResult

UNREADABLE: Final = "the drive cannot read it"


@dataclass(frozen=True)
class RunFields:
    """The fields that all journal records of a run share; see `Record`."""

    identity: Identity
    generation: str
    session: str
    request: str


class InPlaceRewriter:
    """Writes each window over itself."""

    def __init__(
        self, device: DirectDevice, journal: Journal, run: RunFields, sequence: int
    ) -> None:
        """`sequence` is the number of the last record in the journal."""
        self._device, self._journal, self._run = device, journal, run
        self._sequence = sequence

    def rewrite(self, window: Window) -> RewriteResult:
        """Rewrites a window except pages of zeros; returns after the drive has flushed it.

        Raises:
            DeviceFailure: the drive or the journal's drive failed; torn data is in the journal.
        """
        try:
            content = self._device.read(window)
        except DeviceFailure:
            return RewriteResult(0, 0, window.ranges, UNREADABLE)
        kept, content = drop_zero_pages(window, content)
        if kept is None:
            return RewriteResult(window.length, 0)
        self._sequence += 1
        record = armed_record(kept, content, self._run, self._sequence)
        self._journal.write(record, content)
        self._device.write(kept, content)
        if self._device.read(kept) != content:
            raise DeviceFailure(
                f"{self._device.path}: the data written at byte {kept.offset} differs when read "
                f"back; {self._journal.path} has the correct data: keep it"
            )
        return RewriteResult(window.length, kept.length)


def armed_record(window: Window, content: bytes, run: RunFields, sequence: int) -> Record:
    """The record of a window that is about to be overwritten."""
    return Record(
        sequence=sequence,
        state="armed",
        identity=run.identity,
        generation=run.generation,
        session=run.session,
        request=run.request,
        ranges=tuple((each.offset, each.length) for each in window.ranges),
        sha256=checksum(content),
    )
