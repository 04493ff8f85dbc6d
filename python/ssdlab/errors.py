"""The exception tree: every error that ssdlab raises for a cause outside its code.

    SsdlabError                 base class; never raised itself
    ├── UsageError              wrong use or bad input
    │   └── TargetError         an unusable target: missing, mounted, too small ...
    ├── DeviceFailure           a device failed during use: EIO, removed, wrong data
    └── Interrupted             the user interrupted the run; its data so far is kept

A bug raises an AssertionError or another built-in exception, and shows its traceback.
"""

from __future__ import annotations

from typing import ClassVar


class SsdlabError(Exception):
    """Base class; `str(error)` is always one line.

    `exit_status` is the exit status of the command line.
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        """Escapes newlines in `message`, which may come from file names."""
        super().__init__("\\n".join(message.splitlines()))


class UsageError(SsdlabError):
    """Wrong use or bad input; the message says what was given, what is allowed, what to do."""

    exit_status = 2


class TargetError(UsageError):
    """A target (file, directory, device, twin) that cannot be used as requested."""


class DeviceFailure(SsdlabError):  # noqa: N818 -- the device failed, not ssdlab: not an "...Error"
    """A device failed in operation: an I/O error, a timeout, or wrong data."""


class Interrupted(SsdlabError):  # noqa: N818 -- the user's decision, not an error
    """The user interrupted the run (Ctrl-C)."""

    exit_status = 3
