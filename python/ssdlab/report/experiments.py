"""The registry: which experiment is shown by which view. A new experiment adds its line here."""

from __future__ import annotations

from typing import Final

from ssdlab.records import Run
from ssdlab.report.compare import turns
from ssdlab.report.view import View
from ssdlab.report.views import (
    aging,
    cache,
    fragments,
    fsync,
    generic,
    placement,
    replay,
    split,
    steady,
    stripe,
    suite,
    trim,
    workload,
)

_VIEWS: Final = {
    "aging": aging.VIEW,
    "cache": cache.VIEW,
    "fragments": fragments.VIEW,
    "fsync": fsync.VIEW,
    "placement": placement.VIEW,
    "replay": replay.VIEW,
    "split": split.VIEW,
    "steady": steady.VIEW,
    "stripe": stripe.VIEW,
    "suite": suite.VIEW,
    "trim": trim.VIEW,
    "turns": turns.VIEW,
    "workload": workload.VIEW,
}


def view_of(run: Run) -> View:
    """The view of the run's experiment; one that shows everything plainly where there is none."""
    return _VIEWS.get(run.manifest.experiment, generic.VIEW)
