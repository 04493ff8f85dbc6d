"""The registry: what each experiment is made of. A new experiment adds its line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.experiments.aging import analysis as aging_analysis
from ssdlab.experiments.aging import measure as aging
from ssdlab.experiments.cache import analysis as cache_analysis
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.fragments import analysis as fragments_analysis
from ssdlab.experiments.fragments import measure as fragments
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.placement import analysis as placement_analysis
from ssdlab.experiments.placement import measure as placement
from ssdlab.experiments.replay import analysis as replay_analysis
from ssdlab.experiments.replay import measure as replay
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.experiments.trim import analysis as trim_analysis
from ssdlab.experiments.trim import measure as trim
from ssdlab.experiments.turns import analysis as turns_analysis
from ssdlab.experiments.turns import measure as turns
from ssdlab.experiments.workload import analysis as workload_analysis
from ssdlab.experiments.workload import measure as workload
from ssdlab.runner.session import RunSession


@dataclass(frozen=True)
class Experiment:
    """How it is planned (the class of its plan), measured, and what is concluded."""

    plan: type[Any]
    measure: Callable[[RunSession, Any], None]
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
