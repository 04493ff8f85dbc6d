"""placement: which rule for where a drive writes keeps files readable, and what does it cost?

Twins of one profile that differ in `ftl.placement` alone get the same writes: files that grow or
are overwritten piece by piece with others between. Then the file is read. It is done on new drives,
and on drives that were overwritten until they collect. A real drive cannot be asked: what a write
is has no place in the requests that reach it from here.
"""

from ssdlab.experiment.placement.measure import measure
from ssdlab.experiment.placement.plan import Plan, fitted, plan, with_host

__all__ = ["Plan", "fitted", "measure", "plan", "with_host"]
