"""A doubt: one reason why a number measured here may not mean what it seems to mean."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Doubt:
    """One reason to doubt a measurement.

    `code` is for programs and never changes; `sentence` is for people; `fatal` is true where
    nothing about a drive can be measured at all (memory, network, read-only).
    """

    code: str
    sentence: str
    fatal: bool = False
