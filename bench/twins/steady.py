"""Runs `steady` on twins with known spare: hidden spare and WAF, with and without counters.

Usage: PYTHONPATH=python:tools python bench/twins/steady.py [ROW]
Prints one row for each twin: the profile's spare and the usable one (hidden / all flash), the
estimate with its interval; WAF by the twin's counters and by the curve alone; when garbage
collection began and when the state was reported as steady, in multiples of the region.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from known_twins import KnownTwin
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.experiments.steady.analysis import conclude, parts_of, spare_fall
from ssdlab.experiments.steady.measure import measure
from ssdlab.experiments.steady.plan import Plan
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import parse_target

MIB = 1 << 20
TEN, THREE = 'victim = "d-choices"', 'victim = "d-choices"\nchoices = 3'
TWINS: tuple[tuple[str, KnownTwin, int], ...] = (
    ("5 %, greedy", KnownTwin(spare=0.05), 4),
    ("5 %, 4 MiB superblocks, 1 GiB", KnownTwin(1024 * MIB, 0.05, pages_per_block=64), 4),
    ("6 %, large buffer", KnownTwin(spare=0.06, buffer="16 MiB"), 4),
    ("7 %, 10 choices", KnownTwin(spare=0.07, ftl=TEN), 4),
    ("7 %, 10 choices, capacitors", KnownTwin(spare=0.07, ftl=TEN, capacitors=True), 4),
    ("7 %, at random", KnownTwin(spare=0.07, ftl='victim = "random"'), 4),
    ("8 %, one bit a cell", KnownTwin(spare=0.08, read='["25 us"]', program="200 us"), 4),
    ("10 %, 8 MiB buffer, capacitors", KnownTwin(buffer="8 MiB", capacitors=True), 4),
    ("10 %, relocation mixed", KnownTwin(ftl='relocation = "mixed"'), 4),
    ("12 %, two dies", KnownTwin(spare=0.12, dies=2, pages_per_block=32), 4),
    ("15 %, 8 dies, two bits", KnownTwin(spare=0.15, dies=8, read='["40 us", "60 us"]'), 4),
    ("15 %, 3 choices", KnownTwin(spare=0.15, ftl=THREE), 4),
    ("20 %, 3 choices", KnownTwin(spare=0.20, ftl=THREE), 4),
    ("20 %, at random", KnownTwin(spare=0.20, ftl='victim = "random"'), 4),
    ("20 %, oldest", KnownTwin(spare=0.20, ftl='victim = "fifo"'), 4),
    ("28 %, writes of 16 KiB", KnownTwin(spare=0.28), 16),
    ("28 %, slow link", KnownTwin(spare=0.28, link="60 MiB/s"), 4),
    ("35 %, 10 choices, small buffer", KnownTwin(spare=0.35, ftl=TEN, buffer="256 KiB"), 4),
    ("40 %, greedy", KnownTwin(spare=0.40), 4),
)


def measure_twin(twin: KnownTwin, block_kib: int) -> tuple[Conclusion, Evidence]:
    """The findings and records of a complete run on a twin."""
    plan = Plan(region=twin.capacity, drive=twin.capacity, block=block_kib << 10)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_for_run(TargetOptions(parse_target(twin.target(Path(folder))), plan.size)) as opened,
    ):
        session = RunSession(opened)
        session.run_plan(measure, plan)
    evidence = Evidence(session.recording.tables(), plan.parameters(), virtual=True)
    return conclude(evidence), evidence


def row(name: str, twin: KnownTwin, block_kib: int) -> str:
    """One row: a twin's true values and the findings."""
    conclusion, evidence = measure_twin(twin, block_kib)
    findings = conclusion.findings
    part = parts_of(evidence)[0]
    fall, _ = spare_fall(evidence, part)
    spare, counted, curve = (findings[key] for key in ("hidden_spare", "waf", "waf_curve"))
    began = "-" if fall is None else f"{fall.at / twin.capacity:.2f}"
    start = part.steady_from
    steady = "-" if start is None else f"{start * part.rule.round_bytes / twin.capacity:.2f}"
    truth = 100 * float(twin.describe()["spare"])
    estimate = "- | -"
    if isinstance(spare.value, float):
        estimate = f"{spare.value:.2f} ({spare.low:.2f}-{spare.high:.2f})"
        estimate += f" | {spare.value - truth:+.2f}"
    waf = "- | - | -"
    if isinstance(counted.value, float) and isinstance(curve.value, float):
        error = curve.value / counted.value - 1
        bounds = f"({curve.low:.2f}-{curve.high:.2f})"
        waf = f"{counted.value:.3f} | {curve.value:.3f} {bounds} | {error:+.1%}"
    usable = 100 * twin.usable_spare
    return f"| {name} | {truth:.2f} | {usable:.2f} | {estimate} | {waf} | {began} | {steady} |"


def main(only: int | None = None) -> None:
    """Prints the table, or row number `only` of it."""
    print("| twin | spare, % | usable | found | error | WAF | by curve | error | drops | steady |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for at, (name, twin, block_kib) in enumerate(TWINS):
        if only in {None, at}:
            print(row(name, twin, block_kib), flush=True)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
