"""A verdict: what is the matter, how it is known, what it costs, what to do, what proves it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from ssdlab.snapshot import Device, Snapshot

Severity = Literal["bad", "warn", "note", "good"]
SEVERITIES: Final[tuple[Severity, ...]] = ("bad", "warn", "note", "good")
"""The worst first."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was found; `code` is for programs and never changes.

    `where` is the layer, device or path. `evidence` says what was read where. `costs`, `remedy`
    (a command, or several joined by newlines), `risk` of the remedy and `proof` (the experiment
    that would show it) are "" where there is none. `value` with `unit` is the number behind it.
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


def place(snapshot: Snapshot) -> str:
    """Where an experiment would be run: the target's mount, else the target as it was given."""
    return snapshot.mounts[0].mount_point if snapshot.mounts else snapshot.target


def named(device: Device) -> str:
    """A device with its kind: "sda (drive)", "dm-0 (dm-crypt, luks-root)"."""
    words = ", ".join(word for word in (device.layer, device.mapped_name) if word)
    return f"{device.name} ({words})"


_VIRTUAL: Final = frozenset({"virtio", "xen", "hyper-v", "loop", "nbd", "iscsi", "ram"})


def is_rotating(device: Device) -> bool:
    """Whether it is a disk that turns; what a virtual one says of that means nothing."""
    return bool(device.rotational) and device.transport not in _VIRTUAL


def is_hardware(device: Device) -> bool:
    """Whether it is a drive of this machine, with flash in it for all that is known."""
    return device.is_drive and device.transport not in _VIRTUAL and not is_rotating(device)
