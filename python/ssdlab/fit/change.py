"""Changes to a profile given as `KEY=VALUE` on the command line."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import describe_twin
from ssdlab.errors import UsageError
from ssdlab.profiles.toml_edit import get_value, set_value

NONE: Final = "none"
"""The value that removes a key."""


@dataclass(frozen=True)
class Change:
    """A key with its value before and after the change; None if the key is absent."""

    key: str
    was: Any
    becomes: Any


def apply_changes(name: str, profile: str, assignments: list[str]) -> tuple[str, list[Change]]:
    """The profile's text after all `KEY=VALUE` assignments, and the changes.

    Raises:
        UsageError: an assignment without effect, malformed or given twice.
        TargetError: an unknown key, or a value out of range.
    """
    describe_twin(name, profile)  # reports errors of the original profile as such
    changes = [_parse_change(profile, assignment) for assignment in assignments]
    keys = [change.key for change in changes]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UsageError(f"--change {twice} is given twice; give each key once")
    text = profile
    for change in changes:
        text = set_value(text, change.key, change.becomes)
    describe_twin(f"{name} with {', '.join(assignments)}", text)
    return text, changes


def _parse_change(profile: str, assignment: str) -> Change:
    key, equals, value = (part.strip() for part in assignment.partition("="))
    table, dot, name = key.partition(".")
    if not equals or not dot or not table.isidentifier() or not name.isidentifier() or not value:
        raise UsageError(
            f"--change is {assignment!r}; it must be TABLE.KEY=VALUE, such as ftl.spare=0.27 or "
            "'flash.read=50 us' (the value none removes the key)"
        )
    was, becomes = get_value(profile, key), _parse_value(value)
    if was == becomes:
        state = "absent" if was is None else was
        raise UsageError(f"--change {assignment}: {key} is already {state}; give another value")
    return Change(key, was, becomes)


def _parse_value(text: str) -> Any:
    """The text as a TOML value; if it is not one, as a string, to save quotes in the shell."""
    if text == NONE:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
