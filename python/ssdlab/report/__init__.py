"""Reports finished runs on a terminal, as an HTML page or in a notebook; computes nothing.

`render` prints one run, `render_group` a report on several (`WhatIf`, `RunList`, ...). `write_html`
writes runs to one self-contained file; `html_part` returns the same for a notebook. `as_fio`
converts the steps of a run to a fio job file. `experiments` lists the view of each experiment.
"""

from ssdlab.report.as_fio import as_fio
from ssdlab.report.group import render_group
from ssdlab.report.html import html_part, write_html
from ssdlab.report.run_list import RunList
from ssdlab.report.terminal import render
from ssdlab.report.what_if import WhatIf

__all__ = [
    "RunList",
    "WhatIf",
    "as_fio",
    "html_part",
    "render",
    "render_group",
    "write_html",
]
