"""Attaches a served twin as a mounted file system: nbdfuse, a loop device, mkfs, mount.

programs   the programs that this takes, and how they are run
device     the twin as a block device, by nbdfuse and a loop device
remains    what a killed server left at its directory: found, and undone if it is dead
mounted    the file system: made, mounted, unmounted, and mounted again after a power cut
"""

from ssdlab.attach.mounted import FILE_SYSTEMS, MountedTwin, check_mount

__all__ = ["FILE_SYSTEMS", "MountedTwin", "check_mount"]
