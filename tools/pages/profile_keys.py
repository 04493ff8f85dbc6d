"""Reference of the profile keys, from the source that reads profiles: `markdown()`.

Keys are defined in `crates/flash/src/config` only: the section's list `KEYS` with the meaning as a
comment, the call that reads the key, such as `section.size("page")`, with its kind, and `unwrap_or`
or `ok_or` after that call with its default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pages.table import table
from ssdlab.units import format_size

_FOLDER: Final = Path(__file__).resolve().parents[2] / "crates" / "flash" / "src" / "config"
_STRING: Final = r'"((?:[^"\\]|\\.)*)"'
_SECTION: Final = re.compile(r'\("(\w+)", (\w+)::KEYS\)')
_KEY: Final = re.compile(rf"((?:^\s*//.*\n)+)\s*{_STRING},", re.MULTILINE)
_REFUSAL: Final = re.compile(
    rf"let allowed =\s*{_STRING}(?:\.to_owned\(\))?;\s*(?:let \w+ = [^;]*;\s*)?"
    r'(?:return )?Err\(ConfigError::new\(\s*"([a-z_.]+)"'
)
_REQUIRED: Final = "required"


@dataclass(frozen=True)
class Key:
    """One key: allowed values, default ("" for none) and meaning."""

    section: str
    name: str
    allowed: str
    default: str
    meaning: str


def markdown() -> str:
    """A heading and a table of keys for each section of a profile."""
    by_section: dict[str, list[Key]] = {}
    for key in read_keys():
        by_section.setdefault(key.section, []).append(key)
    parts = [f"## [{section}]\n\n{_table(members)}" for section, members in by_section.items()]
    return "\n\n".join(parts) + "\n"


def read_keys() -> Iterator[Key]:
    """All keys in the order of the lists `KEYS`."""
    sources = {path.stem: _code(path) for path in sorted(_FOLDER.glob("*.rs"))}
    everything = "\n".join(sources.values())
    kinds = {**_kinds(sources["reader"]), **_units(sources["units"])}
    refusals = _REFUSAL.findall(everything)
    for section, owner in _SECTION.findall(sources["mod"]):
        own = _block(everything, f"impl {owner} {{")
        listed = own.split("KEYS: &[&str] = &[", 1)[1].split("];", 1)[0]
        for comment, name in _KEY.findall(listed):
            kind, words, default = _read_as(name, own, everything)
            allowed = f"one of {words}" if words else kinds[kind]
            limits = [_unescaped(text) for text, key in refusals if key == f"{section}.{name}"]
            allowed = "; ".join([allowed, *limits])
            meaning = " ".join(line.strip().removeprefix("//") for line in comment.splitlines())
            shown = "" if "left out" in meaning else _shown(default, kind)
            yield Key(section, name, allowed, shown, " ".join(meaning.split()))


def _table(of_section: list[Key]) -> str:
    rows = [(f"`{key.name}`", key.allowed, key.default, _linked(key.meaning)) for key in of_section]
    return table(("key", "allowed", "default", "meaning"), rows)


def _linked(meaning: str) -> str:
    """Paths of pages turned into links."""
    return re.sub(r"docs/(models/(\w+)\.md)", r"[\2](../\1)", meaning)


def _code(path: Path) -> str:
    """The source without its tests."""
    return path.read_text(encoding="utf-8").split("#[cfg(test)]", 1)[0]


def _block(source: str, opening: str) -> str:
    """The source from an opening line to its closing brace in column 1."""
    start = source.index(opening)
    return source[start : source.index("\n}", start)]


def _kinds(reader: str) -> dict[str, str]:
    """Allowed values by the name of the function that reads them."""
    allowed = rf"pub fn (\w+)\(&mut self,[^{{]*{{\s*(?:let allowed = |self\.read\(key, ){_STRING}"
    return {name: _unescaped(text) for name, text in re.findall(allowed, reader)}


def _units(units: str) -> dict[str, str]:
    allowed = rf"pub fn (\w+)\([^{{]*{{\s*const ALLOWED: &str = {_STRING}"
    return {name: _unescaped(text) for name, text in re.findall(allowed, units)}


def _read_as(name: str, own: str, everything: str) -> tuple[str, str, str]:
    """Kind, allowed words and default of a key, from the call that reads it.

    `own` is searched first, because two sections may have keys of the same name.
    """
    call = re.compile(rf'section\s*\.(\w+)\(\s*"{name}"(?:, &([^)]*))?\)\?')
    source = own if call.search(own) else everything
    read = call.search(source)
    assert read, f"nothing reads the key {name}"
    rest = source[read.end() : source.find("\n    fn ", read.end())]
    bound = re.search(r"let (\w+) =\s*\Z", source[: read.start()])
    return read[1], _words(read[2], everything), _default(rest, bound[1] if bound else "")


def _words(argument: str | None, everything: str) -> str:
    """The words of `["a", "b"]`, or of the constant with that name."""
    if not argument:
        return ""
    if not argument.startswith("["):
        name = argument.removeprefix("Self::")
        array = re.search(rf"{name}\b[^=]*= (\[.*?\])", everything, re.DOTALL)
        assert array, f"there is no array {name}"
        argument = array[1]
    return ", ".join(f'"{word}"' for word in re.findall(_STRING, argument))


def _default(rest: str, variable: str) -> str:
    """The default after the call, or after the variable that its value was assigned to."""
    suffix = r"\s*\.(ok_or|unwrap_or)\(((?:[^()]|\([^()]*\))*)\)"
    match = re.match(suffix, rest)
    if not match and variable and rest.startswith(";"):
        match = re.search(rf"\b{variable}{suffix}", rest)
    if not match:
        return ""
    return _REQUIRED if match[1] == "ok_or" else match[2]


def _shown(default: str, kind: str) -> str:
    if default == "Nanos::ZERO":
        return "0"
    number = re.fullmatch(r"(\d+)(?: << (\d+))?", default)
    if kind == "size" and number:
        return format_size(int(number[1]) << int(number[2] or 0))
    return default


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"')
