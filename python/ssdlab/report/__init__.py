"""Finished runs for people: on the terminal and as a page. Renders findings, computes nothing.

`render` prints one run; `write_html` puts several into one self-contained file, `html_part` into
a notebook; `WhatIf`, `SideBySide`, `SweepPage` and `RunList` are what was asked of several
together; `as_fio` says a run's steps in fio's words. What each experiment shows is registered in
`experiments`; figures alone are in `figure`.
"""

from ssdlab.comparison.report import SideBySide
from ssdlab.report.as_fio import as_fio
from ssdlab.report.html import html_part, write_html
from ssdlab.report.run_list import RunList
from ssdlab.report.several import render_asked
from ssdlab.report.terminal import render
from ssdlab.report.what_if import WhatIf
from ssdlab.sweep.report import SweepPage

__all__ = [
    "RunList",
    "SideBySide",
    "SweepPage",
    "WhatIf",
    "as_fio",
    "html_part",
    "render",
    "render_asked",
    "write_html",
]
