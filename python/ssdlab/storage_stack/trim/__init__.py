"""Whether a TRIM passes the layers under a path: what each declares, and what was sent to each.

    passage       the row that is given for each layer, and where the answers are read
    under         the rows of a mount or a device, from the top down; which layer stops a TRIM
    filesystems   does the file system send discards, and does anything ask it to?
    devices       does this device pass them on?
    tables        what only a device-mapper table tells
    counters      how much was sent to a device, and how much of it is in use

What is declared is not what happens: a drive may take a TRIM and do nothing. `ssdlab run trim`
looks.
"""

from ssdlab.storage_stack.trim.counters import discarded_bytes, used_bytes
from ssdlab.storage_stack.trim.filesystems import discards_online
from ssdlab.storage_stack.trim.passage import Passage, Passes, Roots
from ssdlab.storage_stack.trim.tables import read_tables
from ssdlab.storage_stack.trim.under import passages_of_device, passages_of_mount, stopper

__all__ = [
    "Passage",
    "Passes",
    "Roots",
    "discarded_bytes",
    "discards_online",
    "passages_of_device",
    "passages_of_mount",
    "read_tables",
    "stopper",
    "used_bytes",
]
