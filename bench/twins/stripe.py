"""Runs `stripe` on twins with known layout.

Usage: PYTHONPATH=tools python bench/twins/stripe.py [NUMBER_OF_TWINS]
`python bench/twins/held.py stripe` compares the two published curves with their twins.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from known_layouts import MIB, Twin, irregular_layouts, random_twin
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.device import Drive
from ssdlab.experiments.stripe.analysis import conclude
from ssdlab.experiments.stripe.measure import Plan, measure
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession

NOISE: Final = 0.05
SIZE: Final = 1024 * MIB
SMALL: Final = 256 * MIB


def run_stripe(drive: Drive, size: int, seed: int) -> tuple[Conclusion, float]:
    """The conclusion about a drive, and the CPU time in seconds."""
    started = time.process_time()
    plan = Plan(size=size, seed=seed)
    session = RunSession(OpenTarget(drive, {}))
    session.run_plan(measure, plan)
    conclusion = conclude(Evidence(session.recording.tables(), plan.parameters()))
    return conclusion, time.process_time() - started


def grade(conclusion: Conclusion, twin: Twin) -> str:
    """right, WRONG, not determined, or without the number of dies."""
    values = {name: finding.value for name, finding in conclusion.findings.items()}
    if not values["regular"]:
        return "undetermined"
    if values["units"] is None and values["chunk_kib"] == twin.chunk:
        return "chunk only"
    truth = {"chunk_kib": twin.chunk, "stripe_kib": twin.chunk * twin.units, "units": twin.units}
    return "right" if all(values[name] == each for name, each in truth.items()) else "WRONG"


def regular_twins(count: int) -> None:
    """Runs `stripe` on random regular twins, and counts the grades."""
    tally: dict[str, int] = {}
    slowest = 0.0
    for seed in range(count):
        twin = random_twin(seed)
        found, seconds = run_stripe(twin.open(SIZE, NOISE, seed), SIZE, seed)
        word = grade(found, twin)
        tally[word] = tally.get(word, 0) + 1
        slowest = max(slowest, seconds)
        stripe = twin.chunk * twin.units
        shape = f"{twin.channels:2} x {twin.dies} dies, chunk {twin.chunk:3}, stripe {stripe:5} KiB"
        print(f"{seed:3}  {shape}  {word:12} {seconds:5.2f} s  {found.verdict}")
    print(f"of {count} random twins: {tally}; slowest {slowest:.2f} s of one core\n")


def irregular_twins() -> None:
    """Runs `stripe` on the nine twins without a regular stripe."""
    named, slowest = 0, 0.0
    for seed, (name, twin) in enumerate(irregular_layouts().items()):
        found, seconds = run_stripe(twin.open(SMALL, NOISE, seed), SMALL, seed)
        named += found.findings["regular"].value is False
        slowest = max(slowest, seconds)
        print(f"{name:42} {seconds:5.2f} s  {found.verdict}")
    total = len(irregular_layouts())
    print(f"{named} of {total} irregular twins recognised; slowest {slowest:.2f} s\n")


if __name__ == "__main__":
    regular_twins(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
    irregular_twins()
