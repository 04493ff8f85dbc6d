"""What spare and a drive's past are worth, by the way that it collects: the 840 Pro's twin.

Usage: python bench/twins/provisioning.py [SHARE_OF_A_DRIVE]

The published test has two of the four cells; which collectors can its drive have? Scaled to a
sixty-fourth of the drive unless said otherwise (`ssdlab/fit/published/provisioning.py`); the
profile as it is, in full: `cargo bench -p ssdlab-workload --bench provisioning`.
"""

from __future__ import annotations

import sys
from typing import Final

from ssdlab import profiles
from ssdlab.fit.published.provisioning import Past, steady_rate
from ssdlab.profiles.toml_edit import set_value

SHARE: Final = 1 / 64
CELLS: Final[tuple[tuple[int, Past], ...]] = (
    (512, "erased"),
    (512, "aged"),
    (400, "erased"),
    (400, "aged"),
)
COLLECTORS: Final[dict[str, dict[str, str]]] = {
    "greedy, moved units among the host's (the profile)": {},
    "greedy, moved units apart": {"ftl.relocation": "separate"},
    "best of 10, moved units apart": {"ftl.victim": "d-choices", "ftl.relocation": "separate"},
    "cost-benefit, moved units apart": {
        "ftl.victim": "cost-benefit",
        "ftl.relocation": "separate",
    },
}


def line(name: str, changes: dict[str, str], share: float) -> None:
    """Prints a way to collect: the four cells, and what the drive's past is worth by itself."""
    text = profiles.load("samsung-840-pro")
    for key, value in changes.items():
        text = set_value(text, key, value)
    cells = [steady_rate(text, visible, past, share) for visible, past in CELLS]
    shown = " | ".join(f"{each.per_s:.0f} ({each.waf:.2f})" for each in cells)
    fresh, aged, ample, _ = (each.per_s for each in cells)
    print(f"| {name} | {shown} | {ample / aged:.1f} | {fresh / aged:.1f} |", flush=True)


def main(share: float = SHARE) -> None:
    """Prints a row a way to collect."""
    print(
        "Requests a second (WAF). The article: 7139 at 512 GB, aged, 69000 at 400 GB, erased: 9.7."
    )
    places = " | ".join(f"{visible} GB, {past}" for visible, past in CELLS)
    print(f"| collects | {places} | ratio of the two | past alone, 512 GB |")
    print("|---|---|---|---|---|---|---|")
    for name, changes in COLLECTORS.items():
        line(name, changes, share)


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:]))
