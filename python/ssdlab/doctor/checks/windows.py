"""Words of verdicts on a Windows machine: its own commands, and the sources of its readings."""

from __future__ import annotations

from typing import Final

import msgspec

from ssdlab.doctor.checks.verdict import Verdict

_EVIDENCE: Final = (
    ("discard_max_bytes of each is above 0", "fsutil, and TrimEnabled of the drive"),
    ("; alignment_offset is 0", ""),
    ("statvfs of ", "Get-Volume for "),
    (": f_frsize ", ": AllocationUnitSize "),
    ("queue/rotational is 1", "MediaType is HDD"),
    ("/proc/swaps: ", "Win32_PageFileUsage: "),
)
_REMEDIES: Final = {
    "trim-never-asked": "fsutil behavior set DisableDeleteNotify 0\n"
    "Optimize-Volume -DriveLetter {letter} -ReTrim -Verbose",
    "trim-stopped": "leave 20 to 30 % of the drive unpartitioned from the start; TRIM may pass "
    "with another driver or controller mode",
    "trim-unknown": "Optimize-Volume -DriveLetter {letter} -ReTrim -Verbose",
    "nearly-full": "cleanmgr /d {letter}",
    "misaligned": "back up the data, then recreate the partition: New-Partition -Alignment 1048576",
    "block-small": "when you next format it: Format-Volume -AllocationUnitSize 4096",
    "swap-busy": "add memory; or move the page file to another drive",
    "write-cache-volatile": "Device Manager, the disk, Policies",
}


def in_windows_words(verdict: Verdict, letter: str) -> Verdict:
    """The verdict with Windows' sources and commands, and no experiment: none runs there."""
    evidence = verdict.evidence
    for old, new in _EVIDENCE:
        evidence = evidence.replace(old, new)
    remedy = _REMEDIES.get(verdict.code, "").format(letter=letter)
    if not remedy:
        remedy = "" if _is_foreign(verdict.remedy) else verdict.remedy
        if verdict.severity in {"bad", "warn"} and not remedy:
            remedy = "Get-PhysicalDisk | Get-StorageReliabilityCounter | Format-List"
    return msgspec.structs.replace(verdict, evidence=evidence, remedy=remedy, proof="")


def _is_foreign(remedy: str) -> bool:
    """Whether its commands are those of Linux, or need ssdlab there."""
    return any(word in remedy for word in ("sudo", "ssdlab", "/sys/", "dmesg", "vmstat", "du -x"))
