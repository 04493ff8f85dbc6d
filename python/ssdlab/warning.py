"""A warning: a reason why a number that was measured may not mean what it seems to mean."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class MeasurementWarning(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reason to distrust a measurement.

    `code` is for scripts and never changes; `sentence` is for people. If it is `fatal`, nothing
    about a drive can be measured (memory, network, read-only): such a target is refused.
    """

    code: str
    sentence: str
    fatal: bool = False


Warn = Callable[[str, str], object]
"""Adds a warning: its code and its sentence."""
