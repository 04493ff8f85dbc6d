"""Effect of spare and ageing under several garbage collectors, on the 840 Pro's twin.

Usage: python bench/twins/provisioning.py [SCALE]

The published test has two of the four states; this shows which collectors its drive can have. SCALE
is a share of the drive [1/64] (`ssdlab/fit/published.py`). `cargo bench -p
ssdlab-workload --bench provisioning` runs the shipped profile at full size.
"""

from __future__ import annotations

import sys
from typing import Final

from ssdlab import profiles
from ssdlab.fit.published import Past, steady_rate
from ssdlab.profiles.toml_edit import set_value

SCALE: Final = 1 / 64
STATES: Final[tuple[tuple[int, Past], ...]] = (
    (512, "erased"),
    (512, "aged"),
    (400, "erased"),
    (400, "aged"),
)
COLLECTORS: Final[dict[str, dict[str, str]]] = {
    "greedy, relocated units among the host's (the profile)": {},
    "greedy, relocated units apart": {"ftl.relocation": "separate"},
    "best of 10, relocated units apart": {"ftl.victim": "d-choices", "ftl.relocation": "separate"},
    "cost-benefit, relocated units apart": {
        "ftl.victim": "cost-benefit",
        "ftl.relocation": "separate",
    },
}


def print_row(name: str, changes: dict[str, str], scale: float) -> None:
    """Prints a collector's rates in the four states, and the effect of ageing alone."""
    text = profiles.load("samsung-840-pro")
    for key, value in changes.items():
        text = set_value(text, key, value)
    rates = [steady_rate(text, visible, past, scale) for visible, past in STATES]
    shown = " | ".join(f"{rate.per_s:.0f} ({rate.waf:.2f})" for rate in rates)
    erased, aged, erased_400, _ = (rate.per_s for rate in rates)
    print(f"| {name} | {shown} | {erased_400 / aged:.1f} | {erased / aged:.1f} |", flush=True)


def main(scale: float = SCALE) -> None:
    """Prints one row for each collector."""
    print("Requests/s (WAF). The article: 7139 at 512 GB, aged, 69000 at 400 GB, erased: 9.7.")
    states = " | ".join(f"{visible} GB, {past}" for visible, past in STATES)
    print(f"| collector | {states} | ratio of the two | ageing alone, 512 GB |")
    print("|---|---|---|---|---|---|---|")
    for name, changes in COLLECTORS.items():
        print_row(name, changes, scale)


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:]))
