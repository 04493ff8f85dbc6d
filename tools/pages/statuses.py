"""Reference of the exit statuses, from the exception classes: `markdown()`."""

from __future__ import annotations

from collections.abc import Iterator

from pages.table import table
from ssdlab.errors import SsdlabError


def markdown() -> str:
    """A table of the errors with their exit statuses."""
    rows = [(str(e.exit_status), f"`{e.__name__}`", _first_line(e)) for e in _errors()]
    return table(("status", "error", "when"), sorted(rows)) + "\n"


def _errors() -> Iterator[type[SsdlabError]]:
    pending = list(SsdlabError.__subclasses__())
    while pending:
        error = pending.pop()
        pending += error.__subclasses__()
        if error.__module__ == SsdlabError.__module__:
            yield error


def _first_line(error: type[SsdlabError]) -> str:
    return (error.__doc__ or "").splitlines()[0]
