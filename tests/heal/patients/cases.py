"""A watchdog's keeper in the process of a test, and a piece of a file that it may rewrite."""

from __future__ import annotations

import fcntl
import os

import msgspec
from devices import Device

from ssdlab.heal.device import kernel, watchdog
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.in_place import Job, record_of
from ssdlab.heal.device.journal import Journal, Record
from ssdlab.heal.device.recover import session_of
from ssdlab.heal.device.whole import identity_of
from ssdlab.heal.device.windows import Window
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.blockdev import device_at
from ssdlab.storage_stack.extents import read_extents

BOUND_S = 600
"""A hand on a busy machine is not late before that."""


class Case:
    """A watchdog's keeper in this process, and a prepared record of a piece of the large file."""

    def __init__(self, device: Device) -> None:
        self.device, self.is_out = device, False
        self.held = DirectDevice(device.node, exclusive=False)
        self.journal = Journal(device.journal)
        self.keeper = watchdog.Keeper(device.point, device.node, device.journal, BOUND_S)
        fd = os.open(device.point / "file-0", os.O_RDONLY)
        self.extent = max(read_extents(fd) or (), key=lambda each: each.length)
        os.close(fd)
        where = (self.extent.physical + (256 << 10), 128 << 10)
        block = device_at(device.node)
        job = Job(identity_of(self.held, block), "", session_of(block), "all")
        window = Window((Range(*where),))
        content = self.held.read(window)
        record = record_of(window, content, job, 1)
        self.record = msgspec.structs.replace(record, state="prepared")
        self.journal.write(self.record, content)

    def state(self) -> Record:
        return self.journal.records()[0][0]

    def go_out(self) -> None:
        """As after a loss of power: nobody has the journal, and the file system is not mounted."""
        fcntl.flock(self.journal._fd, fcntl.LOCK_UN)
        self.keeper.close()
        self.is_out = True
        self.device.unmount()

    def other_session(self) -> None:
        """As after the machine was started anew."""
        for record, _ in self.journal.records():
            self.journal.turn(msgspec.structs.replace(record, session="before"))

    def close(self) -> None:
        self.held.close()
        self.journal.close()
        if not self.is_out:
            kernel.thaw(self.keeper.fd)
            self.keeper.close()
