"""Whether a drive's write cache survives power loss. This cannot be measured.

On a drive with power-loss protection a flush costs nothing and is honest; on any other drive a
flush that costs nothing is not carried out. Sources, best first: the user, a shipped profile of the
same model, and what the drive reports to the kernel. A twin is treated as a drive of unknown model:
its profile is the answer, so the experiment must not read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ssdlab.profiles.models import stated_value
from ssdlab.runner.open_target import OpenTarget

CacheClass = Literal["protected", "volatile", "unknown"]


@dataclass(frozen=True)
class PowerLossProtection:
    """The class of a drive's write cache, and the source of this information."""

    cache_class: CacheClass
    source: str


def protection_of(target: OpenTarget, data_sheet: CacheClass = "unknown") -> PowerLossProtection:
    """The protection of a target's drives; `data_sheet`: the class that the user gave."""
    if data_sheet != "unknown":
        return PowerLossProtection(data_sheet, "the data sheet, as the user says")
    if target.is_virtual:
        return PowerLossProtection("unknown", "a twin has no data sheet")
    return protection_of_drives(target.identity.get("drives", ()))


def protection_of_drives(drives: Sequence[Mapping[str, Any]]) -> PowerLossProtection:
    """The worst class among real drives (the entry `drives` of a target's identity)."""
    protections = [_of_drive(drive) for drive in drives]
    for cache_class in ("volatile", "unknown", "protected"):
        for protection in protections:
            if protection.cache_class == cache_class:
                return protection
    return PowerLossProtection("unknown", "the drives below are not known")


def _of_drive(drive: Mapping[str, Any]) -> PowerLossProtection:
    stated = stated_value(str(drive.get("model") or ""), "buffer.power_loss_protection")
    if stated is not None:
        cache_class: CacheClass = "protected" if stated.value else "volatile"
        return PowerLossProtection(cache_class, f"the profile {stated.profile}")
    if drive.get("write_cache") == "write through":
        # The kernel then sends no flushes. Root may have set this although the drive has a cache.
        return PowerLossProtection("protected", "the drive, which reports no volatile write cache")
    is_nvme = str(drive.get("transport")).startswith("nvme")  # also NVMe over Fabrics
    if is_nvme and drive.get("write_cache") == "write back":
        return PowerLossProtection("volatile", "the drive, which reports a volatile write cache")
    # SATA drives report an enabled write cache whether or not they have capacitors.
    return PowerLossProtection("unknown", "no source")
