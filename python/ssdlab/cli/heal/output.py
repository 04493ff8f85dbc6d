"""What a heal tells of its progress: bytes done of a phase, as a report with the time left."""

from __future__ import annotations

import time

from ssdlab.runner.progress import Listener, Report
from ssdlab.units import format_size


class Telling:
    """Turns bytes done of a phase into a report with the time left of it."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self._label, self._since, self._from = listener, "", 0.0, 0

    def tell(self, label: str, done: int, total: int) -> None:
        """As `wish.Watch`."""
        now = time.monotonic()
        if label != self._label or done < self._from:
            self._label, self._since, self._from = label, now, done
        ran = done - self._from
        left = (now - self._since) * (total - done) / ran if ran else None
        share = done / total if total else 1.0
        words = f"{label}, {format_size(done)} of {format_size(total)}"
        self._listener(Report(words, share, share, left))
