"""Figures as SVG: each function takes runs and gives an `<svg>` element, or "" for nothing."""

from ssdlab.report.figure.canvas import NARROW, WIDE, Size
from ssdlab.report.figure.curve import read_time, read_time_curve
from ssdlab.report.figure.latency import latency_histogram, overwrite_latency
from ssdlab.report.figure.timeline import over_time

__all__ = [
    "NARROW",
    "WIDE",
    "Size",
    "latency_histogram",
    "over_time",
    "overwrite_latency",
    "read_time",
    "read_time_curve",
]
