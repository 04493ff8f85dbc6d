"""Twins: drives in virtual time, created from the text of a profile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from ssdlab._native import Drive, describe_profile
from ssdlab.errors import TargetError
from ssdlab.units import format_size

CAPACITY_MAX: Final = 1 << 62
"""Largest capacity of a twin in bytes: addresses have 32 bits, byte counts 64."""


def open_twin(
    name: str, profile: str, capacity_bytes: int | None = None, *, seed: int = 0
) -> Drive:
    """A new twin of a profile, scaled to `capacity_bytes` if given.

    The seed determines random choices in the model, such as victims.

    Raises:
        TargetError: the profile is invalid; the message has its name, the key and allowed values.
    """
    with _errors_with_name(name, capacity_bytes):
        return Drive.twin(profile, capacity_bytes, seed=seed)


def describe_twin(name: str, profile: str, capacity_bytes: int | None = None) -> dict[str, Any]:
    """Model, sizes in bytes, number of dies, spare and more of a profile's twin.

    Raises:
        TargetError: as `open_twin`.
    """
    with _errors_with_name(name, capacity_bytes):
        return describe_profile(profile, capacity_bytes)


@contextlib.contextmanager
def _errors_with_name(name: str, capacity_bytes: int | None) -> Iterator[None]:
    scaled = "" if capacity_bytes is None else f" scaled to {format_size(capacity_bytes)}"
    if capacity_bytes is not None and not 0 < capacity_bytes <= CAPACITY_MAX:
        raise TargetError(
            f"{name}{scaled}: the capacity must be 1 B to {format_size(CAPACITY_MAX)}"
        )
    try:
        yield
    except TargetError as error:
        raise TargetError(f"{name}{scaled}: {error}") from error
