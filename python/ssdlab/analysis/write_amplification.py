"""Write amplification from the spare area, the inverse, and write amplification from write times.

For uniform random writes over the visible capacity. `alpha` is flash / visible capacity: spare
(hidden / all) is 1 - 1 / alpha, and overprovisioning (hidden / visible) is alpha - 1. A drive's
victim policy is not known. The closed form is that of FIFO (the oldest superblock), which is the
limit of greedy for large superblocks; docs/models/collection.md compares it with other policies.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

UNITS_PER_PAGE: Final = 4
"""Mapping units of 4 KiB in a page of 16 KiB, as in most drives since 2013."""
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


def spare_from_alpha(alpha: float) -> float:
    """Hidden flash / all flash."""
    return 1 - 1 / alpha


def waf_from_costs(
    steady: float, alone: float, read: float, units: int = UNITS_PER_PAGE
) -> Bracket | None:
    """WAF from seconds per byte: steady writes, writes without relocation, random 4 KiB reads.

    A host byte costs WAF programmed bytes and the senses of WAF - 1 relocated bytes. If senses are
    free, WAF is steady / alone: the upper bound. If a sense occupies its die as long as a random
    host read, WAF is (steady / alone + r) / (1 + r) with r = senses per relocated unit x read /
    alone: the lower bound. The value is their geometric mean. A page has `units` mapping units.
    None if steady writes do not cost more than writes without relocation.
    """
    ratio = steady / alone
    if ratio <= 1:
        return None
    waf = ratio
    for _ in range(20):  # at a lower WAF a victim has fewer valid units, and a sense yields fewer
        share = senses_per_unit(1 - 1 / waf, units) * read / alone
        waf = (ratio + share) / (1 + share)
    return Bracket(math.sqrt(waf * ratio), waf, ratio)


def senses_per_unit(valid: float, units: int = UNITS_PER_PAGE) -> float:
    """Senses per relocated unit if the fraction `valid` of a victim's units is valid.

    One sense reads all valid units of a page; valid units are at random positions.
    """
    if valid <= 0:
        return 1.0
    return (1 - (1 - valid) ** units) / (units * valid)
