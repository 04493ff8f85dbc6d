"""Code blocks of a Markdown page, and the marks that control how they are tested.

A block runs as bash, or as Python if its language says so; TOML is parsed; the language `text` is
for drawings and formulas. Comments directly before a block mark it:

    <!-- not run: why -->        it is not run; only its commands are parsed
    <!-- needs: root nbdinfo --> it is run only as root, or if that program is installed
    <!-- here: A = B; C = D -->  the test replaces A by B: a drive, a size
    <!-- first: commands -->     the test runs these before, to create what the block uses
    <!-- file: NAME -->          it is a file of that name, for later blocks
    <!-- output -->              it is the output of earlier commands: its numbers are compared
    <!-- recorded: where -->     it is output of another machine or a longer run
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

MARKS: Final = ("not run", "needs", "here", "first", "file", "output", "recorded")
_MARK: Final = re.compile(rf"<!-- ({'|'.join(MARKS)})(?::\s(.+?))?\s*-->\s*", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block: its first line (from 1), language ("" if none), text and marks."""

    file: Path
    line: int
    language: str
    text: str
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def replacements(self) -> list[tuple[str, str]]:
        """Text in the page and its replacement in the test, in order."""
        pairs = [pair.partition(" = ") for pair in self.marks.get("here", "").split("; ") if pair]
        return [(shown.strip(), real.strip()) for shown, _, real in pairs]

    @property
    def script(self) -> str:
        """The text with its replacements.

        Raises:
            AssertionError: a text to replace does not occur.
        """
        text = self.text
        for shown, real in self.replacements:
            assert shown in text, f"{self.file}:{self.line}: it does not contain {shown!r}"
            text = text.replace(shown, real)
        return text

    def commands(self) -> Iterator[tuple[int, str]]:
        """Its lines with their numbers; lines continued by a backslash are joined."""
        first, joined = 0, ""
        for number, line in enumerate(self.text.splitlines(), self.line):
            first = first or number
            if line.endswith("\\"):
                joined += line[:-1]
                continue
            yield first, joined + line
            first, joined = 0, ""


def blocks(file: Path) -> list[Block]:
    """All code blocks of a page in order, without Sphinx directives."""
    in_order: list[Block] = []
    marks: dict[str, str] = {}
    for token in _tokens(file):
        if token.type == "html_block":
            marks |= _marks(token.content)
            continue
        if token.type in {"code_block", "fence"} and not token.info.startswith("{"):
            assert token.map is not None, "a block token has its lines"
            line = token.map[0] + (2 if token.type == "fence" else 1)
            in_order.append(Block(file, line, token.info.strip(), token.content, marks))
        marks = {}
    return in_order


def inline(file: Path) -> Iterator[tuple[int, str]]:
    """All inline code, with the first line of its paragraph."""
    for token in _tokens(file):
        for part in token.children or ():
            if part.type == "code_inline":
                yield (token.map or [0])[0] + 1, part.content


def _tokens(file: Path) -> list[Token]:
    parser = MarkdownIt("commonmark").enable("table")
    return parser.parse(file.read_text(encoding="utf-8"))


def _marks(comment: str) -> dict[str, str]:
    """The marks in one HTML comment."""
    marks = {match[1]: match[2] or "" for match in _MARK.finditer(comment)}
    return {
        name: text if name == "first" else " ".join(text.split()) for name, text in marks.items()
    }
