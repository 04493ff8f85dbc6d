"""The registry: what each experiment is made of. A new experiment adds its line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.analysis import aging as aging_analysis
from ssdlab.analysis import cache as cache_analysis
from ssdlab.analysis import fragments as fragments_analysis
from ssdlab.analysis import fsync as fsync_analysis
from ssdlab.analysis import placement as placement_analysis
from ssdlab.analysis import replay as replay_analysis
from ssdlab.analysis import split as split_analysis
from ssdlab.analysis import steady as steady_analysis
from ssdlab.analysis import stripe as stripe_analysis
from ssdlab.analysis import suite as suite_analysis
from ssdlab.analysis import workload as workload_analysis
from ssdlab.analysis.compare import turns as turns_analysis
from ssdlab.analysis.frame.conclusion import Conclusion, Evidence
from ssdlab.analysis.trim import conclude as trim_analysis
from ssdlab.experiment import (
    aging,
    cache,
    fragments,
    fsync,
    placement,
    replay,
    split,
    steady,
    stripe,
    suite,
    trim,
    turns,
    workload,
)
from ssdlab.experiment.frame.course import Course


@dataclass(frozen=True)
class Experiment:
    """How it is planned (the class of its plan), measured, and what is concluded."""

    plan: type[Any]
    measure: Callable[[Course, Any], None]
    conclude: Callable[[Evidence], Conclusion]


EXPERIMENTS: Final = {
    "aging": Experiment(aging.Plan, aging.measure, aging_analysis.conclude),
    "cache": Experiment(cache.Plan, cache.measure, cache_analysis.conclude),
    "fragments": Experiment(fragments.Plan, fragments.measure, fragments_analysis.conclude),
    "fsync": Experiment(fsync.Plan, fsync.measure, fsync_analysis.conclude),
    "placement": Experiment(placement.Plan, placement.measure, placement_analysis.conclude),
    "replay": Experiment(replay.Plan, replay.measure, replay_analysis.conclude),
    "split": Experiment(split.Plan, split.measure, split_analysis.conclude),
    "steady": Experiment(steady.Plan, steady.measure, steady_analysis.conclude),
    "stripe": Experiment(stripe.Plan, stripe.measure, stripe_analysis.conclude),
    "suite": Experiment(suite.Plan, suite.measure, suite_analysis.conclude),
    "trim": Experiment(trim.Plan, trim.measure, trim_analysis.conclude),
    "turns": Experiment(turns.Plan, turns.measure, turns_analysis.conclude),
    "workload": Experiment(workload.Plan, workload.measure, workload_analysis.conclude),
}
