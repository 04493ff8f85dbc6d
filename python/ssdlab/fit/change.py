"""`KEY=VALUE` of the command line: a change of one number of a profile, checked as a profile is."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.profiles.toml_edit import number, with_number

NONE: Final = "none"
"""As a value: the key is left out."""


@dataclass(frozen=True)
class Change:
    """A key with its value before and after; None: not given."""

    key: str
    was: Any
    becomes: Any


def changed(name: str, profile: str, wishes: list[str]) -> tuple[str, list[Change]]:
    """The profile's text with all changes `KEY=VALUE` made, and what they were.

    Raises:
        UsageError: no such key, a value out of its range, or no change at all: one line.
    """
    describe_twin(name, profile)  # what is wrong before is not the changes' fault
    changes = [_parsed(profile, wish) for wish in wishes]
    keys = [change.key for change in changes]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UsageError(f"--change {twice} is given twice; give each key once")
    text = profile
    for change in changes:
        text = with_number(text, change.key, change.becomes)
    describe_twin(f"{name} with {', '.join(wishes)}", text)
    return text, changes


def _parsed(profile: str, wish: str) -> Change:
    key, equals, value = (part.strip() for part in wish.partition("="))
    table, dot, name = key.partition(".")
    if not equals or not dot or not table.isidentifier() or not name.isidentifier() or not value:
        raise UsageError(
            f"--change is {wish!r}; it may be TABLE.KEY=VALUE, such as ftl.spare=0.27 or "
            "'flash.read=50 us' (none: left out)"
        )
    was, becomes = number(profile, key), _value(value)
    if was == becomes:
        known = "not given" if was is None else was
        raise UsageError(f"--change {wish}: {key} is {known} already; give another value")
    return Change(key, was, becomes)


def _value(text: str) -> Any:
    """As TOML has it; what is no TOML is a text, as in a shell nobody quotes twice."""
    if text == NONE:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
