"""Records the drive's own write counters between steps: a twin's counters, or SMART."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ssdlab.runner.session import RunSession
from ssdlab.storage_stack.blockdev import device_by_name
from ssdlab.storage_stack.health import smart

HOST: Final = "host_write_bytes"
FLASH: Final = "flash_write_bytes"
STEP: Final = "write_count_step_bytes"
"""Names of the observations: host writes, flash writes, and the resolution of the counters."""
_TWIN_STEP: Final = 4096


@dataclass
class WriteCounters:
    """Records the drive's write counters as observations, if it has any."""

    session: RunSession
    _unavailable: bool = field(default=False)

    def read(self) -> None:
        """Records the current values. Stops reading after the first incomplete answer."""
        if self._unavailable:
            return
        written = self._of_twin() or self._of_drive()
        if written is None or written.flash_bytes is None:
            self._unavailable = True
        if written is None:
            return
        self.session.observe(HOST, float(written.host_bytes), written.source)
        if written.flash_bytes is not None:
            self.session.observe(FLASH, float(written.flash_bytes), written.source)
            self.session.observe(STEP, float(written.step_bytes), written.source)

    def _of_twin(self) -> smart.WriteCounters | None:
        counters = self.session.target.drive.counters()
        if counters is None:
            return None
        host, waf = counters["host_write_bytes"], counters["waf"]
        flash = 0 if waf is None else round(waf * host)
        return smart.WriteCounters(host, flash, _TWIN_STEP, "the twin's counters")

    def _of_drive(self) -> smart.WriteCounters | None:
        """SMART counters; None if the target has no drive below or more than one."""
        drives = self.session.target.identity.get("drives", ())
        if len(drives) != 1:
            return None
        device = device_by_name(drives[0]["name"])
        return None if device is None else smart.read_write_counters(device)
