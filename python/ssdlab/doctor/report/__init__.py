"""The doctor's report on the terminal and as an HTML page. Renders only; computes nothing."""

from ssdlab.doctor.report.content import Report
from ssdlab.doctor.report.html import write_html
from ssdlab.doctor.report.terminal import render

__all__ = ["Report", "render", "write_html"]
