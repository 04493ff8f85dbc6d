"""ssdlab measures an SSD, simulates it as a twin, and finds what will make it fast again.

    import ssdlab

    run = ssdlab.open_target("twin:toshiba-xg5").run(ssdlab.Aging(quick=True), seed=1)
    run.verdict, run.findings["slowdown"].value, run.table().to_pandas()

`ssdlab.api` documents all names in `__all__`. They are loaded when first used, so that the command
line prints its help quickly.
"""
# ruff: noqa: F405 -- the names of the list below come from the star imports; mypy checks them

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ssdlab import experiments as _experiments
from ssdlab.experiments import *  # noqa: F403 -- one line an experiment there is enough

if TYPE_CHECKING:
    from ssdlab.api import *  # noqa: F403 -- its `__all__` is the list below

__all__ = [
    "Comparison",
    "DeviceFailure",
    "Finding",
    "Interrupted",
    "MeasurementWarning",
    "Report",
    "Run",
    "Runs",
    "SsdlabError",
    "Sweep",
    "Target",
    "TargetError",
    "UsageError",
    "compare",
    "compare_in_turns",
    "open_run",
    "open_runs",
    "open_sweep",
    "open_target",
    "resume",
    "run_sweep",
]


__all__ += _experiments.__all__


def __getattr__(name: str) -> Any:
    """Loads `ssdlab.api` and returns the object with this name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("ssdlab.api"), name)


def __dir__() -> list[str]:
    """The public names, most of which are loaded when they are used."""
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__"])
