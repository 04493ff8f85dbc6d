"""Storage stacks with ZFS pools, as in `stacks`; outputs in the form that OpenZFS 2.2 prints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from machine import CapturedMachine
from reports import Run, ata, nvme
from stacks import NVME, SATA, Builder, Stack, nvme_path, sata_path

_STATUS: Final = """\
  pool: tank
 state: ONLINE
  scan: scrub repaired 0B in 00:11:02 with 0 errors on Sun Nov  8 00:35:03 2026
config:

\tNAME                STATE     READ WRITE CKSUM
\ttank                ONLINE       0     0     0
\t  mirror-0          ONLINE       0     0     0
\t    /dev/sda1       ONLINE       0     0     0  (untrimmed)
\t    /dev/sdb1       {state}       0     0     0  {trim}
\tlogs\t
\t  /dev/nvme0n1p1    ONLINE       0     0     0  (untrimmed)

errors: No known data errors
"""
_PROPERTIES: Final = {"sync": "standard", "compression": "lz4", "primarycache": "all"}
_DONE: Final = "(100% trimmed, completed at Sun 08 Nov 2026 12:24:05 AM UTC)"


def _pool(machine: CapturedMachine) -> None:
    for at, name in enumerate(("sda", "sdb")):
        disk = machine.disk(name, f"8:{16 * at}", sata_path(at + 1), SATA)
        machine.partition(disk, f"{name}1", f"8:{16 * at + 1}")
    disk = machine.disk("nvme0n1", "259:0", nvme_path(0), NVME)
    machine.partition(disk, "nvme0n1p1", "259:1")
    machine.mountinfo("60 1 0:50 / /tank/db rw,noatime - zfs tank/db rw,xattr,noacl")


def _programs(status: str, ashift: int, autotrim: str, properties: Mapping[str, str]) -> Run:
    rows = "".join(f"{name}\t{value}\n" for name, value in properties.items())

    def run(command: Sequence[str]) -> str | None:
        words = " ".join(command)
        if words == "zpool status -t -LP":
            return status
        if words == "zpool get -Hpo name,property,value autotrim":
            return f"tank\tautotrim\t{autotrim}\n"
        if words == "zdb -C tank":
            return f"tank:\n    vdev_tree:\n        children[0]:\n            ashift: {ashift}\n"
        if command[:2] == ("zfs", "get"):
            return rows if command[-1] == "tank/db" else None
        if command[0] == "smartctl":
            is_nvme = command[-1].startswith("/dev/nvme")
            report = nvme("Samsung SSD 970 EVO Plus") if is_nvme else ata("Samsung SSD 860 EVO")
            return json.dumps(report)
        return None

    return run


def zfs(machine: CapturedMachine) -> Stack:
    """A mirror with a log drive, trimmed by nothing, whose dataset answers fsync at once."""
    _pool(machine)
    status = _STATUS.format(state="ONLINE", trim=_DONE)
    off = {**_PROPERTIES, "sync": "disabled"}
    return Stack("/tank/db", _programs(status, 9, "off", off))


def zfs_autotrim(machine: CapturedMachine) -> Stack:
    """The same with autotrim, ashift 12 and honest fsyncs; a member has failed."""
    _pool(machine)
    status = _STATUS.format(state="FAULTED", trim="(untrimmed)")
    return Stack("/tank/db", _programs(status, 12, "on", _PROPERTIES))


def zfs_untrimmable(machine: CapturedMachine) -> Stack:
    """A drive of the pool takes no TRIM."""
    _pool(machine)
    status = _STATUS.format(state="ONLINE", trim="(trim unsupported)")
    return Stack("/tank/db", _programs(status, 12, "on", _PROPERTIES))


ZFS_STACKS: Final[dict[str, Builder]] = {
    builder.__name__: builder for builder in (zfs, zfs_autotrim, zfs_untrimmable)
}
