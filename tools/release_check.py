"""Whether this checkout is a release: `python tools/release_check.py [CHECK...]`.

Prints a line for each check; exit status 1 if one fails. `make wheels` must have run. A version is
stated in Cargo.toml, pyproject.toml and CITATION.cff; its section in CHANGELOG.md is headed
`## VERSION, YYYY-MM-DD`, and its tag is vVERSION.
"""

import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
VENV = CHECKOUT / ".venv" / "bin"
DIST = CHECKOUT / "build" / "dist"
SECTION = re.compile(r"^## (\S+?)(?:, (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def output(*command: str | Path) -> str:
    """What a program prints; its error output with it if it fails.

    Raises:
        subprocess.CalledProcessError: it fails.
    """
    done = subprocess.run(
        [str(word) for word in command],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise subprocess.CalledProcessError(done.returncode, command, lines[-1] if lines else "")
    return done.stdout


def version_of(root: Path) -> str:
    """The version that the Rust workspace states."""
    described = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    return str(described["workspace"]["package"]["version"])


def versions(root: Path) -> Iterator[str]:
    """Manifests that state another version than Cargo.toml, or a version of another form."""
    version = version_of(root)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"{version} is not MAJOR.MINOR.PATCH"
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = re.search(r"^version: (.*)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    stated = {
        "pyproject.toml": project["version"],
        "CITATION.cff": cited[1] if cited else "no version",
    }
    for name, other in stated.items():
        if other != version:
            yield f"Cargo.toml says {version}, {name} {other}"


def changelog(root: Path) -> Iterator[str]:
    """A version without its section, with an empty one, or changes that are in none."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = SECTION.split(text)[1:]
    sections = {
        name: (day, body.strip()) for name, day, body in zip(*[iter(parts)] * 3, strict=True)
    }
    version = version_of(root)
    day, body = sections.get(version, (None, ""))
    if not body or not day:
        yield f"CHANGELOG.md has no section `## {version}, YYYY-MM-DD` with text"
    if sections.get("Unreleased", ("", ""))[1]:
        yield "CHANGELOG.md has changes under Unreleased: move them to the version's section"


def tag(root: Path) -> Iterator[str]:
    """Changes that are not committed, or a commit without the version's tag."""
    if output("git", "-C", root, "status", "--porcelain"):
        yield "files differ from the commit: git status"
    wanted = f"v{version_of(root)}"
    if wanted not in output("git", "-C", root, "tag", "--points-at", "HEAD").split():
        yield f"this commit has no tag {wanted}"


def wheels(root: Path) -> Iterator[str]:
    """Files of the release that are missing, or that were built from another commit."""
    version, machine = version_of(root), platform.machine()
    name = f"ssdlab-{version}-*manylinux*_{machine}.whl"
    for pattern in (name, f"ssdlab-{version}.tar.gz",
                    f"serve_twin-{version}-linux-{machine}.tar.gz"):  # fmt: skip
        if len([*DIST.glob(pattern)]) != 1:
            yield f"build/dist has no {pattern}, or several: make wheels"
            return
    [wheel] = DIST.glob(name)
    head = output("git", "-C", root, "rev-parse", "--short=12", "HEAD").strip()
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        output(sys.executable, "-m", "venv", folder)
        output(python, "-m", "pip", "install", "--quiet", "-c", root / "constraints.txt", wheel)
        printed = output(Path(folder) / "bin" / "ssdlab", "--version")
        if f"ssdlab {version} (commit {head}, release build" not in printed:
            yield f"the wheel is not of commit {head}: it prints {printed.strip()}"
        if not (Path(folder) / "share" / "man" / "man1" / "ssdlab.1").is_file():
            yield "the wheel has no manual pages"


def licences(root: Path) -> Iterator[str]:
    """A dependency whose licence is not permitted."""
    output(VENV / "python", root / "tools" / "licences.py")
    yield from ()


def site(root: Path) -> Iterator[str]:
    """A site that cannot be built."""
    output(root / "tools" / "site.sh")
    yield from ()


def figures(root: Path) -> Iterator[str]:
    """Errors of the twins that differ from those that docs/models/validation.md states."""
    printed = json.loads(output(VENV / "ssdlab", "twin", "validate", "--json", "--quiet"))
    page = " ".join((root / "docs/models/validation.md").read_text(encoding="utf-8").split())
    for total in printed["summary"]:
        mean, worst = 100 * total["mean_error"], 100 * total["worst_error"]
        error = rf"mean error {mean:.1f} %, worst {worst:.1f} %"
        stated = re.compile(rf"\b{total['figures']} (figures )?are {total['role']}: {error}")
        if not stated.search(page):
            yield f"docs/models/validation.md does not say {stated.pattern}"


CHECKS: dict[str, Callable[[Path], Iterator[str]]] = {
    "version": versions,
    "changelog": changelog,
    "tag": tag,
    "licences": licences,
    "wheels": wheels,
    "site": site,
    "figures": figures,
}


def main(chosen: list[str]) -> int:
    """Run the checks; 1 if one fails, 2 if there is no such check."""
    if unknown := sorted({*chosen} - {*CHECKS}):
        print(f"there is no check {', '.join(unknown)}; the checks are {', '.join(CHECKS)}")
        return 2
    failed = False
    for name in chosen or CHECKS:
        try:
            problems = [*CHECKS[name](CHECKOUT)]
        except subprocess.CalledProcessError as error:
            problems = [f"{Path(str(error.cmd[0])).name} failed: {error.output}"]
        failed = failed or bool(problems)
        print(f"{name:10}", "; ".join(problems) or "ok", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
