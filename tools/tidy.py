"""The house's size rules and the arrows that no other tool holds: `python tools/tidy.py [ROOT]`.

Prints one line a finding, `path:line: rule: what`, and exits with 1 if there is any.
Looks at the files that git tracks or would track; without git, at all but build folders and caches.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import tidy_arrows
import tidy_python
import tidy_rust
import tidy_text
from tidy_finding import Finding

SKIPPED_FOLDERS = {".git", ".venv", "__pycache__", "build", "node_modules", "target"}
SKIPPED_FOLDERS |= {"ssdlab-runs", "ssdlab-sweeps"}
BINARY_SUFFIXES = {".arrow", ".gz", ".ico", ".jpg", ".parquet", ".pdf", ".png", ".so", ".zst"}


def listed_by_git(root: Path) -> list[Path] | None:
    """The files that git tracks or would track, relative to `root`; None if git cannot say."""
    if not (root / ".git").exists():
        return None
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listing = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [Path(name) for name in listing.stdout.decode().split("\0") if name]


def walked(root: Path) -> list[Path]:
    """The files below `root`, relative to it, without build folders and hidden caches."""
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [
            name
            for name in subfolders
            if name not in SKIPPED_FOLDERS and not name.endswith("_cache")
        ]
        found += [(Path(folder) / name).relative_to(root) for name in names]
    return found


def findings(root: Path) -> Iterator[Finding]:
    """All findings below `root`, in no particular order."""
    files = listed_by_git(root)
    files = walked(root) if files is None else files
    files = sorted(file for file in files if (root / file).is_file())
    yield from tidy_text.crowded_folders(files)
    yield from tidy_arrows.between_crates(root, files)
    for file in files:
        if file.suffix not in BINARY_SUFFIXES:
            text = (root / file).read_text(encoding="utf-8", errors="replace")
            yield from in_file(file, text)


def in_file(file: Path, text: str) -> Iterator[Finding]:
    """The findings in one file."""
    yield from tidy_text.check(file, text)
    if file.suffix == ".py":
        yield from tidy_python.check(file, text)
    elif file.suffix == ".rs":
        code = tidy_rust.without_comments_and_strings(text)
        yield from tidy_rust.check(file, code)
        yield from tidy_arrows.in_flash(file, code)


def main(arguments: list[str]) -> int:
    """Print the findings; 1 if there are any."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    lines = sorted(findings(root))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
