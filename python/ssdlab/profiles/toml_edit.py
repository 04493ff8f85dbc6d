"""Edits a profile's TOML text; keeps comments, key order and the layout of all other lines."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit

from ssdlab.errors import UsageError


def get_value(profile: str, key: str) -> Any:
    """The value of `table.key` without its source and kind; None if the key is absent.

    Raises:
        UsageError: the text is not valid TOML.
    """
    table, name = key.split(".")
    try:
        raw = tomllib.loads(profile).get(table, {}).get(name)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"the profile is not valid TOML ({error}); correct it and run `ssdlab twin check`"
        ) from error
    return raw["value"] if isinstance(raw, dict) else raw


def list_values(profile: str) -> list[dict[str, Any]]:
    """Key, value, kind and source of each entry in a valid profile; source "" if absent."""
    rows = []
    for section, keys in tomllib.loads(profile).items():
        for key, raw in keys.items():
            entry = raw if isinstance(raw, dict) else {"value": raw}
            row = {"key": f"{section}.{key}", "value": entry["value"]}
            rows.append({**row, "kind": entry.get("kind", ""), "source": entry.get("source", "")})
    return rows


def set_value(profile: str, key: str, value: Any, source: str = "") -> str:
    """The text with `table.key` set to a number, string or list of strings; None removes the key.

    With a source the entry becomes `{ value, source, kind = "fitted" }`.
    """
    return set_values(profile, {key: value}, source)


def set_values(profile: str, values: Mapping[str, Any], source: str = "") -> str:
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
        keys[name] = _fitted_entry(value, source) if source else value
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


def remove_table(profile: str, table: str) -> str:
    """The text without a table and its header."""
    document = tomlkit.parse(profile)
    document.pop(table, None)
    return tomlkit.dumps(document).rstrip() + "\n"


def _fitted_entry(value: Any, source: str) -> Any:
    parts = {"value": value, "source": source, "kind": "fitted"}
    text = ", ".join(f"{key} = {tomlkit.item(part).as_string()}" for key, part in parts.items())
    return tomlkit.value(f"{{ {text} }}")
