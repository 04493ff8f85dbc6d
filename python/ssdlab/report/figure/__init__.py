"""Figures as SVG: each function takes runs and gives an `<svg>` element, or "" for nothing."""

from ssdlab.report.figure.canvas import NARROW, WIDE, Size
from ssdlab.report.figure.curve import read_time, read_time_curve
from ssdlab.report.figure.dots import Dot, Row, dots
from ssdlab.report.figure.forest import Ratio, forest
from ssdlab.report.figure.latency import latency_histogram, overwrite_latency
from ssdlab.report.figure.lines import Chart, Line, lines
from ssdlab.report.figure.scatter import Spot, scatter
from ssdlab.report.figure.shares import Bar, Shares
from ssdlab.report.figure.timeline import over_time

__all__ = [
    "NARROW",
    "WIDE",
    "Bar",
    "Chart",
    "Dot",
    "Line",
    "Ratio",
    "Row",
    "Shares",
    "Size",
    "Spot",
    "dots",
    "forest",
    "latency_histogram",
    "lines",
    "over_time",
    "overwrite_latency",
    "read_time",
    "read_time_curve",
    "scatter",
]
