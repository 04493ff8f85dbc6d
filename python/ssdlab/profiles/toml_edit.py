"""Edits a profile's TOML text; keeps comments, key order and the layout of all other lines."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import tomlkit

from ssdlab.errors import UsageError

INHERITED: Final = "inherited"
"""The kind of a value that a fitted profile has from its start profile."""
_NAMES: Final = frozenset({"drive.model", "drive.interface"})


def get_value(profile: str, key: str) -> Any:
    """The value of `table.key` without its source and kind; None if the key is absent.

    Raises:
        UsageError: the text is not valid TOML.
    """
    table, name = key.split(".")
    try:
        raw = _tables(profile).get(table, {}).get(name)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"the profile is not valid TOML ({error}); correct it and run `ssdlab twin check`"
        ) from error
    return raw["value"] if isinstance(raw, dict) else raw


@lru_cache(maxsize=16)
def _tables(profile: str) -> dict[str, Any]:
    """The parsed text, which the caller must not change."""
    return tomllib.loads(profile)


def list_values(profile: str) -> list[dict[str, Any]]:
    """Key, value, kind and source of each entry in a valid profile; source "" if absent."""
    rows = []
    for section, keys in _tables(profile).items():
        for key, raw in keys.items():
            entry = raw if isinstance(raw, dict) else {"value": raw}
            row = {"key": f"{section}.{key}", "value": entry["value"]}
            rows.append({**row, "kind": entry.get("kind", ""), "source": entry.get("source", "")})
    return rows


def values_only(profile: str, changes: Mapping[str, Any] = {}) -> str:
    """A valid profile with `changes`, without its sources, kinds and comments.

    For twins that are simulated once: `set_values` takes longer than many simulations. A change to
    None removes the key. JSON's strings, numbers and lists are also TOML's.
    """
    tables = {section: dict(keys) for section, keys in _tables(profile).items()}
    for key, value in changes.items():
        section, name = key.split(".")
        tables.setdefault(section, {})[name] = value
    lines = []
    for section, keys in tables.items():
        lines.append(f"[{section}]")
        for name, raw in keys.items():
            value = _bare(raw["value"] if isinstance(raw, dict) else raw)
            if value is not None:
                lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join([*lines, ""])


def inherited_keys(profile: str) -> list[str]:
    """The keys whose values a fitted profile only has from its start profile."""
    return [entry["key"] for entry in list_values(profile) if entry["kind"] == INHERITED]


def set_value(profile: str, key: str, value: Any, source: str = "", kind: str = "fitted") -> str:
    """The text with `table.key` set to a number, string or list of strings; None removes the key.

    With a source the entry becomes `{ value, source, kind }`.
    """
    return set_values(profile, {key: value}, source, kind)


def set_values(
    profile: str, values: Mapping[str, Any], source: str = "", kind: str = "fitted"
) -> str:
    """As `set_value`, for several keys; the text is parsed only once."""
    document = tomlkit.parse(profile)
    for key, value in values.items():
        table, name = key.split(".")
        if value is None:
            document.get(table, {}).pop(name, None)
            continue
        if table not in document:
            document.add(tomlkit.nl())
            document.add(table, tomlkit.table())
        keys: Any = document[table]
        keys[name] = _entry(value, source, kind) if source else value
    return tomlkit.dumps(document)


def replace_heading(profile: str, heading: str) -> str:
    """The text with other comments before its first table."""
    lines = profile.splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line.startswith("["))
    return "".join([*(f"# {line}\n" for line in heading.splitlines()), "\n", *lines[first:]])


def restore_value(profile: str, original: str, key: str) -> str:
    """The text with `table.key`, its source and comments restored from `original`, or removed."""
    table, name = key.split(".")
    document, before = tomlkit.parse(profile), tomlkit.parse(original)
    keys: Any = document.get(table, {})
    if name in keys:
        if name in before.get(table, {}):
            keys[name] = before[table][name]
        else:
            del keys[name]
    return tomlkit.dumps(document)


def mark_inherited(profile: str, start: str, name: str) -> str:
    """The text in which each entry that `start` has too is "inherited" from the profile `name`.

    Only words that name the drive stay bare, and what `start` itself inherited keeps its source.
    """
    before = tomlkit.parse(start).unwrap()
    document = tomlkit.parse(profile)
    for section, raw_keys in document.unwrap().items():
        for key, raw in raw_keys.items():
            entry = raw if isinstance(raw, dict) else {"value": raw}
            kind = entry.get("kind", "")
            is_same = before.get(section, {}).get(key) == raw
            if is_same and kind != INHERITED and f"{section}.{key}" not in _NAMES:
                source = f"the profile {name}" + (f", there {kind}" if kind else "")
                keys: Any = document[section]
                keys[key] = _entry(_bare(entry["value"]), source, INHERITED)
    return tomlkit.dumps(document)


def remove_table(profile: str, table: str) -> str:
    """The text without a table and its header."""
    document = tomlkit.parse(profile)
    document.pop(table, None)
    return tomlkit.dumps(document).rstrip() + "\n"


def _bare(value: Any) -> Any:
    """The value; of a list whose items have sources, their values."""
    if not isinstance(value, list):
        return value
    return [item["value"] if isinstance(item, dict) else item for item in value]


def _entry(value: Any, source: str, kind: str) -> Any:
    parts = {"value": value, "source": source, "kind": kind}
    text = ", ".join(f"{key} = {tomlkit.item(part).as_string()}" for key, part in parts.items())
    return tomlkit.value(f"{{ {text} }}")
