"""Write amplification and spare area, each from the other, and from what writes cost.

Uniform writes at random over all that is visible. `alpha` is flash that holds data over visible
capacity; spare is hidden / all = 1 - 1 / alpha, overprovisioning hidden / visible = alpha - 1.
Which victim a drive collects is not known; the closed form is that of the oldest, which is greedy's
limit for large superblocks: docs/models/collection.md has it beside the others.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

UNITS_A_PAGE: Final = 4
"""Mapping units of 4 KiB in a page of 16 KiB, as of most drives since 2013."""
BY_POLICY: Final = (0.87, 1.33)
"""WAF of other victims over the closed form, at spares of 5 to 40 %: greedy with superblocks of 64
units is 0.87 to 0.99 of it, the emptiest of three picked at random 1.14 to 1.18, of two 1.26 to
1.33. Real superblocks have thousands of units."""


class Bracket(NamedTuple):
    """A value between two bounds."""

    value: float
    low: float
    high: float


def waf_of(alpha: float) -> float:
    """WAF when the oldest superblock is the victim, from alpha above 1.

    A = alpha / (alpha + W(-alpha exp(-alpha))), W Lambert's (Xiang and Kurkoski, arXiv 1110.4245).
    """
    from scipy.special import lambertw

    assert alpha > 1, f"flash for {alpha} of what is visible collects nothing"
    return alpha / (alpha + float(lambertw(-alpha * math.exp(-alpha)).real))


def alpha_of(waf: float) -> float:
    """The inverse: A = 1 / (1 - exp(-alpha / A)) solved for alpha, from a WAF above 1."""
    assert waf > 1, f"a WAF of {waf} says nothing of spare"
    return -waf * math.log1p(-1 / waf)


def spare_of(alpha: float) -> float:
    """Hidden flash / all flash."""
    return 1 - 1 / alpha


def waf_from_costs(steady: float, alone: float, read: float) -> Bracket | None:
    """WAF from seconds a byte: of steady writes, of the same with nothing to move, of reads.

    A byte of the host that carries WAF - 1 moved bytes with it costs WAF programs and the senses
    for what is moved. If senses cost nothing, WAF is steady / alone: the high bound. If each takes
    its die as long as a read at random of the host's does, `read` a byte of such a 4 KiB request,
    it is (steady / alone + r) / (1 + r), r = senses a moved unit x read / alone: the low bound.
    The value is the geometric mean. None where steady writes are no dearer than those alone.
    """
    ratio = steady / alone
    if ratio <= 1:
        return None
    waf = ratio
    for _ in range(20):  # fewer units of a victim are valid at a lower WAF, and share senses less
        share = senses_a_move(1 - 1 / waf) * read / alone
        waf = (ratio + share) / (1 + share)
    return Bracket(math.sqrt(waf * ratio), waf, ratio)


def senses_a_move(valid: float, units: int = UNITS_A_PAGE) -> float:
    """Senses for a valid unit where a share of a victim is valid, anywhere: one for each page."""
    if valid <= 0:
        return 1.0
    return (1 - (1 - valid) ** units) / (units * valid)
