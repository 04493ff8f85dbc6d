"""Edits of a profile's TOML text: comments, order and layout of all other lines stay."""

from __future__ import annotations

import tomllib
from typing import Any

import tomlkit

from ssdlab.errors import UsageError


def number(profile: str, key: str) -> Any:
    """The value of `table.key` in a profile's text, without kind and source; None: not given.

    Raises:
        UsageError: the text is not TOML.
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
    """Each key of a valid profile: key, value, kind and source; these are empty if not given."""
    rows = []
    for section, keys in tomllib.loads(profile).items():
        for key, raw in keys.items():
            entry = raw if isinstance(raw, dict) else {"value": raw}
            row = {"key": f"{section}.{key}", "value": entry["value"]}
            rows.append({**row, "kind": entry.get("kind", ""), "source": entry.get("source", "")})
    return rows


def with_number(profile: str, key: str, value: Any, source: str = "") -> str:
    """The text with `table.key` set to a number, a text or a list of texts; None removes the key.

    With a source the number is written as `fitted`.
    """
    table, name = key.split(".")
    document = tomlkit.parse(profile)
    if value is None:
        document.get(table, {}).pop(name, None)
        return tomlkit.dumps(document)
    if table not in document:
        document.add(tomlkit.nl())
        document.add(table, tomlkit.table())
    keys: Any = document[table]
    keys[name] = _with_source(value, source) if source else value
    return tomlkit.dumps(document)


def restored(profile: str, original: str, key: str) -> str:
    """The text with `table.key` as it is in another text, or without it if it is not there.

    What a fit did not change keeps its source in this way.
    """
    table, name = key.split(".")
    document, before = tomlkit.parse(profile), tomlkit.parse(original)
    keys: Any = document.get(table, {})
    if name in keys:
        if name in before.get(table, {}):
            keys[name] = before[table][name]
        else:
            del keys[name]
    return tomlkit.dumps(document)


def without(profile: str, table: str) -> str:
    """The text without a whole table, its header too."""
    document = tomlkit.parse(profile)
    document.pop(table, None)
    return tomlkit.dumps(document).rstrip() + "\n"


def _with_source(value: Any, source: str) -> Any:
    parts = {"value": value, "source": source, "kind": "fitted"}
    text = ", ".join(f"{key} = {tomlkit.item(each).as_string()}" for key, each in parts.items())
    return tomlkit.value(f"{{ {text} }}")
