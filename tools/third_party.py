"""The licences of the crates that a binary contains: `python tools/third_party.py CRATE... >FILE`.

Their texts must go with each copy of the binary. They are read from the sources that cargo has
downloaded. Exit status 1 if a crate ships no text and its licence is not among those of another.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGET = "x86_64-unknown-linux-gnu"
NAMES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "UNLICENSE*")
OPENING = """\
The binaries of ssdlab contain the Rust crates listed here, each with its licence and the texts that
it ships. ssdlab itself: LICENSE-MIT or LICENSE-APACHE.
"""


def metadata() -> dict[str, Any]:
    """What cargo knows about all packages of the workspace."""
    command = [
        "cargo",
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        TARGET,
    ]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, check=True).stdout
    )
    return found


def linked(described: dict[str, Any], roots: set[str]) -> list[dict[str, Any]]:
    """The packages that crates with these names link, directly or not, sorted; not ssdlab's own."""
    packages = {package["id"]: package for package in described["packages"]}
    nodes = {node["id"]: node for node in described["resolve"]["nodes"]}
    pending = [id_ for id_, package in packages.items() if package["name"] in roots]
    seen = set(pending)
    while pending:
        for dependency in nodes[pending.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_linked and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                pending.append(dependency["pkg"])
    foreign = (packages[id_] for id_ in seen if packages[id_]["source"])
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def texts(package: dict[str, Any]) -> list[str]:
    """The licence texts that a package ships."""
    folder = Path(package["manifest_path"]).parent
    files = sorted({file for name in NAMES for file in folder.glob(name) if file.is_file()})
    return [file.read_text(encoding="utf-8", errors="replace").strip() for file in files]


def document(packages: list[dict[str, Any]]) -> Iterator[str]:
    """The notice: a list of the packages, then each different text with the packages it is of."""
    yield OPENING
    yield from (f"  {each['name']} {each['version']}: {each['license']}" for each in packages)
    by_text: dict[str, list[str]] = {}
    for package in packages:
        for text in texts(package):
            by_text.setdefault(text, []).append(f"{package['name']} {package['version']}")
    for text, names in by_text.items():
        yield f"\n{'-' * 80}\n{', '.join(names)}:\n\n{text}"


def main(roots: set[str]) -> int:
    """Print the notice; 1 if a crate ships no text of its licence."""
    packages = linked(metadata(), roots)
    print("\n".join(document(packages)))
    missing = [each["name"] for each in packages if not texts(each)]
    for name in missing:
        print(f"third_party: {name} ships no licence text", file=sys.stderr)
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
