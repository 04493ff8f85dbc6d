"""One window of a device that nobody uses: read, journal, write over itself, flush, read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.errors import DeviceFailure
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.journal import Identity, Journal, Record, sum_of
from ssdlab.heal.device.windows import Window, without_zeros
from ssdlab.heal.methods.rewriter import Rewritten

UNREADABLE: Final = "it cannot be read"


@dataclass(frozen=True)
class Job:
    """What each record of a run has in common, but its number."""

    identity: Identity
    generation: str
    session: str
    wish: str


class InPlace:
    """Rewrites windows, each over itself."""

    def __init__(self, device: DirectDevice, journal: Journal, job: Job, sequence: int) -> None:
        """`sequence` is the number of the last record there was."""
        self._device, self._journal, self._job = device, journal, job
        self._sequence = sequence

    def rewrite(self, window: Window) -> Rewritten:
        """Rewrites what of a window is not zeros; it is on the drive when this returns.

        Raises:
            DeviceFailure: the drive or the journal's failed; the journal has what may be torn.
        """
        try:
            content = self._device.read(window)
        except DeviceFailure:
            return Rewritten(0, 0, window.ranges, UNREADABLE)
        kept, content = without_zeros(window, content)
        if kept is None:
            return Rewritten(window.length, 0)
        self._sequence += 1
        record = record_of(kept, content, self._job, self._sequence)
        self._journal.write(record, content)
        self._device.write(kept, content)
        if self._device.read(kept) != content:
            raise DeviceFailure(
                f"{self._device.path}: what was written at byte {kept.offset} reads otherwise; "
                f"{self._journal.path} has it: keep it"
            )
        return Rewritten(window.length, kept.length)


def record_of(window: Window, content: bytes, job: Job, sequence: int) -> Record:
    """An armed record of a window."""
    return Record(
        sequence=sequence,
        state="armed",
        identity=job.identity,
        generation=job.generation,
        session=job.session,
        wish=job.wish,
        ranges=tuple((each.offset, each.length) for each in window.ranges),
        sha256=sum_of(content),
    )
