"""ssdlab as Python programs use it, and the command line too: what `import ssdlab` offers.

`open_target` names what is measured, `Target.run` asks it a question and keeps the run,
`open_run` and `open_runs` read back what was kept, `compare` holds runs against each other,
`compare_in_turns` measures several now, `run_sweep` runs many twins. Nothing here prints; what goes
wrong is an `SsdlabError`.
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
