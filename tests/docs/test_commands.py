"""Every `ssdlab ...` that the documentation writes is one that the program takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages import commands
from pages.blocks import Block, blocks, inline
from pages.commands import NotParsedError, calls, mention, parse, root, walk

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = sorted({CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")})
# `[PATH|DEVICE]` and `...` stand for what a reader fills in: such a line is no whole command.
SYNOPSIS = re.compile(r"\[[A-Z-][^\]]*\]|\.\.\.|\b[A-Z]+\|")
LOOP = re.compile(r"\bfor (\w+) in (\S+)")


def refusals(page: Path) -> Iterator[str]:
    """`file:line: why: what` for each line of a page that the program would refuse."""
    name = page.relative_to(CHECKOUT) if page.is_relative_to(CHECKOUT) else page
    for block in blocks(page):
        for number, line in commands_of(block):
            if why := refused(line):
                yield f"{name}:{number}: {why}: {line.strip()}"
    for number, code in inline(page):
        told_of = code.startswith("ssdlab ") and refused(code)
        if told_of and (why := refused(code, whole=False)):
            yield f"{name}:{number}: {why}: {code}"


def commands_of(block: Block) -> Iterator[tuple[int, str]]:
    """Lines with a call of ssdlab; a loop's variable has the first of its values."""
    loop = LOOP.search(block.text)
    for number, line in block.commands():
        if re.search(r"(^|[;&|]|\bdo\b|\bsudo\b)\s*ssdlab\s", line):
            yield number, line.replace(f"${loop[1]}", loop[2]) if loop else line


def refused(line: str, *, whole: bool = True) -> str:
    """Why the program refuses the line; "" if it takes it."""
    check = parse if whole and not SYNOPSIS.search(line) else mention
    try:
        for words in calls(SYNOPSIS.sub(" ", line)):
            check(words)
    except (NotParsedError, ValueError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_each_command_of_a_page_is_taken_by_the_program(page: Path) -> None:
    assert not list(refusals(page))


def test_commands_are_found_at_all() -> None:
    lines = [line for page in PAGES for block in blocks(page) for _, line in commands_of(block)]
    assert len(lines) > 100


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ssdlab age twin:toshiba-xg5", "No such command"),
        ("ssdlab run aging twin:toshiba-xg5 --fast", "No such option"),
        ("ssdlab run aging", "Missing argument"),
        ("ssdlab run steady twin:x --depth many", "Invalid value"),
        ("cd /tmp && sudo ssdlab trim --weekly /home", "No such option"),
        ("ssdlab run steady DIR ... --pace 3", "no option --pace"),
    ],
)
def test_a_wrong_verb_or_option_is_named_with_its_file_and_line(
    tmp_path: Path, line: str, why: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\nText.\n\n    ssdlab runs\n    {line}\n")
    (found,) = refusals(page)
    assert found.startswith(f"{page}:6: ")
    assert why in found


def test_a_wrong_verb_within_text_is_found_too(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n| do |\n|---|\n| `ssdlab mend DIR` |\n")
    assert [each.split(": ", 1)[1] for each in refusals(page)] == [
        "ssdlab has no verb mend: ssdlab mend DIR"
    ]


@pytest.mark.parametrize("verb", list(walk(root())), ids=lambda verb: " ".join(verb.words))
def test_every_verb_has_an_example_in_its_help_that_the_program_takes(
    verb: commands.Verb,
) -> None:
    assert verb.example, f"{' '.join(verb.words)} has no example"
    assert verb.command.help
    assert not refused(verb.example)
