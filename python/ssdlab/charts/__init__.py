"""Charts as SVG elements for HTML pages: a `Chart` has two axes and draws marks over them."""

from ssdlab.charts.chart import Axis, Chart, Row, stacked
from ssdlab.charts.marks import (
    Line,
    Mark,
    Named,
    area,
    bars,
    dots,
    rule,
    stairs,
    stroke,
    text_above,
    values,
)
from ssdlab.charts.rows import Case, Ratio, Value, forest, values_by_case
from ssdlab.charts.svg import (
    LIGHT,
    NARROW,
    PALETTE,
    RUN_ROLES,
    WIDE,
    Size,
    draw_file,
    run_colour,
)
from ssdlab.charts.throughput import over_time

__all__ = [
    "LIGHT",
    "NARROW",
    "PALETTE",
    "RUN_ROLES",
    "WIDE",
    "Axis",
    "Case",
    "Chart",
    "Line",
    "Mark",
    "Named",
    "Ratio",
    "Row",
    "Size",
    "Value",
    "area",
    "bars",
    "dots",
    "draw_file",
    "forest",
    "over_time",
    "rule",
    "run_colour",
    "stacked",
    "stairs",
    "stroke",
    "text_above",
    "values",
    "values_by_case",
]
