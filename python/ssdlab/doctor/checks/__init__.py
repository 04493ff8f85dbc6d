"""The doctor's judgement: from a snapshot of a storage stack to verdicts, the worst first.

Pure: what was read on one machine can be judged on another.

    discard     does a TRIM get through, and does anybody ask for one?
    caching     write caches, flushes, the scheduler
    layout      alignment
    room        full file systems, the drive's spare, swap
    wear        what a drive says of its health
    attached    arrays, paths, links, loop and virtual disks
    files       fragments, and regions that read slowly
    drives      what is known of drives by their model
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ssdlab.doctor.checks import attached, caching, discard, files, layout, room, wear
from ssdlab.doctor.checks.verdict import SEVERITIES, Severity, Verdict
from ssdlab.records import Finding
from ssdlab.snapshot import Snapshot

__all__ = ["SEVERITIES", "Severity", "Verdict", "findings", "judge", "summary"]

_JUDGES: Final[tuple[Callable[[Snapshot], Iterator[Verdict]], ...]] = (
    *(wear.judge, caching.judge, discard.judge, layout.judge),
    *(room.judge, attached.judge, files.judge),
)


def judge(snapshot: Snapshot) -> list[Verdict]:
    """All verdicts, the worst first, otherwise in the order of the judges."""
    found = [verdict for each in _JUDGES for verdict in each(snapshot)]
    return sorted(found, key=lambda verdict: SEVERITIES.index(verdict.severity))


def findings(verdicts: list[Verdict]) -> dict[str, Finding]:
    """The verdicts by name, for JSON; of several with one code each gets its place added."""
    codes = [verdict.code for verdict in verdicts]
    found: dict[str, Finding] = {}
    for verdict in verdicts:
        alone = codes.count(verdict.code) == 1
        name = verdict.code if alone else f"{verdict.code}:{verdict.where.split(' ')[0]}"
        why = f"{verdict.says} ({verdict.evidence})"
        found[name] = Finding(verdict.value, verdict.unit, None, None, why)
    return found


def summary(verdicts: list[Verdict]) -> str:
    """One sentence: the worst thing, and how much else there is."""
    counts = {each: sum(v.severity == each for v in verdicts) for each in SEVERITIES}
    serious = counts["bad"] + counts["warn"]
    if not serious:
        return "Nothing is wrong with this stack, as far as could be read."
    more = f" ({counts['bad']} bad, {counts['warn']} to look at in all)" if serious > 1 else ""
    return f"{verdicts[0].says}{more}"
