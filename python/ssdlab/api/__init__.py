"""The Python interface of ssdlab (`import ssdlab`), which the command line also uses.

`open_target` opens a twin, a directory or a block device, and `Target.run` runs an experiment on it
and saves the run. `open_run` and `open_runs` read saved runs, `compare` compares them,
`compare_in_turns` measures several targets in turns, and `run_sweep` runs many twins. Nothing here
prints; every error is an `SsdlabError`.
"""

from ssdlab.api.comparison import Comparison, compare
from ssdlab.api.run import Run, Runs, open_run, open_runs, resume
from ssdlab.api.sweep import Sweep, open_sweep, run_sweep
from ssdlab.api.target import Target, open_target
from ssdlab.api.turns import compare_in_turns
from ssdlab.errors import DeviceFailure, Interrupted, SsdlabError, TargetError, UsageError
from ssdlab.records import Finding
from ssdlab.runner.progress import Report
from ssdlab.warning import MeasurementWarning

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
