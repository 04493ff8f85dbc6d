"""Rules for text files: lengths, file names, first lines, leftovers, paths, registries."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tidy_finding import Finding

FILE_LINES = 450  # the aim is 400: a few lines more do not justify a split
COLUMNS = 100
FOLDER_FILES = 25

# Files that people read. Folders of data (profiles, snapshots) may have more.
READ_SUFFIXES = {".md", ".py", ".pyi", ".rs", ".sh"}
MODULE_SUFFIXES = {".py", ".rs"}
BANNED_NAMES = {
    "base", "common", "data", "helper", "helpers", "info", "manager", "util", "utils",
}  # fmt: skip
VERSIONED_NAME = re.compile(r"_v\d+$")
DOCSTRING = re.compile(r"""[rR]?("{3}|'{3})""")
PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+")

# Cargo writes the name of its index into its lock file.
MAY_NAME_HOSTS = {"Cargo.lock"}
LEFTOVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|root)/")
REGISTRY = re.compile(
    r"\b(?:pypi\.(?:org|python\.org)|(?:files\.)?pythonhosted\.org"
    r"|(?:index\.|static\.)?crates\.io|npmjs\.(?:org|com))\b|(?:extra[-_])?index[-_]url\b",
    re.IGNORECASE,
)


def check(file: Path, text: str) -> Iterator[Finding]:
    """The findings of one file's text."""
    lines = text.splitlines()
    if file.suffix in MODULE_SUFFIXES:
        yield from module_name(file)
        yield from first_line(file, lines)
        yield from sizes(file, lines)
    if file.name == "constraints.txt":
        yield from pins(file, lines)
    yield from banned_words(file, lines)


def crowded_folders(files: Iterable[Path]) -> Iterator[Finding]:
    """Folders with more than 25 files that people read."""
    counts = Counter(file.parent for file in files if file.suffix in READ_SUFFIXES)
    for folder, count in counts.items():
        if count > FOLDER_FILES:
            what = f"{count} files to read in one folder, {FOLDER_FILES} at most: split it"
            yield Finding(folder, 1, "folder-files", what)


def module_name(file: Path) -> Iterator[Finding]:
    """A module or folder whose name does not describe its content."""
    for name in (*file.parts[:-1], file.stem):
        if name in BANNED_NAMES or VERSIONED_NAME.search(name):
            yield Finding(file, 1, "module-name", f"`{name}` does not describe the content")


def first_line(file: Path, lines: list[str]) -> Iterator[Finding]:
    """A module without a description in line 1."""
    first = lines[0] if lines else ""
    is_described = first.startswith("//! ") if file.suffix == ".rs" else DOCSTRING.match(first)
    if not is_described:
        opening = "//!" if file.suffix == ".rs" else "a docstring"
        yield Finding(file, 1, "first-line", f"must describe the module with {opening}")


def sizes(file: Path, lines: list[str]) -> Iterator[Finding]:
    """Files and lines that are too long."""
    if len(lines) > FILE_LINES:
        what = f"{len(lines)} lines, {FILE_LINES} at most: split it"
        yield Finding(file, FILE_LINES + 1, "file-lines", what)
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and not ends_with_address(line):
            yield Finding(file, number, "columns", f"{len(line)} columns, {COLUMNS} at most")


def ends_with_address(line: str) -> bool:
    """Whether the line is long only because of a web address, which cannot be broken."""
    start = line.find("http")
    return 0 <= start < COLUMNS and "://" in line and " " not in line[start:].rstrip()


def pins(file: Path, lines: list[str]) -> Iterator[Finding]:
    """Lines of constraints.txt that are not `name==version`."""
    for number, line in enumerate(lines, 1):
        if not PIN.fullmatch(line):
            yield Finding(file, number, "pin", f"`{line}` is not name==version")


def banned_words(file: Path, lines: list[str]) -> Iterator[Finding]:
    """Leftovers, paths of one machine and package registries."""
    for number, line in enumerate(lines, 1):
        if match := LEFTOVER.search(line):
            yield Finding(file, number, "leftover", f"{match[0]}: do it or open an issue")
        if match := MACHINE_PATH.search(line):
            yield Finding(file, number, "machine-path", f"{match[0]} exists on one machine only")
        if file.name not in MAY_NAME_HOSTS and (match := REGISTRY.search(line)):
            what = f"{match[0]}: do not name a package registry; each machine has its own"
            yield Finding(file, number, "registry", what)
