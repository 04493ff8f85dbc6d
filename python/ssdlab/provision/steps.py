"""Methods to leave a part of a drive unused: their steps, commands and risks, as text.

Sources: blkdiscard(8), parted(8), hdparm(8) on -N, nvme-create-ns(1), mdadm(8). The unused part
must be discarded BEFORE it is hidden, and never written again: if it is formatted, resynced or
wiped, the drive counts it as in use, and it is not spare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.spare import SECTOR
from ssdlab.units import format_size

_ALIGNED: Final = 1 << 20


@dataclass(frozen=True)
class Step:
    """One step: what it does, its commands, and its risk ("" for none)."""

    does: str
    commands: tuple[str, ...] = ()
    danger: str = ""


@dataclass(frozen=True)
class Method:
    """All steps of a method; its `name` begins with partition, hpa, namespace or raid."""

    name: str
    when: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class DriveSize:
    """The drive of a plan; `visible` bytes now, of which `usable` are to be used afterwards."""

    node: str
    transport: str
    sector: int
    visible: int
    usable: int


_DESTROYS: Final = "destroys all data on the drive"
_CHECK: Final = Step(
    "Check the result.",
    ("ssdlab doctor DIRECTORY", "sudo ssdlab run trim DIRECTORY", "ssdlab run steady DIRECTORY"),
)


def methods(drive: DriveSize) -> tuple[Method, ...]:
    """The methods that this drive supports, simplest first."""
    supported = [_fresh_partition(drive), _shrunk_partition(drive)]
    if drive.transport in {"sata", "unknown"}:
        supported.append(_hpa(drive))
    if drive.transport.startswith("nvme") or drive.transport == "unknown":
        supported.append(_namespace(drive))
    supported.append(_raid())
    return tuple(supported)


def _fresh_partition(drive: DriveSize) -> Method:
    end = drive.usable // _ALIGNED * _ALIGNED
    return Method(
        "partition, on an empty drive",
        "works on every drive that supports TRIM; it hides nothing, and can be undone",
        (
            Step("Back up the data on the drive.", danger="the next step destroys all data"),
            Step("Discard the whole drive.", (f"sudo blkdiscard {drive.node}",), _DESTROYS),
            Step(
                f"Make one partition that ends at {format_size(end)}, and leave the rest unused.",
                (
                    (
                        f"sudo parted --script {drive.node} mklabel gpt mkpart ssd 1MiB "
                        f"{end // _ALIGNED}MiB"
                    ),
                ),
            ),
            _CHECK,
        ),
    )


def _shrunk_partition(drive: DriveSize) -> Method:
    end = drive.usable // _ALIGNED * _ALIGNED
    start = end + _ALIGNED  # parted can include or exclude the last sector
    rest = drive.visible - start - _ALIGNED  # the last MiB holds the backup GPT
    return Method(
        "partition, on a drive in use",
        "ext4 and btrfs can shrink; xfs cannot",
        (
            Step("Back up the data on the drive.", danger="a wrong size truncates the file system"),
            Step(
                "Shrink the LAST file system to less than its new partition, then the partition.",
                (
                    "ext4, unmounted: sudo e2fsck -f PART; sudo resize2fs PART SIZE",
                    "btrfs, mounted:  sudo btrfs filesystem resize SIZE DIRECTORY",
                    f"sudo parted {drive.node} resizepart N {end // _ALIGNED}MiB",
                ),
                "shrinking the partition first loses data",
            ),
            Step(
                f"Discard the space after it: {format_size(max(0, rest))}.",
                (
                    f"sudo parted {drive.node} unit B print free   # is it free from {start} on?",
                    f"sudo blkdiscard --offset {start} --length {max(0, rest)} {drive.node}",
                ),
                "a wrong offset destroys data: compare it with the output of the command before",
            ),
            _CHECK,
        ),
    )


def _hpa(drive: DriveSize) -> Method:
    sectors = drive.usable // SECTOR
    return Method(
        "hpa (SATA)",
        "the drive reports less; for RAID controllers and installers that use whole drives",
        (
            Step("Back up the data on the drive.", danger="the next step destroys all data"),
            Step("Discard the whole drive.", (f"sudo blkdiscard {drive.node}",), _DESTROYS),
            Step(
                "Check all three sizes: current, native, and in the configuration overlay (DCO).",
                (f"sudo hdparm -N {drive.node}", f"sudo hdparm --dco-identify {drive.node}"),
            ),
            Step(
                f"Set {sectors} sectors permanently (p), then power-cycle the drive.",
                (f"sudo hdparm -Np{sectors} --yes-i-know-what-i-am-doing {drive.node}",),
                "only once per power cycle; newer drives refuse it (they have AMAC instead); with "
                "libata.ignore_hpa=1 Linux shows the whole drive again",
            ),
            _CHECK,
        ),
    )


def _namespace(drive: DriveSize) -> Method:
    blocks = drive.usable // drive.sector
    controller = drive.node.rpartition("n")[0] or drive.node
    return Method(
        "namespace (NVMe)",
        "only if the controller supports namespace management (id-ctrl: OACS bit 3)",
        (
            Step(
                "Check what the controller supports: OACS bit 3, NN, UNVMCAP.",
                (f"sudo nvme id-ctrl -H {controller}",),
            ),
            Step("Back up the data on the drive.", danger="the next step destroys all data"),
            Step(
                "Discard, delete the namespace, create a smaller one, attach it.",
                (
                    f"sudo blkdiscard {drive.node}",
                    f"sudo nvme delete-ns {controller} --namespace-id=1",
                    f"sudo nvme create-ns {controller} --nsze={blocks} --ncap={blocks} --flbas=0",
                    f"sudo nvme attach-ns {controller} --namespace-id=1 --controllers=0",
                ),
                f"{_DESTROYS}; some drives refuse to create their only namespace again at full "
                "size, and have no disk until they are formatted: never do this on the only drive",
            ),
            _CHECK,
        ),
    )


def _raid() -> Method:
    return Method(
        "raid",
        "all members alike; most useful behind a RAID controller that does not pass TRIM",
        (
            Step(
                "Apply one of the methods above to EVERY member before the array is created.",
                danger="on an array in use: remove, change, add and resync one member at a time",
            ),
            Step(
                "Create the array from the partitions, then discard its free space.",
                ("sudo mdadm --create ... ; mkfs ... ; sudo fstrim -v DIRECTORY",),
                "a resync writes every block of every member: space after the partitions stays "
                "free, space in them counts as used until it is trimmed",
            ),
            _CHECK,
        ),
    )
