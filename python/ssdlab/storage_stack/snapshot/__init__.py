"""Reads the storage stack under a path or a device into one `ssdlab.snapshot.Snapshot`.

target     the mounts and devices of a target, and the snapshot itself
devices    one block device as a record
machine    swap, memory, LVM's discard setting
files      layout and age of files
probes     programs and system calls, which a captured machine replaces
"""

from ssdlab.storage_stack.snapshot.files import file_record, largest
from ssdlab.storage_stack.snapshot.probes import Probes, Sizes
from ssdlab.storage_stack.snapshot.target import read_snapshot

__all__ = ["Probes", "Sizes", "file_record", "largest", "read_snapshot"]
