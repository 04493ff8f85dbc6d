"""Whether each layer under a path passes a TRIM, and how many bytes were discarded on each.

    stack     the layers of a mount or device, from the top down; which layer blocks a TRIM
    devices   whether a device passes discards; bytes discarded on it, and in use
    tables    the parts of device-mapper tables that sysfs does not show

These are declarations: a drive may accept a TRIM and ignore it. `ssdlab run trim` measures that.
"""

from ssdlab.snapshot import TrimLayer
from ssdlab.storage_stack.layers import Roots
from ssdlab.storage_stack.trim.devices import discarded_bytes, used_bytes
from ssdlab.storage_stack.trim.stack import (
    blocking_layer,
    discards_online,
    trim_layers_of_device,
    trim_layers_of_mount,
)
from ssdlab.storage_stack.trim.tables import read_tables

__all__ = [
    "Roots",
    "TrimLayer",
    "blocking_layer",
    "discarded_bytes",
    "discards_online",
    "read_tables",
    "trim_layers_of_device",
    "trim_layers_of_mount",
    "used_bytes",
]
