"""The exception tree: every error that ssdlab raises on purpose.

    SsdlabError                 anything ssdlab raises on purpose; never raised itself
    ├── UsageError              wrong use or bad input: one line (given, allowed, what to do)
    │   └── TargetError         a target that cannot be used: missing, mounted, too small ...
    ├── DeviceFailure           a device failed while it was in use: EIO, gone, wrong data
    └── Interrupted             the user stopped the work; what was measured so far is kept

A bug is none of these: it stays an AssertionError (or what Python raises) and shows its traceback.
"""

from __future__ import annotations

from typing import ClassVar


class SsdlabError(Exception):
    """Root of the tree; `str(error)` is always exactly one line.

    `exit_status` is what the command line returns for it (design, section 5).
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str) -> None:
        """Keep `message` on one line: a file name may hold a newline, an error may not."""
        super().__init__("\\n".join(message.splitlines()))


class UsageError(SsdlabError):
    """Wrong use or bad input: the message says what was given, what is allowed, what to do."""

    exit_status = 2


class TargetError(UsageError):
    """A target (file, directory, device, twin) that cannot be used as asked."""


class DeviceFailure(SsdlabError):  # noqa: N818 -- the device failed, not ssdlab: not an "...Error"
    """A device failed in operation: an I/O error, a time-out, or data that came back wrong."""


class Interrupted(SsdlabError):  # noqa: N818 -- the user's wish, not an error
    """The user stopped the work (Ctrl-C)."""

    exit_status = 3
