"""A watchdog inside the test process, with a record of a window that it can rewrite."""

from __future__ import annotations

import fcntl
import os

import msgspec
from sample_device import Device

from ssdlab.heal.device import kernel, watchdog
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.in_place import RunFields, armed_record
from ssdlab.heal.device.journal import Journal, Record
from ssdlab.heal.device.recover import current_session
from ssdlab.heal.device.whole import identity_of
from ssdlab.heal.device.windows import Window
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.blockdev import device_at
from ssdlab.storage_stack.extents import read_extents

LIMIT_S = 600
"""Even on a busy machine, a worker is not late before this."""


class WatchdogCase:
    """A watchdog in this process, and a prepared record for a window in the large file."""

    def __init__(self, device: Device) -> None:
        self.device, self.is_closed = device, False
        self.direct = DirectDevice(device.node, exclusive=False)
        self.journal = Journal(device.journal)
        self.watchdog = watchdog.Watchdog(device.point, device.node, device.journal, LIMIT_S)
        fd = os.open(device.point / "file-0", os.O_RDONLY)
        self.extent = max(read_extents(fd) or (), key=lambda each: each.length)
        os.close(fd)
        block = device_at(device.node)
        run = RunFields(identity_of(self.direct, block), "", current_session(block), "all")
        window = Window((Range(self.extent.physical + (256 << 10), 128 << 10),))
        content = self.direct.read(window)
        record = armed_record(window, content, run, 1)
        self.record = msgspec.structs.replace(record, state="prepared")
        self.journal.write(self.record, content)

    def state(self) -> Record:
        return self.journal.records()[0][0]

    def lose_power(self) -> None:
        """The state after a power cut: the journal is unlocked, and the file system unmounted."""
        fcntl.flock(self.journal._fd, fcntl.LOCK_UN)
        self.watchdog.close()
        self.is_closed = True
        self.device.unmount()

    def change_session(self) -> None:
        """The state after a reboot: all records belong to an earlier session."""
        for record, _ in self.journal.records():
            self.journal.update(msgspec.structs.replace(record, session="before"))

    def close(self) -> None:
        self.direct.close()
        self.journal.close()
        if not self.is_closed:
            kernel.thaw(self.watchdog.fd)
            self.watchdog.close()
