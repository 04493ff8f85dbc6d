"""Reference of the commands, from the command tree: `markdown()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pages.commands import Verb, root, walk
from pages.table import table


def markdown() -> str:
    """A section for each command: help, usage, example, options."""
    return "\n\n".join(part for verb in walk(root()) for part in _section(verb)) + "\n"


def _section(verb: Verb) -> Iterator[str]:
    depth = "##" if len(verb.words) <= 2 else "###"
    yield f"{depth} {' '.join(verb.words)}"
    yield _paragraphs(verb.command.help or "")
    usage = " ".join(verb.command.collect_usage_pieces(verb.context))
    yield f"    {' '.join(verb.words)} {usage}"
    if verb.example:
        yield f"Example: `{verb.example}`"
    rows = [_row(parameter, verb.context) for parameter in verb.command.params]
    if rows:
        yield table(("argument", "meaning"), rows)
    if verb.subcommands:
        yield "Verbs: " + ", ".join(f"`{name}`" for name in sorted(verb.subcommands)) + "."


def _row(parameter: Any, context: Any) -> tuple[str, str]:
    names, meaning = parameter.get_help_record(context)
    return f"`{names}`", meaning


def _paragraphs(text: str) -> str:
    """Help as Markdown, with lists and line breaks as on the terminal."""
    return text.replace("\b\n", "").strip()
