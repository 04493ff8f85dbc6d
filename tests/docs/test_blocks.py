"""The code blocks of README and of every page of the documentation do what they say: they run."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from reader import Reader

from pages.blocks import Block, blocks

CHECKOUT = Path(__file__).resolve().parents[2]
README = CHECKOUT / "README.md"
PAGES = [README, *sorted((CHECKOUT / "docs").rglob("*.md"))]
NUMBER = re.compile(r"\d+(?:\.\d+)?")
LEFT = frozenset({"not run", "recorded"})
DRAWN = frozenset({"text"})
"""Languages of blocks that show something and ask nobody to do anything."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=[] if page == README else pytest.mark.pages,
            id=str(page.relative_to(CHECKOUT)),
        )
        for page in PAGES
    ],
)
def test_the_blocks_of_a_page_run_one_after_the_other(page: Path, reader: Reader) -> None:
    missing: set[str] = set()
    for block in blocks(page):
        missing |= follow(block, reader)
    if missing:
        pytest.skip(f"all ran but the blocks that need {', '.join(sorted(missing))}")


def follow(block: Block, reader: Reader) -> set[str]:
    """Does with a block what its marks say; gives what is missing here for it."""
    if LEFT & set(block.marks):
        return set()
    if "output" in block.marks:
        assert not unseen_numbers(block.text, reader.printed), f"{block.file}:{block.line}"
        return set()
    missing = {each for each in block.marks.get("needs", "").split() if not reader.has(each)}
    if missing:
        return missing
    if "file" in block.marks:
        (reader.folder / block.marks["file"]).write_text(block.script, encoding="utf-8")
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language not in DRAWN:
        return reader.runs(block)
    return set()


def unseen_numbers(shown: str, printed: str) -> set[str]:
    """Numbers that a page shows as printed, and that no command before has printed."""
    return set(NUMBER.findall(shown)) - set(NUMBER.findall(printed))


def test_blocks_that_are_not_run_say_why_and_are_few(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints them, so that nobody takes them for tested."""
    every = [block for page in PAGES for block in blocks(page)]
    asking = [each for each in every if each.language not in DRAWN]
    left = [(each, mark) for each in every for mark in LEFT if mark in each.marks]
    not_run = [each for each, mark in left if mark == "not run"]
    lines = [f"\n{len(not_run)} of {len(asking)} blocks are not run, some show what was recorded:"]
    lines += [
        f"  {each.file.relative_to(CHECKOUT)}:{each.line}: {mark}: {each.marks[mark]}"
        for each, mark in left
    ]
    with capsys.disabled():
        sys.stdout.write("\n".join(lines) + "\n")
    assert all(each.marks[mark] for each, mark in left)
    assert len(not_run) <= len(asking) / 4
    assert len(asking) > 80


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("    true\n", True),
        ("    false\n", False),
        ("```python\nassert 1 + 1 == 2\n```\n", True),
        ("```python\nassert 1 + 1 == 3\n```\n", False),
    ],
)
def test_a_block_that_fails_fails_its_page(
    tmp_path: Path, reader: Reader, text: str, *, runs: bool
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\nText.\n\n{text}")
    (block,) = blocks(page)
    if runs:
        reader.runs(block)
    else:
        with pytest.raises(AssertionError, match=r"page\.md:[56]: "):
            reader.runs(block)


def test_python_blocks_of_a_page_are_one_program_and_what_they_print_is_seen(
    tmp_path: Path, reader: Reader
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\na = 6\n```\n\nText.\n\n```python\nprint(7 * a)\n```\n")
    for block in blocks(page):
        reader.runs(block)
    assert reader.printed == "42\n"


def test_a_number_that_no_command_printed_is_found() -> None:
    assert unseen_numbers("3.57 times, 888 ms", "it is 3.5 times slower: 888 ms") == {"3.57"}


def test_marks_belong_to_the_block_right_after_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n<!-- not run: needs\na drive -->\n\n    one\n\nText.\n\n    two\n\n"
        "<!-- needs: fio -->\n<!-- here: /mnt/data = data; 4GiB = 1MiB -->\n\n"
        "    fio /mnt/data 4GiB\n"
    )
    one, two, three = blocks(page)
    assert (one.marks, two.marks) == ({"not run": "needs a drive"}, {})
    assert three.marks["needs"] == "fio"
    assert three.script == "fio data 1MiB\n"


def test_a_mark_that_stands_for_nothing_in_its_block_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n<!-- here: /mnt/date = data -->\n\n    ls /mnt/data\n")
    with pytest.raises(AssertionError, match="does not contain '/mnt/date'"):
        _ = blocks(page)[0].script


def test_what_a_block_needs_is_looked_for(reader: Reader) -> None:
    assert not reader.has("a-program-that-nobody-has")
    assert reader.has("bash") == bool(shutil.which("bash"))
