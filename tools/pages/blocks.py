"""Code blocks of a Markdown page, with their lines, and the marks that say how they are tested.

A block runs as bash, or as Python if it says so; one in TOML is read, and one that calls itself
text is a drawing or a formula. Comments right before a block mark it:

    <!-- not run: why -->        it cannot run in a test; only its commands are parsed
    <!-- needs: root nbdinfo --> it is run where that program is installed, or by root
    <!-- here: A = B; C = D -->  in the test B stands for A: a drive, a size
    <!-- first: commands -->     what a reader has by then, and the test must make
    <!-- file: NAME -->          it is a file of that name, for the blocks after it
    <!-- output -->              it shows what commands before it print: its numbers are looked for
    <!-- recorded: where -->     it shows what was printed on another machine or for longer
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
    """One block: where it begins (from 1), its language ("" if none is named), text and marks."""

    file: Path
    line: int
    language: str
    text: str
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def stands(self) -> list[tuple[str, str]]:
        """What stands in the test for what, in the order given."""
        pairs = [each.partition(" = ") for each in self.marks.get("here", "").split("; ") if each]
        return [(shown.strip(), real.strip()) for shown, _, real in pairs]

    @property
    def script(self) -> str:
        """The text with what stands for something in its place.

        Raises:
            AssertionError: the text does not have what a mark names.
        """
        text = self.text
        for shown, real in self.stands:
            assert shown in text, f"{self.file}:{self.line}: there is no {shown!r} in it"
            text = text.replace(shown, real)
        return text

    def commands(self) -> Iterator[tuple[int, str]]:
        """Its lines with their numbers; those that end in a backslash are joined to the next."""
        begun, joined = 0, ""
        for number, line in enumerate(self.text.splitlines(), self.line):
            begun = begun or number
            if line.endswith("\\"):
                joined += line[:-1]
                continue
            yield begun, joined + line
            begun, joined = 0, ""


def blocks(file: Path) -> list[Block]:
    """All code blocks of a page, in order; without those that tell Sphinx something."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    for token in _tokens(file):
        if token.type == "html_block":
            marks |= _marks(token.content)
            continue
        if token.type in {"code_block", "fence"} and not token.info.startswith("{"):
            assert token.map is not None, "a block token has its lines"
            line = token.map[0] + (2 if token.type == "fence" else 1)
            found.append(Block(file, line, token.info.strip(), token.content, marks))
        marks = {}
    return found


def inline(file: Path) -> Iterator[tuple[int, str]]:
    """All code that stands within text, with the line where its paragraph begins."""
    for token in _tokens(file):
        for part in token.children or ():
            if part.type == "code_inline":
                yield (token.map or [0])[0] + 1, part.content


def _tokens(file: Path) -> list[Token]:
    parser = MarkdownIt("commonmark").enable("table")
    return parser.parse(file.read_text(encoding="utf-8"))


def _marks(comment: str) -> dict[str, str]:
    """The marks of one piece of HTML; empty where it is none."""
    found = {match[1]: match[2] or "" for match in _MARK.finditer(comment)}
    return {
        name: told if name == "first" else " ".join(told.split()) for name, told in found.items()
    }
