"""What the shipped profiles state about a drive of which only the model is known."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ssdlab import profiles

_RELIABLE_KINDS: Final = frozenset({"datasheet", "measured"})
_PART_NUMBER: Final = re.compile(r"(?=.*[a-z])(?=.*\d)[a-z\d]{9,}")


@dataclass(frozen=True)
class Stated:
    """A value from a data sheet or measurement, and the profile that has it."""

    value: Any
    profile: str


def stated_value(model: str, key: str) -> Stated | None:
    """The value of `key` (such as `slc.size`) for the model that a drive reports.

    None if no shipped profile is of this model, or its value is only a guess or fitted.
    """
    if not model:
        return None
    section, name = key.split(".")
    for profile in profiles.names():
        table = _table(profile)
        if is_model(str(table["drive"]["model"]), model):
            entry = table.get(section, {}).get(name)
            if isinstance(entry, dict) and entry.get("kind") in _RELIABLE_KINDS:
                return Stated(entry["value"], profile)
    return None


def is_model(of_profile: str, reported: str) -> bool:
    """Whether a drive that reports the model `reported` is of the model that a profile names.

    A part number identifies it alone. Otherwise each word of the profile's model must be among
    those reported, with the capacity: "Samsung SSD 970 EVO Plus 500GB".
    """
    words = words_of(of_profile)
    part_numbers = [word for word in words if _PART_NUMBER.fullmatch(word)]
    if part_numbers:
        return any(word in reported.lower() for word in part_numbers)
    return set(words) <= set(words_of(reported))


def words_of(model: str) -> list[str]:
    """Words in lower case; a capacity is one word: "500gb"."""
    joined = re.sub(r"(\d)\s+([gt]b)\b", r"\1\2", model.lower())
    return re.findall(r"[a-z\d]+", joined)


@cache
def _table(profile: str) -> dict[str, Any]:
    return tomllib.loads(profiles.load(profile))
