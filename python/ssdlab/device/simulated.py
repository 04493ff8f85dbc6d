"""Twins: drives in virtual time, made of a profile's text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from ssdlab._native import Drive, describe_profile
from ssdlab.errors import TargetError
from ssdlab.units import format_size

CAPACITY_MAX: Final = 1 << 62
"""No twin is larger: addresses have 32 bits, and byte counts 64."""


def open_twin(
    name: str, profile: str, capacity_bytes: int | None = None, *, seed: int = 0
) -> Drive:
    """A new twin of a profile, scaled to another capacity where one is given.

    The seed decides what chance does in it, such as a random choice of victims.

    Raises:
        TargetError: a wrong profile: its name, the key, and what that may be.
    """
    with _named(name, capacity_bytes):
        return Drive.twin(profile, capacity_bytes, seed=seed)


def describe_twin(name: str, profile: str, capacity_bytes: int | None = None) -> dict[str, Any]:
    """What the twin of a profile is made of: model, sizes in bytes, dies, spare ...

    Raises:
        TargetError: as `open_twin`.
    """
    with _named(name, capacity_bytes):
        return describe_profile(profile, capacity_bytes)


@contextlib.contextmanager
def _named(name: str, capacity_bytes: int | None) -> Iterator[None]:
    scaled = "" if capacity_bytes is None else f" scaled to {format_size(capacity_bytes)}"
    if capacity_bytes is not None and not 0 < capacity_bytes <= CAPACITY_MAX:
        raise TargetError(
            f"{name}{scaled}: a capacity may be from 1 B to {format_size(CAPACITY_MAX)}"
        )
    try:
        yield
    except TargetError as error:
        raise TargetError(f"{name}{scaled}: {error}") from error
