"""What more of a number means: faster, slower, better, worse, or just more."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Sense(NamedTuple):
    """What to call a number above the other, and one below it."""

    more: str
    less: str


NONE_SHOWN: Final = "no difference shown"
RATE: Final = Sense("faster", "slower")
TIME: Final = Sense("slower", "faster")
COST: Final = Sense("worse", "better")
NEITHER: Final = Sense("higher", "lower")

_TIME: Final = re.compile(r"(?:^|.*_)(?:ns|us|ms|s)(?:_(?:p\d+|mean|max|all))?")
_NAMED: Final = {
    **dict.fromkeys(("slowdown", "waf", "split_penalty", "penalty", "iops_cv"), COST),
    "mean": RATE,  # of a suite's row: its access times have a unit
}
_TIMES: Final = frozenset({"ns", "us", "ms", "s", "min"})


def sense_of(name: str, unit: str) -> Sense:
    """By the name of a finding or column, that ends in its unit, and the unit of the row."""
    if unit in _TIMES or (not unit and _TIME.fullmatch(name) and not name.endswith("_per_s")):
        return TIME
    if name in _NAMED:
        return _NAMED[name]
    if name.startswith("slowdown"):
        return COST
    if "iops" in name or "_per_s" in name or unit in {"/s", "MiB/s"}:
        return RATE
    return NEITHER
