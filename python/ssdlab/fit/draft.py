"""`Draft`: a profile's text with some of its numbers replaced, each with its kind and source."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from ssdlab.errors import UsageError

_SECTION = re.compile(r"^\[(\w+)\]\s*(#.*)?$")


def number(profile: str, key: str) -> Any:
    """The value of `table.key` in a profile's text, without kind and source; None: not given.

    Raises:
        UsageError: the text is no TOML.
    """
    table, name = key.split(".")
    try:
        raw = tomllib.loads(profile).get(table, {}).get(name)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"the profile is no TOML ({error}); `ssdlab twin check` says more"
        ) from error
    return raw["value"] if isinstance(raw, dict) else raw


def numbers(profile: str) -> list[dict[str, Any]]:
    """Each key of a (right) profile: key, value, kind and source, empty where not given."""
    rows = []
    for section, keys in tomllib.loads(profile).items():
        for key, raw in keys.items():
            entry = raw if isinstance(raw, dict) else {"value": raw}
            row = {"key": f"{section}.{key}", "value": entry["value"]}
            rows.append({**row, "kind": entry.get("kind", ""), "source": entry.get("source", "")})
    return rows


def with_number(profile: str, key: str, value: Any, source: str = "") -> str:
    """The text with `table.key` set to a number, a text or a list of texts; None: left out.

    With a source the number is written as `fitted`. Comments and all other lines stay.
    """
    table, name = key.split(".")
    lines = profile.splitlines()
    if value is not None and table not in _headers(lines).values():
        lines += ["", f"[{table}]"]
    _, end = _section(lines, table)
    place = _place(lines, table, name)
    written = [] if value is None else [_line(name, value, source)]
    if place is None:
        lines[end:end] = written
    else:
        lines[place : place + 1] = written
    return "\n".join(lines) + "\n"


def restored(profile: str, original: str, key: str) -> str:
    """The text with the line of `table.key` as it is in another text; left out if it is not there.

    So what a fit did not change keeps its source.
    """
    table, name = key.split(".")
    lines, olds = profile.splitlines(), original.splitlines()
    place, old = _place(lines, table, name), _place(olds, table, name)
    if place is not None:
        lines[place : place + 1] = [] if old is None else [olds[old]]
    return "\n".join(lines) + "\n"


def without(profile: str, table: str) -> str:
    """The text without a whole table, its header too."""
    lines = profile.splitlines()
    begin, end = _section(lines, table)
    if table in _headers(lines).values():
        del lines[begin - 1 : end]
    return "\n".join(lines).rstrip() + "\n"


def _place(lines: list[str], table: str, name: str) -> int | None:
    start, end = _section(lines, table)
    return next((n for n in range(start, end) if re.match(rf"{name}\s*=", lines[n])), None)


def _headers(lines: list[str]) -> dict[int, str]:
    """The tables by the number of their header's line."""
    found = ((n, _SECTION.match(line)) for n, line in enumerate(lines))
    return {n: match[1] for n, match in found if match}


def _section(lines: list[str], table: str) -> tuple[int, int]:
    """The lines after a table's header, up to the last that is not blank; none without it."""
    headers = _headers(lines)
    start = next((n + 1 for n, name in headers.items() if name == table), len(lines))
    end = next((n for n in headers if n >= start), len(lines))
    while end > start and not lines[end - 1].strip():
        end -= 1
    return start, end


def _line(name: str, value: Any, source: str) -> str:
    text = _toml(value)
    if not source:
        return f"{name} = {text}"
    return f'{name} = {{ value = {text}, source = "{source}", kind = "fitted" }}'


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
