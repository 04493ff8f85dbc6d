"""Finished runs for people: on the terminal and as a page. Renders findings, computes nothing.

`render` prints one run; `write_html` puts several into one self-contained file. What each
experiment shows is registered in `experiments`; figures alone are in `figure`.
"""

from ssdlab.report.html import write_html
from ssdlab.report.terminal import render

__all__ = ["render", "write_html"]
