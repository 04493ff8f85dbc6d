"""What a drive is said to do with its write cache when the power goes: no measurement tells.

A flush that costs nothing is honest on a drive whose buffer outlives the power, and a lie on any
other: who sells the drive has to say which it is. Sources, best first: the user, the profile of a
twin, the profile of the same model, and what the drive tells the kernel.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab import profiles
from ssdlab.runner.open_target import OpenTarget

Word = Literal["protected", "volatile", "unknown"]
_SURE: Final = frozenset({"datasheet", "measured"})


@dataclass(frozen=True)
class Claim:
    """Whether the write cache is said to outlive the power, and who says so."""

    word: Word
    source: str


def claim_of(opened: OpenTarget, data_sheet: Word = "unknown") -> Claim:
    """What is said of a site's drives; `data_sheet` is what the user read there."""
    if data_sheet != "unknown":
        return Claim(data_sheet, "the data sheet, as the user says")
    if opened.is_virtual:
        protected = bool(opened.identity["power_loss_protection"])
        return Claim("protected" if protected else "volatile", "the twin's profile")
    return of_drives(opened.identity.get("drives", ()))


def of_drives(drives: Sequence[Mapping[str, Any]]) -> Claim:
    """What is said of real drives, as a site's identity names them; of several the worst."""
    claims = [_of_drive(drive) for drive in drives]
    for word in ("volatile", "unknown", "protected"):
        for claim in claims:
            if claim.word == word:
                return claim
    return Claim("unknown", "the drives below are not known")


def _of_drive(drive: Mapping[str, Any]) -> Claim:
    model = str(drive.get("model") or "")
    for name in profiles.names():
        known = _protection(tomllib.loads(profiles.load(name)), model)
        if known is not None:
            return Claim("protected" if known else "volatile", f"the profile {name}")
    if drive.get("write_cache") == "write through":
        # The kernel then sends no flush at all. Root may have set this against the truth.
        return Claim("protected", "the drive, which tells the kernel of no volatile write cache")
    is_nvme = str(drive.get("transport")).startswith("nvme")  # over a network, too
    if is_nvme and drive.get("write_cache") == "write back":
        return Claim("volatile", "the drive, which tells the kernel of a volatile write cache")
    # SATA drives with capacitors have a write cache that is on, too.
    return Claim("unknown", "nobody")


def _protection(profile: Mapping[str, Any], model: str) -> bool | None:
    """What a profile knows of a drive's protection, if it is that of this model.

    The last word of a profile's model is the maker's part number, which the drive reports.
    """
    number = str(profile["drive"]["model"]).split()[-1].lower()
    value = profile.get("buffer", {}).get("power_loss_protection")
    if number not in model.lower() or not isinstance(value, Mapping):
        return None
    return bool(value["value"]) if value.get("kind") in _SURE else None
