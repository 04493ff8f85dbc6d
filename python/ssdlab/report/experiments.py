"""The registry: which experiment is shown by which view. A new experiment adds its line here."""

from __future__ import annotations

from typing import Final

from ssdlab.experiments.aging import report as aging
from ssdlab.experiments.cache import report as cache
from ssdlab.experiments.fragments import report as fragments
from ssdlab.experiments.fsync import report as fsync
from ssdlab.experiments.placement import report as placement
from ssdlab.experiments.replay import report as replay
from ssdlab.experiments.split import report as split
from ssdlab.experiments.steady import report as steady
from ssdlab.experiments.stripe import report as stripe
from ssdlab.experiments.suite import report as suite
from ssdlab.experiments.trim import report as trim
from ssdlab.experiments.turns import report as turns
from ssdlab.experiments.workload import report as workload
from ssdlab.records import Run
from ssdlab.report import generic_view as generic
from ssdlab.view import View

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
