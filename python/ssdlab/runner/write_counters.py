"""What a drive itself counts of its writing, noted between steps: a twin's counters, or SMART."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ssdlab.runner.session import RunSession
from ssdlab.storage_stack.blockdev import device_by_name
from ssdlab.storage_stack.health import smart

HOST: Final = "host_write_bytes"
FLASH: Final = "flash_write_bytes"
STEP: Final = "write_count_step_bytes"
"""Names of the observations: bytes from the host, bytes to the flash, what they are counted in."""
_TWIN_STEP: Final = 4096


@dataclass
class WriteCounters:
    """Notes the drive's counts in a run's observations; nothing where it has none."""

    session: RunSession
    _silent: bool = field(default=False)

    def read(self) -> None:
        """Notes them as they are now. What did not answer once is not asked again."""
        if self._silent:
            return
        found = self._of_twin() or self._of_drive()
        if found is None or found.flash_bytes is None:
            self._silent = True
        if found is None:
            return
        self.session.observe(HOST, float(found.host_bytes), found.source)
        if found.flash_bytes is not None:
            self.session.observe(FLASH, float(found.flash_bytes), found.source)
            self.session.observe(STEP, float(found.step_bytes), found.source)

    def _of_twin(self) -> smart.WriteCounters | None:
        counters = self.session.target.drive.counters()
        if counters is None:
            return None
        host, waf = counters["host_write_bytes"], counters["waf"]
        flash = 0 if waf is None else round(waf * host)
        return smart.WriteCounters(host, flash, _TWIN_STEP, "the twin's counters")

    def _of_drive(self) -> smart.WriteCounters | None:
        """Of the drive below; of several at once nothing is said."""
        drives = self.session.target.identity.get("drives", ())
        if len(drives) != 1:
            return None
        device = device_by_name(drives[0]["name"])
        return None if device is None else smart.read_write_counters(device)
