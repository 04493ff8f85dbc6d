"""How near the shipped twins are to a drive: facts that a drive reports and that profiles state."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from ssdlab import profiles
from ssdlab.profiles.models import is_model, words_of
from ssdlab.profiles.toml_edit import get_value
from ssdlab.units import parse_size

_MAKERS: Final = {
    "crucial": "Micron",
    "intel": "Intel",
    "kioxia": "Toshiba",  # its name until 2019
    "kxg": "Toshiba",
    "micron": "Micron",
    "mtfd": "Micron",
    "mz": "Samsung",
    "samsung": "Samsung",
    "ssdpe": "Intel",
    "ssdsc": "Intel",
    "toshiba": "Toshiba",
    "wd": "WD",
    "wdc": "WD",
    "wds": "WD",
}
"""Makers by the beginning of a word of the model: a name, or a part number that follows a rule."""
_CAPACITY: Final = re.compile(r"(\d+(?:\.\d+)?)\s?([gt])i?b?", re.IGNORECASE)
_CAPACITY_WORD: Final = re.compile(r"\d+[gt]b?")
_COMMON: Final = frozenset({"ssd", "nvme", "sata", "pcie", "drive"})
_WEIGHTS: Final = {"interface": 4.0, "series": 3.0, "maker": 2.0, "capacity": 2.0}


@dataclass(frozen=True)
class DriveFacts:
    """What is known of a drive; None where it is not. `interface` is "nvme" or "sata"."""

    model: str
    capacity_bytes: int | None = None
    interface: str | None = None


@dataclass(frozen=True)
class Fact:
    """One fact of the drive and of a twin; `agrees` is from 0 to 1, None if not known of both."""

    name: str
    drive: str
    twin: str
    agrees: float | None


@dataclass(frozen=True)
class Relative:
    """A shipped twin: `is_model` says whether it is of the drive's model."""

    name: str
    model: str
    is_model: bool
    facts: tuple[Fact, ...]

    @property
    def nearness(self) -> float:
        """The weighted share of the known facts that agree, 0 to 1; 1 for the drive's own model."""
        known = [(fact, _WEIGHTS[fact.name]) for fact in self.facts if fact.agrees is not None]
        total = sum(weight for _, weight in known)
        if self.is_model:
            return 1.0
        return (
            sum((fact.agrees or 0.0) * weight for fact, weight in known) / total if total else 0.0
        )


def relatives_of(drive: DriveFacts) -> list[Relative]:
    """The twins of drives that ship with ssdlab, the nearest first."""
    found = [_relative(name, drive) for name in profiles.names()]
    of_drives = [relative for relative in found if relative is not None]
    return sorted(of_drives, key=lambda each: (-each.nearness, each.name))


def capacity_in(model: str) -> int | None:
    """The capacity that a model names, in bytes: "Samsung SSD 970 EVO Plus 500GB"."""
    for word in model.split():
        if match := _CAPACITY.fullmatch(word):
            return round(float(match[1]) * {"g": 1e9, "t": 1e12}[match[2].lower()])
    match = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)\s([gt])b\b", model, re.IGNORECASE)
    return (
        None
        if match is None
        else round(float(match[1]) * 10 ** {"g": 9, "t": 12}[match[2].lower()])
    )


def _relative(name: str, drive: DriveFacts) -> Relative | None:
    """The profile as a relative of the drive; None if it is not of a drive that is sold."""
    profile = profiles.load(name)
    model = str(get_value(profile, "drive.model"))
    maker = maker_of(model)
    if maker is None:
        return None
    size = parse_size(str(get_value(profile, "drive.capacity")))
    interface = str(get_value(profile, "drive.interface"))
    own_maker = maker_of(drive.model)
    series = _series(model, drive.model)
    facts = (
        Fact("interface", drive.interface or "", interface, _same(drive.interface, interface)),
        Fact("maker", own_maker or "", maker, _same(own_maker, maker)),
        Fact("series", drive.model, model, series),
        Fact(
            "capacity",
            "" if drive.capacity_bytes is None else _gigabytes(drive.capacity_bytes),
            _gigabytes(size),
            _near(drive.capacity_bytes, size),
        ),
    )
    return Relative(name, model, is_model(model, drive.model), facts)


def maker_of(model: str) -> str | None:
    """The maker of a model, by its name or by the beginning of its part number."""
    for word in words_of(model):
        if word in _MAKERS:
            return _MAKERS[word]
        for prefix, maker in _MAKERS.items():
            if word.startswith(prefix) and re.search(r"\d", word) and len(word) >= 8:
                return maker
    return None


def _series(of_profile: str, reported: str) -> float | None:
    """The share of the names of both series that is the same, or of a part number."""
    if not reported:
        return None
    reported_words = set(words_of(reported))
    words, drive_words = _series_words(of_profile), _series_words(reported)
    if is_model(of_profile, reported):
        return 1.0
    parts = [word for word in words_of(of_profile) if len(word) >= 9 and re.search(r"\d", word)]
    shared = max((_prefix(part, other) for part in parts for other in reported_words), default=0.0)
    same = sum(word in reported_words for word in words)
    by_words = same / max(len(words), len(drive_words)) if words else 0.0
    return max(by_words, shared)


def _series_words(model: str) -> list[str]:
    """The words of a model without its maker, its capacity and what any drive may be called."""
    return [
        word
        for word in words_of(model)
        if maker_of(word) is None and not _CAPACITY_WORD.fullmatch(word) and word not in _COMMON
    ]


def _prefix(part: str, other: str) -> float:
    """The share of a part number that another one begins with; 0 below half."""
    common = 0
    for one, two in zip(part, other, strict=False):
        if one != two:
            break
        common += 1
    share = common / len(part)
    return share if share >= 0.5 else 0.0


def _gigabytes(size_bytes: int) -> str:
    """As on a drive's label."""
    return f"{size_bytes / 1e9:.4g} GB"


def _same(one: str | None, other: str) -> float | None:
    return None if not one else float(one == other)


def _near(one: int | None, other: int) -> float | None:
    """1 for the same capacity, 0 for four times as much or a quarter."""
    if not one:
        return None
    return max(0.0, 1.0 - abs(math.log2(one / other)) / 2)
