"""fragments: what does a file in pieces cost to read, and is it the host or the drive?

A file of 8 MiB lies in 1 to 256 pieces, and is read one command at a time and many at a time. In
between the same bytes are read by the same commands from a file that lies in order: what that costs
is the price of splitting. What the pieces cost beyond it is the drive's: they lie on few dies.
Source of the method: the published study of fragmented files (FAST '24), its layout and its depths.
"""

from __future__ import annotations

from ssdlab.experiments.fragments import addresses, files, memory
from ssdlab.experiments.fragments.plan import Plan, plan
from ssdlab.runner.session import RunSession

__all__ = ["Plan", "measure", "plan"]


def measure(session: RunSession, plan: Plan) -> None:
    """Makes each layout and reads it, at each depth, beside a file that lies in order.

    Raises:
        TargetError: the layout cannot be made in this directory.
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    if session.target.test_file is None:
        addresses.measure(session, plan)
    else:
        files.measure(session, plan)
        session.target.check_uncached()
    if not session.target.is_virtual:
        memory.measure(session, plan)
