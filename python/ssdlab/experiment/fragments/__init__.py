"""fragments: what does a file in pieces cost to read, and is it the host or the drive?

A file of 8 MiB lies in 1 to 256 pieces, and is read one command at a time and many at a time. In
between the same bytes are read by the same commands from a file that lies in order: what that costs
is the price of splitting. What the pieces cost beyond it is the drive's: they lie on few dies.
Source of the method: the published study of fragmented files (FAST '24), its layout and its depths.
"""

from ssdlab.experiment.fragments.measure import measure
from ssdlab.experiment.fragments.plan import Plan, plan

__all__ = ["Plan", "measure", "plan"]
