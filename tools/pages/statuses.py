"""The reference of exit statuses, out of the exception tree: `markdown()`."""

from __future__ import annotations

from collections.abc import Iterator

from pages.table import table
from ssdlab.errors import SsdlabError


def markdown() -> str:
    """Each error that the program ends by, with its status."""
    rows = [(str(each.exit_status), f"`{each.__name__}`", _told(each)) for each in _leaves()]
    return table(("status", "error", "when"), sorted(rows)) + "\n"


def _leaves() -> Iterator[type[SsdlabError]]:
    waiting = list(SsdlabError.__subclasses__())
    while waiting:
        error = waiting.pop()
        waiting += error.__subclasses__()
        if error.__module__ == SsdlabError.__module__:
            yield error


def _told(error: type[SsdlabError]) -> str:
    return (error.__doc__ or "").splitlines()[0]
