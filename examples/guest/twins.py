"""Twins, and what else of ssdlab a guest needs beside it, served until the end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

SSDLAB = (sys.executable, "-c", "import sys, ssdlab.cli; sys.exit(ssdlab.cli.main())")
LISTENS_S = 600


def twin(profile: str, path: Path, words: tuple[str, ...], undo: ExitStack) -> str:
    """Serves a twin of this profile; returns "PORT,NAME" of its `nvme connect` line.

    Files beside `path` hold the profile and what the server says; its control socket is
    `path`.control. `words` are more of `ssdlab serve`.
    """
    file = path.with_suffix(".toml")
    file.write_text(profile)
    serve = ["serve", str(file), "--nvme-tcp", "127.0.0.1:0", "--pace", "none", *words]
    control = ["--control", str(path.with_suffix(".control"))]
    says = r"-s (\d+) -n (\S+)\n"
    line = served([*serve, *control], says, path.with_suffix(".told"), undo)
    return f"{line[1]},{line[2]}"


def served(words: list[str], says: str, told: Path, undo: ExitStack) -> re.Match[str]:
    """Starts ssdlab until the end; returns what it says once it listens."""
    with told.open("w") as stderr:
        process = subprocess.Popen([*SSDLAB, *words], stdout=subprocess.DEVNULL, stderr=stderr)
    undo.callback(process.wait)
    undo.callback(process.terminate)
    end = time.monotonic() + LISTENS_S
    while not (line := re.search(says, told.read_text())):
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"ssdlab {words[0]} does not listen: {told.read_text()}")
        time.sleep(0.1)
    return line


def counts(path: Path) -> dict[str, float]:
    """What a twin has counted, whose files are beside `path`."""
    control = [*SSDLAB, "control", str(path.with_suffix(".control")), "counters"]
    told = subprocess.run(control, capture_output=True, text=True, check=True).stdout
    counted: dict[str, float] = json.loads(told)
    return counted
