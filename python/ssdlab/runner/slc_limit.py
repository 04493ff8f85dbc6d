"""The largest SLC cache that a drive may have: from a shipped profile, or from its capacity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.profiles.models import stated_value
from ssdlab.runner.open_target import OpenTarget
from ssdlab.units import format_size, parse_size

SHARE: Final = 1 / 3
"""Of the capacity: three bits per cell, all flash written with one. Four bits give a quarter."""


@dataclass(frozen=True)
class SlcLimit:
    """A size in bytes, None if nothing is known about the drive, and where it comes from."""

    size: int | None
    source: str


def slc_limit(target: OpenTarget) -> SlcLimit:
    """The largest SLC cache of a target: the sum over its drives."""
    drives = target.identity.get("drives", ())
    if target.is_virtual:
        return _of_drive({"size_bytes": target.drive.capacity_bytes, "name": "the twin"})
    if not drives:
        return SlcLimit(None, "the drives are not known")
    limits = [_of_drive(drive) for drive in drives]
    sizes = [limit.size for limit in limits if limit.size is not None]
    source = "; ".join(dict.fromkeys(limit.source for limit in limits))
    return SlcLimit(sum(sizes) if len(sizes) == len(limits) else None, source)


def _of_drive(drive: Mapping[str, Any]) -> SlcLimit:
    stated = stated_value(str(drive.get("model") or ""), "slc.size")
    if stated is not None:
        return SlcLimit(parse_size(str(stated.value)), f"the profile {stated.profile}")
    if not drive.get("size_bytes"):
        return SlcLimit(None, "the capacity of the drive is not known")
    size = int(drive["size_bytes"] * SHARE)
    name = drive.get("model") or drive.get("name") or "the drive"
    return SlcLimit(size, f"a third of the {format_size(drive['size_bytes'])} of {name}")
