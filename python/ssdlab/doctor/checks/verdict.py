"""A verdict of a check: problem, evidence, cost, remedy, and the experiment that confirms it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from ssdlab.snapshot import Device, Snapshot

Severity = Literal["bad", "warn", "note", "good"]
SEVERITIES: Final[tuple[Severity, ...]] = ("bad", "warn", "note", "good")
"""The worst first."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """One result of a check; `code` is for programs and never changes.

    `where` is the layer, device or path. `evidence` is the reading and its source. `costs`,
    `remedy` (commands, one per line), `risk` of the remedy and `proof` (an experiment that shows
    the effect) may be "". `value` with `unit` is the number that the verdict rests on.
    """

    code: str
    severity: Severity
    where: str
    says: str
    evidence: str
    costs: str = ""
    remedy: str = ""
    risk: str = ""
    proof: str = ""
    value: float | bool | str | None = None
    unit: str = ""


def experiment_target(snapshot: Snapshot) -> str:
    """The target of a suggested `ssdlab run`: the mount point, else the doctor's own target."""
    return snapshot.mounts[0].mount_point if snapshot.mounts else snapshot.target


def device_label(device: Device) -> str:
    """A device with its layer: "sda (drive)", "dm-0 (dm-crypt, luks-root)"."""
    words = ", ".join(word for word in (device.layer, device.mapped_name) if word)
    return f"{device.name} ({words})"


_VIRTUAL: Final = frozenset({"virtio", "xen", "hyper-v", "loop", "nbd", "iscsi", "ram"})


def is_rotating(device: Device) -> bool:
    """Whether it is a rotating disk; a virtual disk's own claim is ignored."""
    return bool(device.rotational) and device.transport not in _VIRTUAL


def is_buffered_loop(device: Device) -> bool:
    """Whether it is a loop device whose reads the page cache of its backing file may answer."""
    return device.transport == "loop" and device.direct_io is False


def is_hardware(device: Device) -> bool:
    """Whether it is a physical drive of this machine and not known to rotate."""
    return device.is_drive and device.transport not in _VIRTUAL and not is_rotating(device)
