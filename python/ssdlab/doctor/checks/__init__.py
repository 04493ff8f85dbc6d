"""The doctor's checks: from a snapshot of a storage stack to verdicts, the worst first.

Pure functions: a snapshot read on one machine can be checked on another.

    discard     does TRIM reach the drive, and does anything issue it?
    caching     write caches, flushes, the scheduler
    layout      alignment
    room        full file systems, the drive's spare, swap
    wear        SMART health
    attached    arrays, paths, links, loop and virtual disks
    zfs         pools: blocks, synchronous writes, log drives, the ARC
    files       fragments, and regions that read slowly
    windows     the words of verdicts on Windows
    drives      power-loss protection and flash size by drive model
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ssdlab.doctor.checks import (
    attached,
    caching,
    discard,
    files,
    layout,
    room,
    wear,
    windows,
    zfs,
)
from ssdlab.doctor.checks.verdict import SEVERITIES, Severity, Verdict
from ssdlab.records import Finding
from ssdlab.snapshot import Snapshot

__all__ = ["SEVERITIES", "Severity", "Verdict", "findings", "judge", "summary"]

_CHECKS: Final[tuple[Callable[[Snapshot], Iterator[Verdict]], ...]] = (
    *(wear.judge, caching.judge, discard.judge, layout.judge),
    *(room.judge, attached.judge, zfs.judge, files.judge),
)


def judge(snapshot: Snapshot) -> list[Verdict]:
    """All verdicts, the worst first, otherwise in the order of the checks."""
    verdicts = [verdict for check in _CHECKS for verdict in check(snapshot)]
    if snapshot.kernel.startswith("Windows"):
        letter = snapshot.target[:1]
        verdicts = [windows.in_windows_words(verdict, letter) for verdict in verdicts]
    return sorted(verdicts, key=lambda verdict: SEVERITIES.index(verdict.severity))


def findings(verdicts: list[Verdict]) -> dict[str, Finding]:
    """The verdicts by code, for JSON; a code that occurs twice gets the place appended."""
    codes = [verdict.code for verdict in verdicts]
    by_name: dict[str, Finding] = {}
    for verdict in verdicts:
        is_only = codes.count(verdict.code) == 1
        name = verdict.code if is_only else f"{verdict.code}:{verdict.where.split(' ')[0]}"
        why = f"{verdict.says} ({verdict.evidence})"
        by_name[name] = Finding(verdict.value, verdict.unit, None, None, why)
    return by_name


def summary(verdicts: list[Verdict]) -> str:
    """One sentence: the worst verdict, and the number of others."""
    counts = {severity: sum(v.severity == severity for v in verdicts) for severity in SEVERITIES}
    serious = counts["bad"] + counts["warn"]
    if not serious:
        return "No problem found in the parts of the stack that could be read."
    warnings = f"{counts['warn']} warning{'' if counts['warn'] == 1 else 's'}"
    more = f" ({counts['bad']} bad and {warnings} in all)" if serious > 1 else ""
    return f"{verdicts[0].says}{more}"
