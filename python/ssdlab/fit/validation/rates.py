"""iocost's numbers of real drives, and those of generic twins that were fitted to some of them.

The twin of a row is a generic profile of its interface, capacity and flash, fitted to four of the
six numbers. A row that is `like` another one has its twin, with dies in proportion to the capacity:
none of its numbers is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.fit.direct_estimates import enlarge_buffer
from ssdlab.fit.iocost import DIES, NAME, RATES, RatesFit, check_rate, measure
from ssdlab.fit.validation.figure import Figure, Role
from ssdlab.profiles import generic
from ssdlab.profiles.toml_edit import get_value, list_values, set_values

TABLE: Final = NAME
FITTED: Final = ("rbps", "rrandiops", "wbps", "wseqiops")
"""The numbers that a twin is fitted to: the others follow from the same mechanisms."""
_NEEDED: Final = ("drive", "source", "gb", "interface", "nand", *RATES)


def compare(row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> list[Figure]:
    """The figures of a row and of its twin; `rows` are all rows of its table.

    Raises:
        UsageError: the row, or the one that it is like, is incomplete.
    """
    check(row)
    parent = row
    if "like" in row:
        found = [each for each in rows if each["name"] == row["like"] and "like" not in each]
        if not found:
            raise UsageError(
                f"{row['name']} is like {row['like']!r}; it must be another row of the same table "
                "that is not itself like one"
            )
        parent = check(found[0])
    twin = measure(_scaled(fitted_profile(parent), float(row["gb"]) / float(parent["gb"])))
    used = FITTED if parent is row else ()
    return [
        Figure(
            _label(name), float(row[name]), twin[name], "fitted" if name in used else "predicted"
        )
        for name in RATES
    ]


def compare_profile(row: Mapping[str, Any], profile: str) -> list[Figure]:
    """The figures of a row, and of a given twin of its model."""
    twin = measure(profile)
    fitted = [
        entry["source"]
        for entry in list_values(profile)
        if entry["kind"] == "fitted" and NAME in entry["source"]
    ]
    return [
        Figure(_label(name), float(row[name]), twin[name], _role(name, fitted)) for name in RATES
    ]


def _role(name: str, sources: Iterable[str]) -> Role:
    """Whether a source names the number: a fit to these numbers names those that it used."""
    return "fitted" if any(name in source for source in sources) else "predicted"


def fitted_profile(row: Mapping[str, Any]) -> str:
    """The generic profile of a row's drive, fitted to four of its numbers."""
    drive = generic.GenericDrive(
        row["interface"], round(float(row["gb"]) * 1e9), row["nand"], model=row["drive"]
    )
    wanted = {name: float(row[name]) for name in FITTED}
    source = f"fit of {NAME}'s {', '.join(FITTED)} of {row['drive']}"
    return RatesFit(enlarge_buffer(generic.profile(drive)), wanted, source).run()


def check(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row.

    Raises:
        UsageError: it lacks a key, or has a number outside its limits.
    """
    where = f"[[{TABLE}]] {row.get('name', '')}".rstrip()
    for key in _NEEDED:
        if key not in row and key != "source":
            raise UsageError(f"{where} has no {key}; it must have {', '.join(_NEEDED)}")
    if row["interface"] not in {"nvme", "sata"}:
        raise UsageError(f"{where} interface is {row['interface']!r}; it must be nvme or sata")
    for name in RATES:
        check_rate(row[name], name, where)
    return row


def _scaled(profile: str, ratio: float) -> str:
    """The profile of a sibling whose capacity is `ratio` times as large."""
    doublings = round(ratio) if ratio >= 1 else ratio
    if doublings == 1:
        return profile
    dies = max(1, round(get_value(profile, DIES) * doublings))
    capacity = str(get_value(profile, "drive.capacity")).removesuffix(" B")
    return enlarge_buffer(
        set_values(profile, {DIES: dies, "drive.capacity": f"{round(int(capacity) * ratio)} B"})
    )


def _label(name: str) -> str:
    return f"{name}, {RATES[name].unit}"
