"""The reference of Python, out of `ssdlab.__all__`: `markdown()`."""

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
    """Functions, then questions, then what both give, then errors: a section for each name."""
    by_kind: dict[str, list[str]] = {title: [] for title in _TITLES}
    for name in ssdlab.__all__:
        by_kind[_kind(getattr(ssdlab, name))].append(name)
    parts = []
    for title, names in by_kind.items():
        parts.append(f"## {title}")
        parts += [part for name in names for part in _section(name, getattr(ssdlab, name))]
    return "\n\n".join(parts) + "\n"


_TITLES: Final = ("Functions", "Questions", "What they give", "Errors")


def _kind(offered: Any) -> str:
    if not inspect.isclass(offered):
        return "Functions"
    if issubclass(offered, SsdlabError):
        return "Errors"
    return (
        "Questions" if hasattr(offered, "experiment") and hasattr(offered, "plan") else _TITLES[2]
    )


def _section(name: str, offered: Any) -> Iterator[str]:
    yield f"### ssdlab.{name}"
    if not inspect.isclass(offered):
        yield f"```python\n{_signature(name, offered)}\n```"
    yield told(offered)
    if inspect.isclass(offered) and _kind(offered) != "Errors":
        rows = [*_fields(offered)]
        if rows:
            yield table(("field", "type", "default"), rows)
        if _kind(offered) != "Questions":
            yield from _members(offered)


def _fields(offered: type[Any]) -> Iterator[tuple[str, str, str]]:
    if is_dataclass(offered):
        for each in fields(offered):
            if not each.name.startswith("_"):
                default = "required" if each.default is each.default_factory else repr(each.default)
                yield f"`{each.name}`", f"`{_type(each.type)}`", f"`{default}`"
    else:
        for name, kind in get_type_hints(offered).items():
            if not name.startswith("_"):
                yield f"`{name}`", f"`{_type(kind)}`", ""


def _members(offered: type[Any]) -> Iterator[str]:
    for each in inspect.classify_class_attrs(offered):
        if each.name.startswith("_") or each.defining_class is object:
            continue
        if each.kind == "property":
            yield f"`.{each.name}`: {told(each.object)}"
        elif each.kind == "method":
            signature = _signature(f".{each.name}", each.object)
            yield f"```python\n{signature}\n```\n\n{told(each.object)}"


def _signature(name: str, function: Any) -> str:
    """Its call; a parameter a line where one line would be cut off on a page."""
    text = str(inspect.signature(function)).replace("'", "").replace("(self, ", "(")
    text = _type(_FUNCTION.sub(r"\1", text.replace("(self)", "()"))).replace("PosixPath(", "Path(")
    if len(name + text) <= _COLUMNS:
        return name + text
    parameters, _, gives = text.rpartition(") -> ")
    lines = "".join(f"    {each},\n" for each in _BETWEEN.split(parameters.removeprefix("(")))
    return f"{name}(\n{lines}) -> {gives}"


def _type(kind: Any) -> str:
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return _MODULE.sub("", text)


def told(offered: Any) -> str:
    """Its documentation as Markdown: what it raises is a list."""
    text = inspect.getdoc(offered) or ""
    before, found, raised = text.partition("Raises:\n")
    if not found:
        return before.strip()
    lines: list[str] = []
    for line in inspect.cleandoc("\n" + raised).splitlines():
        if line and not line.startswith(" "):
            names, _, words = line.partition(":")
            named = ", ".join(f"`{each.strip()}`" for each in names.split(","))
            lines.append(f"- {named}:{words}")
        else:
            lines.append(f"  {line.strip()}".rstrip())
    return before.strip() + "\n\nRaises\n\n" + "\n".join(lines).strip()
