"""Figures as SVG: each function takes runs and gives an `<svg>` element, or "" for nothing."""

from ssdlab.charts.canvas import NARROW, WIDE, Size
from ssdlab.charts.curve import read_time, read_time_curve
from ssdlab.charts.dots import Dot, Row, dots
from ssdlab.charts.forest import Ratio, forest
from ssdlab.charts.latency import latency_histogram, overwrite_latency
from ssdlab.charts.lines import Chart, Line, lines
from ssdlab.charts.scatter import Spot, scatter
from ssdlab.charts.shares import Bar, Shares
from ssdlab.charts.timeline import over_time

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
