"""Experiments by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ssdlab import experiments
from ssdlab.analysis.cells import Cell, cells
from ssdlab.errors import UsageError
from ssdlab.runner.experiment import Experiment
from ssdlab.runner.parameters import Parameters

if TYPE_CHECKING:
    from ssdlab.records import Run
    from ssdlab.view import View

EXPERIMENTS: Final[dict[str, Experiment]] = {}


def register(parameters: type[Parameters]) -> Experiment:
    """Adds an experiment, whose package may be anywhere that Python imports from."""
    experiment = Experiment.of(parameters)
    EXPERIMENTS[experiment.name] = experiment
    return experiment


for _name in experiments.__all__:
    register(getattr(experiments, _name))
# One target of an interleaved comparison; only `ssdlab compare --interleave` runs it.
EXPERIMENTS["turns"] = Experiment("turns", "ssdlab.experiments.turns")


def experiment_of(parameters: object) -> Experiment:
    """The experiment of a parameters object.

    Raises:
        UsageError: something else was given, such as a class or a name.
    """
    if not isinstance(parameters, Parameters):
        given = parameters.__name__ if isinstance(parameters, type) else repr(parameters)
        raise UsageError(
            f"{given} are not the parameters of an experiment; give, for example, "
            "ssdlab.Aging(quick=True)"
        )
    return EXPERIMENTS[parameters.experiment()]


def cells_of(experiment: str, measures: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """The values of `measures` to compare; none for an experiment that compares only findings."""
    known = EXPERIMENTS.get(experiment)
    return [] if known is None else cells(known.columns, measures)


def view_of(run: Run) -> View:
    """The report of a run, with labels of its options; a generic one for an unknown experiment."""
    from ssdlab.experiments import generic_report

    known = EXPERIMENTS.get(run.manifest.experiment)
    if known is None:
        return generic_report.VIEW
    options = {} if known.parameters is None else known.parameters.labels()
    return replace(known.view, parameter_labels={**options, **known.view.parameter_labels})
