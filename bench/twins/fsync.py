"""The published fsync pair beside its twins: all rows, each drive's penalty, the pair's ratio.

Usage: python bench/twins/fsync.py [TWIN...]

The pair (fio, 16 KiB, 60 % reads, one after the other, through the page cache of the block device,
fsync after each write or none): Intel S4500 480 GB and Samsung 970 EVO Plus 500 GB. A twin has no
page cache: its writes without fsync go past it. Other twins are shown without a drive beside them.
"""

from __future__ import annotations

import sys

from ssdlab.analysis.evidence import Evidence
from ssdlab.experiments.fsync.analysis import conclude
from ssdlab.experiments.fsync.measure import Plan, measure
from ssdlab.fit.published.tables import PublishedValue, compare_twin, twins_of
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession
from ssdlab.target import Twin


def pair() -> None:
    """Prints the rows of both drives, what follows from them, and how far the twins are off."""
    found = {twin: {f.label: f for f in compare_twin("fsync", twin)} for twin in twins_of("fsync")}
    for twin, rows in found.items():
        shown = [*rows.values(), _over(rows, rows, ("write, none", "write, fsync"), "penalty")]
        for each in shown:
            _print(twin, each)
    one, other = found.values()
    for what in one:
        _print("S4500 / 970 EVO Plus", _over(one, other, (what, what), what))


def _over(
    rows: dict[str, PublishedValue],
    others: dict[str, PublishedValue],
    names: tuple[str, str],
    what: str,
) -> PublishedValue:
    above, below = rows[names[0]], others[names[1]]
    return PublishedValue(what, above.measured / below.measured, above.twin / below.twin)


def _print(whose: str, each: PublishedValue) -> None:
    print(f"{whose:26} {each.label:14} {each.measured:8.2f} {each.twin:8.2f} {each.error:+7.1%}")


def other(name: str) -> None:
    """Prints writes without and with fsync, the penalty and the class of a twin."""
    plan = Plan()
    with open_for_run(TargetOptions(Twin(name), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(measure, plan)
    found = conclude(Evidence(session.recording.tables(), plan.parameters()))
    alone = {row["mode"]: row for row in found.measures if row["in_flight"] == 1}
    free, kept = (alone[f"direct {word}"]["write_mib_per_s"] for word in ("none", "fsync"))
    word = found.findings["class"].value
    print(f"{name:26} {free:8.1f} {kept:8.1f} {free / kept:6.2f}  {word}")


if __name__ == "__main__":
    pair()
    for word in sys.argv[1:]:
        other(word)
