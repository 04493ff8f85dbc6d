"""Lights from the experiments: speed, durable writes, long writes, ageing, TRIM.

The thresholds and their reasons are in docs/checkup.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ssdlab.checkup.lights.light import (
    Colour,
    Light,
    is_one_drive,
    not_measured,
    place,
    subject,
    was_busy,
    why_not_the_drive,
    worst,
)
from ssdlab.checkup.lights.stack import FLUSH, is_about_trim, light_of, problem, verdicts_of
from ssdlab.checkup.record import Checkup
from ssdlab.checkup.table import mb_per_s
from ssdlab.doctor.checks import Verdict
from ssdlab.records import Finding, Run
from ssdlab.target import is_twin
from ssdlab.units import format_size

MIB: Final = 1 << 20
READ_US_YELLOW: Final = 300.0
"""A page read of flash takes 40 to 150 us, and a command of a SATA drive about 100 us more."""
READ_US_RED: Final = 2000.0
"""A quarter of a revolution of a 7200 rpm disk: no flash is so slow."""
SEQUENTIAL_YELLOW_MB: Final = 200.0
"""A SATA link of 3 Gbit/s carries 270 MB/s, the slowest link that SSDs were sold for."""
FLUSH_US_YELLOW: Final = 3000.0
"""The longest time that flash needs to program a page, in the shipped profiles and data sheets."""
FLUSH_US_RED: Final = 8333.0
"""One revolution of a 7200 rpm disk: commits are no faster than on a rotating disk."""
LASTING_SHARE_YELLOW: Final = 0.5
LASTING_MB_YELLOW: Final = 500.0
"""A fall to less than half of the speed matters below what a SATA link carries."""
LASTING_MB_RED: Final = 50.0
"""Slower than an old rotating disk writes, and near the 40 MB/s of USB 2."""
SLOWDOWN_YELLOW: Final = 1.25
SLOWDOWN_RED: Final = 2.0
"""As for the files that the doctor reads (`doctor.checks.files`)."""

_WITNESS: Final = "ssdlab witness serve --help"
_TITLES: Final = {
    "speed": ("Speed", "suite"),
    "durable": ("Durable writes", "fsync"),
    "lasting": ("Long writes", "cache"),
    "ageing": ("After random writes", "aging"),
    "trim": ("TRIM", "trim"),
}


def measured_lights(checkup: Checkup) -> list[Light]:
    """One light for each experiment."""
    made: dict[str, Callable[[Checkup, Run], Light]] = {
        "speed": _speed,
        "durable": _durable,
        "lasting": _lasting,
        "ageing": _ageing,
        "trim": _trim,
    }
    return [_light(code, checkup, make) for code, make in made.items()]


def _light(code: str, checkup: Checkup, make: Callable[[Checkup, Run], Light]) -> Light:
    title, experiment = _TITLES[code]
    run = checkup.runs.get(experiment)
    if (error := checkup.record.failed.get(experiment)) is not None:
        do = f"ssdlab doctor {place(checkup)}"
        return Light(code, title, "red", f"The drive failed: {error}.", "", do, experiment)
    if code == "durable" and (broken := problem(verdicts_of(checkup, FLUSH))) is not None:
        return light_of(code, title, broken, checkup)
    if code == "trim" and (run is None or not run.result.findings):
        return _declared_trim(checkup)
    if run is None:
        return _grey(code, checkup, checkup.record.why_not.get(experiment, "it was interrupted"))
    return _light_of_run(code, checkup, make, run)


def _light_of_run(
    code: str, checkup: Checkup, make: Callable[[Checkup, Run], Light], run: Run
) -> Light:
    if why := why_not_the_drive(run):
        if code == "trim":
            return _declared_trim(checkup, why)
        return _grey(code, checkup, why, do=f"ssdlab doctor {place(checkup)}")
    if code != "trim" and any(one.code == "rotational" for one in run.result.warnings):
        return _grey(code, checkup, "it reports that it rotates, and the limits are those of SSDs")
    made = make(checkup, run)
    if code != "trim" and made.colour in {"red", "yellow"} and was_busy(run):
        says = f"{made.says} Other programs used the processors: repeat it on an idle machine."
        return msgspec.structs.replace(made, says=says)
    return made


def _grey(code: str, checkup: Checkup, why: str, do: str = "") -> Light:
    title, experiment = _TITLES[code]
    alone = f"ssdlab run {experiment} {place(checkup)} --quick"
    if not checkup.runs:  # nothing can be measured there
        return not_measured(code, title, why, experiment)
    return not_measured(code, title, why, experiment, do or alone)


def _too_little(code: str, checkup: Checkup) -> Light:
    """A grey light of a run that ended too early."""
    return _grey(code, checkup, checkup.record.why_not.get(_TITLES[code][1], "the run ended early"))


def _make(code: str, colour: Colour, says: str, evidence: str, do: str = "") -> Light:
    title, experiment = _TITLES[code]
    return Light(code, title, colour, says, evidence, do, experiment)


def _speed(checkup: Checkup, run: Run) -> Light:
    means = {(row["test"], row["op"]): row["mean"] for row in run.result.measures}
    reads = means.get(("random 4k", "read"))
    sequential = means.get(("sequential", "read"))
    if not reads or not sequential:
        return _too_little("speed", checkup)
    read_us, in_order = 4096e6 / (reads * MIB), mb_per_s(sequential)
    colour: Colour = "green"
    if read_us > READ_US_RED:
        colour = "red"
    elif read_us > READ_US_YELLOW or in_order < SEQUENTIAL_YELLOW_MB:
        colour = "yellow"
    says = (
        f"{subject(run)} reads {in_order:.0f} MB/s sequentially, and {1e6 / read_us:.0f} random "
        "4 KiB blocks a second, one at a time."
    )
    causes = []
    if read_us > READ_US_YELLOW:
        causes.append(f"flash answers a read within {READ_US_YELLOW:.0f} us")
    if in_order < SEQUENTIAL_YELLOW_MB:
        causes.append("even an old SATA link carries 270 MB/s")
    if causes:
        says = f"{says.rstrip('.')}: slow for an SSD ({', and '.join(causes)})."
    evidence = f"{read_us:.0f} us for a random 4 KiB read; see the table"
    do = "" if colour == "green" else f"ssdlab doctor {place(checkup)}"
    return _make("speed", colour, says, evidence, do)


def _durable(checkup: Checkup, run: Run) -> Light:
    kind, flush = run.result.findings.get("class"), run.result.findings.get("flush_us")
    if kind is None or flush is None or not isinstance(flush.value, float):
        return _too_little("durable", checkup)
    flush_us, evidence = flush.value, kind.why
    how_long = (
        f"A flush after a write takes {_short_time(flush_us)}, so one writer commits at most "
        f"{_rounded(1e6 / flush_us)} times a second"
    )
    colour: Colour = "green"
    if flush_us >= FLUSH_US_YELLOW:
        colour = "red" if flush_us >= FLUSH_US_RED else "yellow"
    here = place(checkup)
    if kind.value == "ignores flush":
        says = (
            f"{subject(run)} seems to ignore flushes: a power cut may lose data that a program "
            "believes to be safe."
        )
        return _make("durable", "red", says, evidence, _WITNESS)
    if kind.value == "protected or ignores flush":
        says = (
            f"Flushes return after {_short_time(flush_us)}, before flash can hold the data: the "
            "write cache is protected against power loss, or flushes are ignored; "
        )
        if not is_one_drive(run):
            says += "only a power cut shows which."
            return _make("durable", worst([colour, "yellow"]), says, evidence, _WITNESS)
        says += "the data sheet says which."
        do = f"ssdlab run fsync {here} --data-sheet protected"
        return _make("durable", worst([colour, "yellow"]), says, evidence, do)
    if colour != "green":
        says = f"{how_long}: slow for an SSD."
        return _make("durable", colour, says, evidence, f"ssdlab run fsync {here}")
    return _make("durable", "green", f"{how_long}.", evidence)


def _lasting(checkup: Checkup, run: Run) -> Light:
    cached = run.result.findings.get("cached_mib_per_s")
    lasting = run.result.findings.get("lasting_mib_per_s")
    slc = run.result.findings.get("slc_mib")
    if cached is None or lasting is None:
        if slc is not None and slc.why.startswith("no drop"):
            written = max(row["written_mib"] for row in run.result.measures)
            says = (
                f"Sequential writes keep their speed: no drop within {format_size(written * MIB)}."
            )
            return _make("lasting", "green", says, run.result.verdict)
        return _too_little("lasting", checkup)
    before, after = _mb(cached), _mb(lasting)
    evidence = run.result.verdict
    fall = f"Writes start at {before:.0f} MB/s and fall to {after:.0f} MB/s when a cache is full"
    colour: Colour = "green"
    if after < LASTING_MB_RED:
        colour = "red"
    elif after < LASTING_SHARE_YELLOW * before and after < LASTING_MB_YELLOW:
        colour = "yellow"
    if colour == "green":
        return _make("lasting", colour, f"{fall}.", evidence)
    says = f"{fall}: large copies slow down."
    return _make("lasting", colour, says, evidence, f"ssdlab run cache {place(checkup)}")


def _mb(finding: Finding) -> float:
    return mb_per_s(finding.value) if isinstance(finding.value, float) else 0.0


def _ageing(checkup: Checkup, run: Run) -> Light:
    slowdown = run.result.findings.get("slowdown")
    if slowdown is None or not isinstance(slowdown.value, float):
        return _too_little("ageing", checkup)
    codes = {warning.code for warning in run.result.warnings}
    times, evidence = slowdown.value, slowdown.why
    if slowdown.low is not None and slowdown.low <= 1.0 and times >= SLOWDOWN_YELLOW:
        why = "repeated reads differ more than fresh and aged ones; the machine was not idle"
        return _grey("ageing", checkup, why)
    if times < SLOWDOWN_YELLOW:
        says = "A file that was overwritten at random reads as fast as before."
        if times >= 1.05:
            slower = f"{100 * (times - 1):.0f} %"
            says = f"A file that was overwritten at random reads only {slower} slower."
        return _make("ageing", "green", says, evidence)
    colour: Colour = "red" if times >= SLOWDOWN_RED else "yellow"
    says = f"A file that was overwritten at random takes {number_of(times)} times as long to read."
    if "layout-changed" in codes:
        return _make(
            "ageing",
            "yellow",
            f"{says.rstrip('.')}, in part because the file system moved its blocks.",
            evidence,
            f"ssdlab run fragments {place(checkup)}",
        )
    if run.manifest.virtual:
        return _make("ageing", colour, says, evidence, f"ssdlab run aging {place(checkup)}")
    says = f"{says.rstrip('.')}; the doctor finds such files, and ssdlab heal rewrites them."
    return _make("ageing", colour, says, evidence, f"ssdlab doctor {place(checkup)}")


def _trim(checkup: Checkup, run: Run) -> Light:
    reaches = run.result.findings["reaches"]
    if reaches.value is None:
        return _declared_trim(checkup)
    declared = _trim_verdicts(checkup)
    if reaches.value is False:
        stops = next((one for one in declared if one.code == "trim-stopped"), None)
        if stops is not None:
            return light_of("trim", "TRIM", stops, checkup)
        do = f"ssdlab doctor {place(checkup)}"
        return _make("trim", "yellow", run.result.verdict, reaches.why, do)
    if (worst_one := problem(declared)) is not None and worst_one.code != "trim-stopped":
        light = light_of("trim", "TRIM", worst_one, checkup)
        says = f"Discards reach the flash. {light.says}"
        return _make("trim", light.colour, says, light.evidence, light.next)
    says = "Deleted data is trimmed: discards reach the flash."
    if run.manifest.virtual:
        says = "Discards free the flash of the twin."
    return _make("trim", "green", says, reaches.why)


def _trim_verdicts(checkup: Checkup) -> list[Verdict]:
    found = [] if checkup.doctor is None else checkup.doctor.verdicts
    return [verdict for verdict in found if is_about_trim(verdict)]


def _declared_trim(checkup: Checkup, unproved: str = "") -> Light:
    """TRIM by what the layers declare, if the experiment could not prove it (`unproved`: why)."""
    declared: list[Verdict] = _trim_verdicts(checkup)
    run = checkup.runs.get("trim")
    reaches = None if run is None else run.result.findings.get("reaches")
    why = unproved or (reaches.why if reaches else checkup.record.why_not.get("trim", ""))
    needs_root = (
        run is not None
        and not checkup.record.as_root
        and any(one.code == "needs-root" for one in run.result.warnings)
    )
    sudo = "" if is_twin(place(checkup)) else "sudo "
    # A finished run would end the same again.
    alone = f"{sudo}ssdlab run trim {place(checkup)}" if needs_root or reaches is None else ""
    if (worst_one := problem(declared)) is not None:
        return light_of("trim", "TRIM", worst_one, checkup)
    passes = next((one for one in declared if one.code == "trim-passes"), None)
    if passes is None:
        reason = "it takes root" if needs_root else why or "it was interrupted"
        return not_measured("trim", "TRIM", reason, "trim", alone if checkup.runs else "")
    proof = "the proof needs root" if needs_root else why or "it was interrupted"
    says = f"All layers declare that they pass TRIM; not proved: {proof.rstrip('.')}."
    return _make("trim", "green", says, passes.evidence, alone)


def number_of(times: float) -> str:
    """A ratio with two digits after the point at most."""
    return f"{times:.2f}".rstrip("0").rstrip(".")


def _short_time(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{microseconds:.0f} us"
    return f"{number_of(float(f'{microseconds / 1000:.2g}'))} ms"


def _rounded(value: float) -> str:
    """A count with two digits: 1300."""
    return f"{float(f'{value:.2g}'):.0f}"
