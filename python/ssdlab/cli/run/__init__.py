"""`ssdlab run`: an experiment on one target or several; one file an experiment.

To import a file is to register its command; their order is that of the help.
"""

from ssdlab.cli.run import (
    aging,
    cache,
    fragments,
    fsync,
    placement,
    resume,
    split,
    steady,
    stripe,
    suite,
    trim,
    workload,
)
from ssdlab.cli.run.group import app

__all__ = [
    "aging",
    "app",
    "cache",
    "fragments",
    "fsync",
    "placement",
    "resume",
    "split",
    "steady",
    "stripe",
    "suite",
    "trim",
    "workload",
]
