"""Drives to run jobs on: a twin or a real one behind one interface.

The only importer of the native module: above it a twin and a real drive look alike.
"""

from ssdlab._native import Drive
from ssdlab.device.jobs import Job, Outcome, run_job
from ssdlab.device.real import open_real
from ssdlab.device.simulated import describe_twin, open_twin

__all__ = ["Drive", "Job", "Outcome", "describe_twin", "open_real", "open_twin", "run_job"]
