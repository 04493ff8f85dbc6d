"""The run: on addresses or in files, and the host's share on a drive in memory."""

from __future__ import annotations

from ssdlab.experiment.fragments import addresses, files, memory
from ssdlab.experiment.fragments.plan import Plan
from ssdlab.experiment.frame.course import Course


def measure(course: Course, plan: Plan) -> None:
    """Makes each layout and reads it, at each depth, beside a file that lies in order.

    Raises:
        TargetError: the layout cannot be made in this directory.
        Interrupted, DeviceFailure: as `Course.conduct`.
    """
    if course.site.test_file is None:
        addresses.measure(course, plan)
    else:
        files.measure(course, plan)
        course.site.check_uncached()
    if not course.site.is_virtual:
        memory.measure(course, plan)
