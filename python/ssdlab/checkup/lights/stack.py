"""Lights from the doctor's verdicts: health, setup, files. The doctor's severities decide.

`bad` is red, `warn` yellow, `note` and `good` green. The doctor's page gives the conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ssdlab.checkup.lights.light import (
    MEMORY_ANSWERED,
    Colour,
    Light,
    not_measured,
    place,
    worst,
)
from ssdlab.checkup.record import Checkup
from ssdlab.doctor.checks import SEVERITIES, Verdict
from ssdlab.doctor.examine import FILE_BYTES_MIN
from ssdlab.doctor.report import Report
from ssdlab.units import format_size

DOCTOR: Final = "doctor"
SEVERITY_COLOURS: Final[dict[str, Colour]] = {
    "bad": "red",
    "warn": "yellow",
    "note": "green",
    "good": "green",
}
HEALTH: Final = frozenset(
    {"failing", "media-errors", "spare-blocks-low", "worn", "reallocated", "link-errors", "hot"}
    | {"amplification"}
)
FILES: Final = frozenset({"fragmented", "aged-regions", "map-unsteady", "reads-even"})
FLUSH: Final = frozenset({"flush-off", "write-cache-before-protected", "no-barrier"})
"""Codes of the doctor by light; all others, except those about TRIM, belong to the setup."""


def verdicts_of(checkup: Checkup, codes: frozenset[str]) -> list[Verdict]:
    """The doctor's verdicts with these codes, the worst first."""
    found = [] if checkup.doctor is None else checkup.doctor.verdicts
    return [verdict for verdict in found if verdict.code in codes]


def is_about_trim(verdict: Verdict) -> bool:
    """Whether a verdict is about TRIM: `trim-stopped`, `lvm-keeps-freed` ..."""
    return verdict.code.startswith(("trim-", "lvm-"))


def problem(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The worst verdict, if it is bad or a warning."""
    serious = [one for one in verdicts if one.severity in {"bad", "warn"}]
    return min(serious, key=lambda one: SEVERITIES.index(one.severity), default=None)


def light_of(code: str, title: str, verdict: Verdict, checkup: Checkup) -> Light:
    """The light of one verdict, with the first command of its remedy."""
    colour = SEVERITY_COLOURS[verdict.severity]
    do = command(verdict) or f"ssdlab doctor {place(checkup)}"
    return Light(code, title, colour, verdict.says, verdict.evidence, do, DOCTOR)


def command(verdict: Verdict) -> str:
    """The remedy on one line; "" without one."""
    return " ; ".join(line.strip() for line in verdict.remedy.splitlines() if line.strip())


def stack_lights(checkup: Checkup) -> list[Light]:
    """Health, files and setup; none for a twin, which has no stack."""
    if checkup.record.virtual:
        return []
    report = checkup.doctor
    if report is None:
        why = "it was interrupted"
        names = (("health", "Health"), ("files", "Your files"), ("setup", "Setup"))
        do = f"ssdlab doctor {place(checkup)}"
        return [not_measured(code, title, why, DOCTOR, do) for code, title in names]
    return [_health(checkup, report), _files(checkup, report), _setup(checkup, report)]


def _health(checkup: Checkup, report: Report) -> Light:
    verdicts = verdicts_of(checkup, HEALTH)
    code, title = "health", "Health"
    if (worst_one := problem(verdicts)) is not None:
        return light_of(code, title, worst_one, checkup)
    read = [drive for drive in report.stack.drives if drive.health is not None]
    if not read:
        return _unread_health(checkup, report)
    worn = [one for one in verdicts if one.code == "worn"]
    evidence = "; ".join(one.evidence for one in worn or verdicts)
    says = "The drive reports no error" + (" and little wear." if worn else ".")
    return Light(code, title, "green", says, evidence, experiment=DOCTOR)


def _unread_health(checkup: Checkup, report: Report) -> Light:
    unread = [one for one in report.stack.unread if one.what.startswith("health of ")]
    if not unread:
        names = sorted({drive.transport for drive in report.stack.drives})
        why = (
            f"a {names[0]} disk has no health data of its own; look on the host"
            if names
            else "no drive was found below"
        )
        return not_measured("health", "Health", why, DOCTOR)
    do = unread[0].command
    if "root" in unread[0].why:
        do = f"sudo ssdlab doctor {place(checkup)}"
    elif "not installed" in unread[0].why:
        do = "sudo apt install smartmontools"
    return not_measured("health", "Health", unread[0].why, DOCTOR, do)


def _files(checkup: Checkup, report: Report) -> Light:
    verdicts = verdicts_of(checkup, FILES)
    code, title = "files", "Your files"
    if (worst_one := problem(verdicts)) is not None:
        return light_of(code, title, worst_one, checkup)
    by_code = {one.code: one for one in verdicts}
    again = f"ssdlab doctor {place(checkup)}"
    if (even := by_code.get("reads-even")) is not None:
        return Light(code, title, "green", even.says, even.evidence, experiment=DOCTOR)
    if (unsteady := by_code.get("map-unsteady")) is not None:
        return not_measured(code, title, unsteady.says, DOCTOR, again)
    if (aged := by_code.get("aged-regions")) is not None:
        says = f"{aged.says} On a virtual disk the host may be the cause."
        return Light(code, title, "yellow", says, aged.evidence, again, DOCTOR)
    if any(one.code == "loop-buffered" for one in report.verdicts):
        return not_measured(code, title, MEMORY_ANSWERED, DOCTOR, again)
    large = [file for file in report.stack.files if file.size_bytes >= FILE_BYTES_MIN]
    why = f"there is no file of {format_size(FILE_BYTES_MIN)} or more to read"
    if large:
        why = f"of {large[0].path}: {large[0].not_read or 'too little was read'}"
    return not_measured(code, title, why, DOCTOR, f"ssdlab doctor {place(checkup)} --map FILE")


def _setup(checkup: Checkup, report: Report) -> Light:
    others = HEALTH | FILES | FLUSH
    verdicts = [one for one in report.verdicts if one.code not in others and not is_about_trim(one)]
    code, title = "setup", "Setup"
    if (worst_one := problem(verdicts)) is not None:
        return light_of(code, title, worst_one, checkup)
    colour = worst(SEVERITY_COLOURS[one.severity] for one in verdicts) if verdicts else "green"
    count = len({row["device"] for row in report.measures})
    layers = f"{count} layer{'' if count == 1 else 's'}"
    says = f"No problem in the {layers} between this directory and the drive."
    evidence = "; ".join(one.says for one in verdicts)
    return Light(code, title, colour, says, evidence, experiment=DOCTOR)
