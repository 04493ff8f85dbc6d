"""Warnings: reasons why something other than the drive may have determined a result."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class MeasurementWarning(msgspec.Struct, frozen=True, omit_defaults=True):
    """One warning.

    `code` is for scripts and never changes; `sentence` states the cause and what to do. `fatal`:
    the target has no drive to measure (memory, network, read-only), and is refused.
    """

    code: str
    sentence: str
    fatal: bool = False


Warn = Callable[[str, str], object]
"""Adds a warning: its code and its sentence."""
