"""Rules that no other linter checks: `python tools/tidy.py [--record] [ROOT]`.

Sizes, import directions and cycles, wording. Prints `path:line: rule: what` for each violation;
exit status 1 if there are any. --record first lowers the numbers in tools/tidy_baseline.json to
the present ones. Reads the files that git tracks or would track; without git, all files except
those in build folders and caches.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import tidy_arrows
import tidy_baseline
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


def walk(root: Path) -> list[Path]:
    """The files below `root`, relative to it, without build folders and hidden caches."""
    files = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [
            name
            for name in subfolders
            if name not in SKIPPED_FOLDERS and not name.endswith("_cache")
        ]
        files += [(Path(folder) / name).relative_to(root) for name in names]
    return files


def read_texts(root: Path, files: list[Path]) -> dict[Path, str]:
    """The text files with their content."""
    return {
        file: (root / file).read_text(encoding="utf-8", errors="replace")
        for file in files
        if file.suffix not in BINARY_SUFFIXES
    }


def findings(root: Path, *, record: bool) -> Iterator[Finding]:
    """All findings below `root`, unsorted; `record` lowers the accepted numbers first."""
    files = listed_by_git(root)
    files = walk(root) if files is None else files
    files = sorted(file for file in files if (root / file).is_file())
    texts = read_texts(root, files)
    yield from tidy_text.crowded_folders(files)
    yield from tidy_arrows.between_crates(root, files)
    codes: dict[Path, str] = {}
    for file, text in texts.items():
        if file.suffix == ".rs":
            codes[file] = tidy_rust.without_comments_and_strings(text)
        yield from in_file(file, text, codes.get(file, ""))
    yield from tidy_rust.large_types(codes)
    baseline = tidy_baseline.load(root)
    measured = tidy_baseline.measure(root, texts, baseline)
    if record:
        tidy_baseline.record(root, baseline, measured)
        baseline = tidy_baseline.load(root)
    yield from tidy_baseline.findings(baseline, measured)


def in_file(file: Path, text: str, code: str) -> Iterator[Finding]:
    """The findings in one file; `code` is Rust without comments and strings."""
    yield from tidy_text.check(file, text)
    if file.suffix == ".py":
        yield from tidy_python.check(file, text)
    elif file.suffix == ".rs":
        yield from tidy_rust.check(file, code)
        yield from tidy_arrows.in_flash(file, code)


def main() -> int:
    """Print the findings; 1 if there are any."""
    parser = argparse.ArgumentParser(description="Rules that no other linter checks.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--record", action="store_true", help="lower the accepted numbers")
    options = parser.parse_args()
    lines = sorted(findings(options.root, record=options.record))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
