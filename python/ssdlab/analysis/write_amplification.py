"""Write amplification from the spare area, and the inverse.

For uniform random writes over the visible capacity. `alpha` is flash / visible capacity: spare
(hidden / all) is 1 - 1 / alpha, and overprovisioning (hidden / visible) is alpha - 1. A drive's
victim policy is not known. The closed form is that of FIFO (the oldest superblock), which is the
limit of greedy for large superblocks; docs/models/collection.md compares it with other policies.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

BY_POLICY: Final = (0.87, 1.33)
"""WAF of other victim policies / the closed form, at 5 to 40 % spare and with superblocks of 64
units: 0.87 to 0.99 for greedy, 1.14 to 1.18 for the emptiest of three random superblocks, 1.26 to
1.33 for the emptier of two. Real superblocks have thousands of units."""


class Bracket(NamedTuple):
    """A value with its bounds."""

    value: float
    low: float
    high: float


def waf_from_alpha(alpha: float) -> float:
    """WAF if the oldest superblock is the victim; `alpha` > 1.

    A = alpha / (alpha + W(-alpha exp(-alpha))) with Lambert's W (Xiang and Kurkoski, arXiv
    1110.4245).
    """
    from scipy.special import lambertw

    assert alpha > 1, f"alpha is {alpha}: without spare, nothing can be collected"
    return alpha / (alpha + float(lambertw(-alpha * math.exp(-alpha)).real))


def alpha_from_waf(waf: float) -> float:
    """The inverse of `waf_from_alpha`; `waf` > 1."""
    assert waf > 1, f"WAF is {waf}: without relocation, it shows no spare"
    valid = 1 - 1 / waf
    return -math.log(valid) / (1 - valid)


def spare_from_alpha(alpha: float) -> float:
    """Hidden flash / all flash."""
    return 1 - 1 / alpha
