"""An experiment, as the runner, the command line and the reports see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ssdlab.runner.parameters import Parameters

if TYPE_CHECKING:
    from ssdlab.analysis.cells import Columns
    from ssdlab.analysis.evidence import Conclusion, Evidence
    from ssdlab.runner.session import Plan, RunSession
    from ssdlab.target import Target
    from ssdlab.view import View


@dataclass(frozen=True)
class Experiment:
    """A package with four modules, each imported when it is first needed.

    `parameters`  the subclass of `Parameters`
    `measure`     `Plan`, `plan(parameters, target, seed)` and `measure(session, plan)`
    `analysis`    `conclude(evidence)`, and `COLUMNS` if its measures have values to compare
    `report`      `VIEW`

    `parameters` is None for an experiment without a command of its own.
    """

    name: str
    package: str
    parameters: type[Parameters] | None = None

    @classmethod
    def of(cls, parameters: type[Parameters]) -> Experiment:
        """The experiment that `parameters` belong to."""
        package = parameters.__module__.rpartition(".")[0]
        return cls(parameters.experiment(), package, parameters)

    @property
    def plan_type(self) -> type[Any]:
        """The class of its plans, which a manifest stores."""
        return cast("type[Any]", self._module("measure").Plan)

    def plan(self, parameters: Parameters, target: Target, seed: int) -> Plan:
        """The plan of a run with these parameters on a target.

        Raises:
            UsageError: a parameter is out of range.
        """
        return cast("Plan", self._module("measure").plan(parameters, target, seed))

    @property
    def measure(self) -> Callable[[RunSession, Any], None]:
        """The function that runs a plan in a session."""
        return cast("Callable[[RunSession, Any], None]", self._module("measure").measure)

    @property
    def conclude(self) -> Callable[[Evidence], Conclusion]:
        """The function that computes findings from records."""
        return cast("Callable[[Evidence], Conclusion]", self._module("analysis").conclude)

    @property
    def columns(self) -> Columns | None:
        """The columns of its measures that identify a case, and those with measured values."""
        return getattr(self._module("analysis"), "COLUMNS", None)

    @property
    def view(self) -> View:
        """Table, charts and text of its reports."""
        return cast("View", self._module("report").VIEW)

    def _module(self, name: str) -> Any:
        return import_module(f"{self.package}.{name}")
