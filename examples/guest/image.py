"""A guest's root as an ext4 image: this Python, ssdlab and what both need, and the host's programs.

Needs no root. Files keep the places that they have here, so that they find one another.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import ssdlab

NOT_TAKEN = ("tests", "test", "site-packages", "dist-packages", "idlelib", "include")
FOLDERS = ("proc", "sys", "dev", "tmp", "run", "mnt", "etc", "bin")
MARGIN = 1.25


def make(files: Iterable[tuple[str, Path]], tree: Path, image: Path) -> None:
    """An image of these files and of Python, by way of a folder that is made for it."""
    for name in FOLDERS:
        (tree / name).mkdir(parents=True, exist_ok=True)
    for name, file in [*files, *python()]:
        place(file, tree / name)
    room = sum(file.stat().st_size + 4096 for file in tree.rglob("*") if file.is_file())
    subprocess.run(
        [
            *("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", str(tree)),
            *(str(image), f"{int(room * MARGIN) >> 10}k"),
        ],
        check=True,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
    )


def place(file: Path, there: Path) -> None:
    """Puts a file there: by a link where that can be, which costs neither time nor room."""
    if there.exists():
        return
    there.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file.resolve(), there)
    except OSError:
        shutil.copy2(file, there)


def python() -> Iterator[tuple[str, Path]]:
    """This interpreter, its library, ssdlab and the packages that it asks for, shared objects."""
    library = Path(sysconfig.get_path("stdlib"))
    found = [file for file in files_below(library) if file.is_file()]
    package = Path(ssdlab.__file__).parent
    found += [file for file in files_below(package) if file.is_file()]
    for one in distributions("ssdlab", {}).values():
        inside = [file for file in one.files or () if not set(file.parts) & set(NOT_TAKEN)]
        found += [path for file in inside if (path := Path(str(one.locate_file(file)))).is_file()]
    interpreter = Path(sys.executable).resolve()
    shared = [file for file in found if ".so" in file.suffixes]
    for file in (interpreter, *found, *libraries([interpreter, *shared])):
        yield str(file).lstrip("/"), file


def files_below(folder: Path) -> Iterator[Path]:
    """All of a folder but what NOT_TAKEN names."""
    for place_, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in NOT_TAKEN]
        yield from (Path(place_, name) for name in names if not name.endswith(".a"))


def distributions(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """A package and those that it needs, and theirs."""
    try:
        found[name] = distribution(name)
    except PackageNotFoundError:  # of another system or Python
        return found
    for line in found[name].requires or ():
        needed = re.match(r"[\w.-]+", line)
        if needed and "extra ==" not in line and needed[0].lower() not in found:
            distributions(needed[0].lower(), found)
    return found


def libraries(files: Iterable[Path]) -> set[Path]:
    """The shared libraries that these files need."""
    # A static program among them makes it fail.
    done = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False)
    return {Path(os.path.normpath(path)) for path in re.findall(r"(/\S+) \(0x", done.stdout)}


def commands(folder: Path) -> Iterator[tuple[str, Path]]:
    """`python3` and `ssdlab` of the guest, which this Python has at places of its own."""
    package = Path(ssdlab.__file__).parent.parent
    places = f"{package}:{sysconfig.get_path('purelib')}:{sysconfig.get_path('platlib')}"
    call = f"PYTHONPATH={places} exec {Path(sys.executable).resolve()}"
    main_ = "import sys; from ssdlab.cli import main; sys.exit(main())"
    for name, words in (("python3", ""), ("ssdlab", f" -c '{main_}'")):
        command = folder / name
        command.write_text(f'#!/bin/busybox sh\n{call}{words} "$@"\n')
        command.chmod(0o755)
        yield f"bin/{name}", command
