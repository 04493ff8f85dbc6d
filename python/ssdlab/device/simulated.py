"""Twins: drives in virtual time, made of a profile's text."""

from __future__ import annotations

from typing import Any

from ssdlab._native import Drive, describe_profile
from ssdlab.errors import TargetError


def open_twin(name: str, profile: str, capacity_bytes: int | None = None) -> Drive:
    """A new twin of a profile, scaled to another capacity where one is given.

    Raises:
        TargetError: a wrong profile: its name, the key, and what that may be.
    """
    try:
        return Drive.twin(profile, capacity_bytes)
    except TargetError as error:
        raise TargetError(f"{name}: {error}") from error


def describe_twin(profile: str, capacity_bytes: int | None = None) -> dict[str, Any]:
    """What the twin of a (right) profile is made of: model, sizes in bytes, dies, spare ..."""
    return describe_profile(profile, capacity_bytes)
