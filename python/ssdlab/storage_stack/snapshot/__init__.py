"""Reads the storage stack under a path or a device into one `ssdlab.snapshot.Snapshot`.

target     the mounts and devices of a target, swap, memory, and the snapshot itself
devices    one block device as a record
files      layout and age of files
"""

from ssdlab.storage_stack.snapshot.files import file_record, largest
from ssdlab.storage_stack.snapshot.target import Probes, Sizes, read_snapshot

__all__ = ["Probes", "Sizes", "file_record", "largest", "read_snapshot"]
