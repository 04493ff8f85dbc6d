"""Reference of the Python API, from `ssdlab.__all__`: `markdown()`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final, get_type_hints

import ssdlab
from pages.table import table
from ssdlab.errors import SsdlabError

_FUNCTION: Final = re.compile(r"<function (\w+) at [^>]+>")
_COLUMNS: Final = 68
_BETWEEN: Final = re.compile(r", (?![^\[]*\])")  # parameters, not types in brackets
_MODULE: Final = re.compile(r"\b(?:ssdlab|pyarrow|pathlib|collections|typing)(?:\.\w+)*\.(?=\w)")


def markdown() -> str:
    """A section for each name: functions, experiments, results, errors."""
    by_kind: dict[str, list[str]] = {title: [] for title in _TITLES}
    for name in ssdlab.__all__:
        by_kind[_kind(getattr(ssdlab, name))].append(name)
    parts = []
    for title, names in by_kind.items():
        parts.append(f"## {title}")
        parts += [part for name in names for part in _section(name, getattr(ssdlab, name))]
    return "\n\n".join(parts) + "\n"


_TITLES: Final = ("Functions", "Experiments", "Results", "Errors")


def _kind(public: Any) -> str:
    if not inspect.isclass(public):
        return "Functions"
    if issubclass(public, SsdlabError):
        return "Errors"
    is_experiment = hasattr(public, "experiment") and hasattr(public, "plan")
    return "Experiments" if is_experiment else "Results"


def _section(name: str, public: Any) -> Iterator[str]:
    yield f"### ssdlab.{name}"
    if not inspect.isclass(public):
        yield f"```python\n{_signature(name, public)}\n```"
    yield documentation(public)
    if inspect.isclass(public) and _kind(public) != "Errors":
        rows = [*_fields(public)]
        if rows:
            yield table(("field", "type", "default"), rows)
        if _kind(public) != "Experiments":
            yield from _members(public)


def _fields(public: type[Any]) -> Iterator[tuple[str, str, str]]:
    if is_dataclass(public):
        for field in fields(public):
            if not field.name.startswith("_"):
                is_required = field.default is field.default_factory
                default = "required" if is_required else repr(field.default)
                yield f"`{field.name}`", f"`{_type(field.type)}`", f"`{default}`"
    else:
        for name, kind in get_type_hints(public).items():
            if not name.startswith("_"):
                yield f"`{name}`", f"`{_type(kind)}`", ""


def _members(public: type[Any]) -> Iterator[str]:
    for member in inspect.classify_class_attrs(public):
        if member.name.startswith("_") or member.defining_class is object:
            continue
        if member.kind == "property":
            yield f"`.{member.name}`: {documentation(member.object)}"
        elif member.kind == "method":
            signature = _signature(f".{member.name}", member.object)
            yield f"```python\n{signature}\n```\n\n{documentation(member.object)}"


def _signature(name: str, function: Any) -> str:
    """The signature, one parameter per line if a single line is too wide for a page."""
    text = str(inspect.signature(function)).replace("'", "").replace("(self, ", "(")
    text = _type(_FUNCTION.sub(r"\1", text.replace("(self)", "()"))).replace("PosixPath(", "Path(")
    if len(name + text) <= _COLUMNS:
        return name + text
    parameters, _, gives = text.rpartition(") -> ")
    lines = "".join(f"    {one},\n" for one in _BETWEEN.split(parameters.removeprefix("(")))
    return f"{name}(\n{lines}) -> {gives}"


def _type(kind: Any) -> str:
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return _MODULE.sub("", text)


def documentation(public: Any) -> str:
    """The docstring as Markdown; `Raises:` becomes a list."""
    text = inspect.getdoc(public) or ""
    before, heading, raised = text.partition("Raises:\n")
    if not heading:
        return before.strip()
    lines: list[str] = []
    for line in inspect.cleandoc("\n" + raised).splitlines():
        if line and not line.startswith(" "):
            names, _, words = line.partition(":")
            errors = ", ".join(f"`{name.strip()}`" for name in names.split(","))
            lines.append(f"- {errors}:{words}")
        else:
            lines.append(f"  {line.strip()}".rstrip())
    return before.strip() + "\n\nRaises\n\n" + "\n".join(lines).strip()
