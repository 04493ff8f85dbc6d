"""What the doctor says, for people: on the terminal and as a page. Renders, computes nothing."""

from ssdlab.report.doctor.html import write_html
from ssdlab.report.doctor.page import Report
from ssdlab.report.doctor.terminal import render

__all__ = ["Report", "render", "write_html"]
