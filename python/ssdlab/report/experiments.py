"""The registry: which experiment is shown by which view. A new experiment adds its line here."""

from __future__ import annotations

from typing import Final

from ssdlab.records import Run
from ssdlab.report import aging, generic
from ssdlab.report.view import View

_VIEWS: Final = {"aging": aging.VIEW}


def view_of(run: Run) -> View:
    """The view of the run's experiment; one that shows everything plainly where there is none."""
    return _VIEWS.get(run.manifest.experiment, generic.VIEW)
