"""Ways to leave a part of a drive unused, each in its order and with its dangers. Text alone.

Sources: blkdiscard(8), parted(8), hdparm(8) on -N, nvme-create-ns(1), mdadm(8). What is left must
be discarded BEFORE it is hidden, and nothing may write there again: a formatted, resynced or wiped
remainder is no spare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.spare import SECTOR
from ssdlab.units import format_size

_ALIGNED: Final = 1 << 20


@dataclass(frozen=True)
class Step:
    """One step: what is done, by which commands, what it risks ("" for nothing)."""

    does: str
    commands: tuple[str, ...] = ()
    danger: str = ""


@dataclass(frozen=True)
class Way:
    """One way from its first step to its last; `name` is partition, hpa, namespace or raid."""

    name: str
    when: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Drive:
    """What the plan is for: its node, how it is attached, its sector, and what may be used."""

    node: str
    transport: str
    sector: int
    visible: int
    usable: int


_DESTROYS: Final = "destroys all that is on the drive"
_CHECK: Final = Step(
    "Look whether it came out as it was meant.",
    ("ssdlab doctor DIRECTORY", "sudo ssdlab run trim DIRECTORY", "ssdlab run steady DIRECTORY"),
)


def ways(drive: Drive) -> tuple[Way, ...]:
    """The ways that this drive has, the simplest first."""
    found = [_fresh_partition(drive), _shrunk_partition(drive)]
    if drive.transport in {"sata", "unknown"}:
        found.append(_hpa(drive))
    if drive.transport.startswith("nvme") or drive.transport == "unknown":
        found.append(_namespace(drive))
    found.append(_raid())
    return tuple(found)


def _fresh_partition(drive: Drive) -> Way:
    end = drive.usable // _ALIGNED * _ALIGNED
    return Way(
        "partition, on an empty drive",
        "works on every drive that takes TRIM; nothing of it is hidden, and it can be undone",
        (
            Step("Back up what is on it.", danger="the next step destroys everything"),
            Step("Discard the whole drive.", (f"sudo blkdiscard {drive.node}",), _DESTROYS),
            Step(
                f"Make one partition that ends at {format_size(end)}, and nothing behind it.",
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


def _shrunk_partition(drive: Drive) -> Way:
    end = drive.usable // _ALIGNED * _ALIGNED
    start = end + _ALIGNED  # a partition's last sector may be counted in or not
    rest = drive.visible - start - _ALIGNED  # the last MiB has the second copy of the GPT
    return Way(
        "partition, on a drive in use",
        "ext4 and btrfs can be made smaller; xfs cannot",
        (
            Step("Back up what is on it.", danger="a wrong size cuts the file system off"),
            Step(
                "Make the LAST file system smaller than its new partition, then the partition.",
                (
                    "ext4, unmounted: sudo e2fsck -f PART; sudo resize2fs PART SIZE",
                    "btrfs, mounted:  sudo btrfs filesystem resize SIZE DIRECTORY",
                    f"sudo parted {drive.node} resizepart N {end // _ALIGNED}MiB",
                ),
                "the order matters: the partition first means data lost",
            ),
            Step(
                f"Discard what is behind it: {format_size(max(0, rest))}.",
                (
                    f"sudo parted {drive.node} unit B print free   # is it free from {start} on?",
                    f"sudo blkdiscard --offset {start} --length {max(0, rest)} {drive.node}",
                ),
                "a wrong offset destroys what lies there: compare it with the line before",
            ),
            _CHECK,
        ),
    )


def _hpa(drive: Drive) -> Way:
    sectors = drive.usable // SECTOR
    return Way(
        "hpa (SATA)",
        "the drive itself shows less; for RAID controllers and installers that take whole drives",
        (
            Step("Back up what is on it.", danger="the next step destroys everything"),
            Step("Discard the whole drive.", (f"sudo blkdiscard {drive.node}",), _DESTROYS),
            Step(
                "Look at all three sizes: set now, native, and by the configuration overlay.",
                (f"sudo hdparm -N {drive.node}", f"sudo hdparm --dco-identify {drive.node}"),
            ),
            Step(
                f"Show {sectors} sectors, for good (p), then switch the drive's power off and on.",
                (f"sudo hdparm -Np{sectors} --yes-i-know-what-i-am-doing {drive.node}",),
                "once in a power cycle only; newer drives refuse it (they have AMAC instead); with "
                "libata.ignore_hpa=1 Linux shows the whole drive again",
            ),
            _CHECK,
        ),
    )


def _namespace(drive: Drive) -> Way:
    blocks = drive.usable // drive.sector
    controller = drive.node.rpartition("n")[0] or drive.node
    return Way(
        "namespace (NVMe)",
        "only where the controller manages namespaces (id-ctrl: oacs bit 3)",
        (
            Step(
                "Ask what it can: oacs with bit 3, nn, unvmcap.",
                (f"sudo nvme id-ctrl -H {controller}",),
            ),
            Step("Back up what is on it.", danger="the next step destroys everything"),
            Step(
                "Discard, delete the namespace, make a smaller one, attach it.",
                (
                    f"sudo blkdiscard {drive.node}",
                    f"sudo nvme delete-ns {controller} --namespace-id=1",
                    f"sudo nvme create-ns {controller} --nsze={blocks} --ncap={blocks} --flbas=0",
                    f"sudo nvme attach-ns {controller} --namespace-id=1 --controllers=0",
                ),
                f"{_DESTROYS}; some drives with one namespace refuse to make it again at its full "
                "size, and then there is no disk until they are formatted: not on the only drive",
            ),
            _CHECK,
        ),
    )


def _raid() -> Way:
    return Way(
        "raid",
        "every member the same; a RAID controller that passes no TRIM needs it most",
        (
            Step(
                "Do one of the ways above on EVERY member, before the array is made.",
                danger="on an array in use: one member at a time, out, done, in, resynced",
            ),
            Step(
                "Make the array of the partitions, then discard what is free in it.",
                ("sudo mdadm --create ... ; mkfs ... ; sudo fstrim -v DIRECTORY",),
                "a resync writes every block of every member: what lies behind the partitions "
                "stays free, what is in them counts as used until it is trimmed",
            ),
            _CHECK,
        ),
    )
