"""Compares the published fsync pair with its twins: values, penalties, ratio of the pair.

Usage: python bench/twins/fsync.py [TWIN...]

The pair is Intel S4500 480 GB and Samsung 970 EVO Plus 500 GB (fio, 16 KiB, 60 % reads, queue depth
1, through the page cache of the block device, with fsync after each write or without). A twin has
no page cache, so its writes are direct. For each TWIN the values are printed without a drive's.
"""

from __future__ import annotations

import sys

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.fsync.analysis import conclude
from ssdlab.experiments.fsync.measure import Plan, measure
from ssdlab.fit.published import PublishedValue, compare_twin, twins_of
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Twin


def print_pair() -> None:
    """Prints both drives' and twins' values, penalties and ratios, with the twins' errors."""
    values = {twin: {v.label: v for v in compare_twin("fsync", twin)} for twin in twins_of("fsync")}
    for twin, rows in values.items():
        penalty = _ratio(rows["write, none"], rows["write, fsync"], "penalty")
        for value in (*rows.values(), penalty):
            _print(twin, value)
    one, other = values.values()
    for label in one:
        _print("S4500 / 970 EVO Plus", _ratio(one[label], other[label], label))


def _ratio(above: PublishedValue, below: PublishedValue, label: str) -> PublishedValue:
    return PublishedValue(label, above.measured / below.measured, above.twin / below.twin)


def _print(name: str, value: PublishedValue) -> None:
    numbers = f"{value.measured:8.2f} {value.twin:8.2f} {value.error:+7.1%}"
    print(f"{name:26} {value.label:14} {numbers}")


def print_twin(name: str) -> None:
    """Prints a twin's write rates without and with fsync, its penalty and its class."""
    plan = Plan()
    with open_for_run(TargetOptions(Twin(name), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    conclusion = conclude(Evidence(session.recording.tables(), plan.parameters()))
    rows = {row["mode"]: row for row in conclusion.measures if row["in_flight"] == 1}
    without, with_fsync = (rows[f"direct {s}"]["write_mib_per_s"] for s in ("none", "fsync"))
    cache_class = conclusion.findings["class"].value
    penalty = without / with_fsync
    print(f"{name:26} {without:8.1f} {with_fsync:8.1f} {penalty:6.2f}  {cache_class}")


if __name__ == "__main__":
    print_pair()
    for name in sys.argv[1:]:
        print_twin(name)
