"""What is measured and where its runs are kept: values that the command line and Python share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

RESULTS: Final = Path("ssdlab-runs")
"""The results folder, unless another one is given."""
SEED_MAX: Final = 2**53 - 1
"""The largest whole number that every reader of JSON keeps exactly."""
