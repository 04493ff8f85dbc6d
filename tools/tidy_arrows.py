"""Arrows that no compiler holds: between crates of one height, and between flash's folders."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tidy_finding import Finding

# What each crate may depend on. Cargo refuses cycles only; siblings could still see one another.
# Dev-dependencies may point anywhere: the conformance body runs on every Device.
CONTRACT = {"time", "device"}
CRATES = {
    "time": set[str](),
    "device": {"time"},
    "flash": CONTRACT,
    "uring": CONTRACT,
    "workload": CONTRACT,
    "serve": CONTRACT,
    "python": CONTRACT | {"flash", "uring", "workload", "serve"},
    "fuzz": CONTRACT | {"flash", "workload", "serve"},
}
PREFIX = "ssdlab-"

FLASH = ("crates", "flash", "src")
NAMES_FTL = re.compile(r"\bftl\b")
# A module seen by path or by `use`; a variable or a field of that name is neither.
SEES = r"\b{0}\s*::|::\s*{0}\b|\buse\s[^;]*\b{0}\b"
SEES_NAND = re.compile(SEES.format("nand"))
SEES_FTL = re.compile(SEES.format("ftl"))
SEE_BOTH = {"ftl", "lib", "ssd", "study"}


def between_crates(root: Path, files: list[Path]) -> Iterator[Finding]:
    """Crates that no rule names, and dependencies that point the wrong way."""
    for file in files:
        if file.name == "Cargo.toml" and len(file.parts) == 3 and file.parts[0] == "crates":
            manifest = tomllib.loads((root / file).read_text(encoding="utf-8"))
            yield from of_crate(file, manifest.get("dependencies", {}))


def of_crate(file: Path, dependencies: dict[str, object]) -> Iterator[Finding]:
    """The findings of one crate's manifest."""
    crate = file.parts[1]
    if crate not in CRATES:
        yield Finding(file, 1, "arrow", f"tools/tidy_arrows.py does not say what {crate} may see")
        return
    for name in dependencies:
        seen = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and seen not in CRATES[crate]:
            yield Finding(file, 1, "arrow", f"{crate} must not depend on {seen}")


def in_flash(file: Path, code: str) -> Iterator[Finding]:
    """In crates/flash: nand names no ftl, and only ssd (and lib.rs, which lists them) sees both.

    `code` is without comments and strings. ftl may see nand: it is built on it.
    """
    if file.parts[:3] != FLASH:
        return
    part = file.parts[3].removesuffix(".rs")
    if part == "nand":
        found = NAMES_FTL.search(code)
        what = "nand must not name ftl: a chip knows of no mapping"
    else:
        found = SEES_FTL.search(code) if SEES_NAND.search(code) else None
        what = "only ssd sees both nand and ftl"
    if found and part not in SEE_BOTH:
        yield Finding(file, code.count("\n", 0, found.start()) + 1, "arrow", what)
