"""The experiments: a package each, with the modules parameters, measure, analysis and report.

This list is the registry. A new experiment adds one line.
"""

from ssdlab.experiments.aging.parameters import Aging as Aging
from ssdlab.experiments.cache.parameters import Cache as Cache
from ssdlab.experiments.fragments.parameters import Fragments as Fragments
from ssdlab.experiments.fsync.parameters import Fsync as Fsync
from ssdlab.experiments.placement.parameters import Placement as Placement
from ssdlab.experiments.replay.parameters import Replay as Replay
from ssdlab.experiments.split.parameters import Split as Split
from ssdlab.experiments.steady.parameters import Steady as Steady
from ssdlab.experiments.stripe.parameters import Stripe as Stripe
from ssdlab.experiments.suite.parameters import Suite as Suite
from ssdlab.experiments.trim.parameters import Trim as Trim
from ssdlab.experiments.workload.parameters import Workload as Workload

__all__ = [name for name, value in list(vars().items()) if isinstance(value, type)]
