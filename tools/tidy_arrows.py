"""Dependency rules that Cargo does not check: between sibling crates, and inside flash."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tidy_finding import Finding

# The crates that each crate may depend on. Dev-dependencies are free: the conformance tests run on
# every Device.
CONTRACT = {"time", "device"}
SERVED = CONTRACT | {"engine", "wire"}
PROTOCOLS = {"nbd", "nvme", "nvme-tcp"}
CRATES = {
    "time": set[str](),
    "device": {"time"},
    "flash": CONTRACT,
    "uring": CONTRACT,
    "workload": CONTRACT,
    "engine": CONTRACT,
    "wire": CONTRACT | {"engine"},
    "nbd": SERVED,
    "nvme": CONTRACT | {"engine"},
    "nvme-tcp": SERVED | {"nvme"},
    "server": SERVED | PROTOCOLS,
    "testing": CONTRACT | {"engine"},
    "twin-drive": CONTRACT | {"engine", "flash"},
    "studio": CONTRACT | {"flash", "workload"},
    "python": SERVED | PROTOCOLS | {"flash", "server", "twin-drive", "uring", "workload"},
    "fuzz": SERVED | PROTOCOLS | {"flash", "server", "testing", "workload"},
}
PREFIX = "ssdlab-"

FLASH = ("crates", "flash", "src")
NAMES_FTL = re.compile(r"\bftl\b")
# A module named in a path or by `use`; a variable or a field of that name does not match.
REFERS = r"\b{0}\s*::|::\s*{0}\b|\buse\s[^;]*\b{0}\b"
REFERS_TO_NAND = re.compile(REFERS.format("nand"))
REFERS_TO_FTL = re.compile(REFERS.format("ftl"))
MAY_USE_BOTH = {"ftl", "lib", "ssd", "study"}


def between_crates(root: Path, files: list[Path]) -> Iterator[Finding]:
    """Crates without a rule, and dependencies that no rule allows."""
    for file in files:
        if file.name == "Cargo.toml" and len(file.parts) == 3 and file.parts[0] == "crates":
            manifest = tomllib.loads((root / file).read_text(encoding="utf-8"))
            yield from of_crate(file, manifest.get("dependencies", {}))


def of_crate(file: Path, dependencies: dict[str, object]) -> Iterator[Finding]:
    """The findings of one crate's manifest."""
    crate = file.parts[1]
    if crate not in CRATES:
        yield Finding(file, 1, "arrow", f"tools/tidy_arrows.py has no rule for the crate {crate}")
        return
    for name in dependencies:
        other = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and other not in CRATES[crate]:
            yield Finding(file, 1, "arrow", f"{crate} must not depend on {other}")


def in_flash(file: Path, code: str) -> Iterator[Finding]:
    """In crates/flash, nand must not refer to ftl, and only ssd and lib.rs may use both.

    ftl is built on nand and may use it. `code` is without comments and strings.
    """
    if file.parts[:3] != FLASH:
        return
    part = file.parts[3].removesuffix(".rs")
    if part == "nand":
        match = NAMES_FTL.search(code)
        what = "nand must not name ftl: the flash model is below the translation layer"
    else:
        match = REFERS_TO_FTL.search(code) if REFERS_TO_NAND.search(code) else None
        what = "only ssd uses both nand and ftl"
    if match and part not in MAY_USE_BOTH:
        yield Finding(file, code.count("\n", 0, match.start()) + 1, "arrow", what)
