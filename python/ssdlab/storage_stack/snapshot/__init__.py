"""The whole stack under a path or a device, read into one `snapshot.Snapshot`; read-only.

target     which mounts and devices a target means
devices    one block device as a record
machine    swap, memory, what LVM was told
files      layout and age of files
probes     what is asked of programs and system calls; a captured machine brings its own
"""

from ssdlab.storage_stack.snapshot.files import file_record, largest
from ssdlab.storage_stack.snapshot.probes import Probes, Sizes
from ssdlab.storage_stack.snapshot.target import look

__all__ = ["Probes", "Sizes", "file_record", "largest", "look"]
