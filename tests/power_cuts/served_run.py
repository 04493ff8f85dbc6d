"""A small twin, served by the installed program, under cuts and clients that reconnect at once."""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from director import Target, Wish, run, verdict
from history import Twin
from nvme_host import connect_line
from rig import PATIENCE_S, TWIN, Served, executable, wait_for


@dataclass(frozen=True)
class Run:
    """Which twin is served how, and what is done to it."""

    wish: Wish
    twin: Twin = Twin.VOLATILE
    pace: str = "none"
    in_file: bool = False
    program: str = field(default_factory=executable)
    """The `ssdlab` that serves."""


@dataclass(frozen=True)
class Outcome:
    """The tally, one line for each broken rule, and what the server wrote to stderr."""

    tally: dict[str, Any]
    broken_rules: list[str]
    messages: str


def run_served(folder: Path, wanted: Run) -> Outcome:
    """Serves, makes all cuts, stops the server."""
    began = time.monotonic()
    socket, messages = folder / "nbd", folder / "messages"
    with (
        messages.open("w") as stderr,
        subprocess.Popen(
            [wanted.program, "serve", str(_profile(folder, wanted.twin)), *_words(folder, wanted)],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            served = Served(socket, process, messages)
            wait_for(lambda: process.poll() is not None or _listens(messages), messages)
            assert _listens(messages), messages.read_text()
            target = Target(socket, f"{socket}.control", connect_line(served), wanted.twin)
            result = run(target, wanted.wish)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=PATIENCE_S)
    said = messages.read_text()
    tally = {
        "pace": wanted.pace,
        "data": "file" if wanted.in_file else "memory",
        "seed": wanted.wish.seed,
        "clients": wanted.wish.clients,
        "seconds": round(time.monotonic() - began, 1),
        "server_failed": int(process.returncode != 0 or "panicked" in said),
        **verdict(result, wanted.twin),
    }
    return Outcome(tally, result.broken_rules, said)


def _profile(folder: Path, twin: Twin) -> Path:
    profile = folder / "twin.toml"
    protected, honest = twin is Twin.PROTECTED, twin is not Twin.LYING
    # Slow programs: what was written stays volatile for long.
    text = TWIN.format(
        capacity="256 MiB",
        program="5 ms",
        protected=str(protected).lower(),
        honest=str(honest).lower(),
    )
    profile.write_text(text)
    return profile


def _words(folder: Path, wanted: Run) -> list[str]:
    words = ["--unix", str(folder / "nbd"), "--nvme-tcp", "127.0.0.1:0", "--pace", wanted.pace]
    words += ["--seed", str(wanted.wish.seed)]
    if wanted.in_file:
        words += ["--data", str(folder / "content")]
    return words


def _listens(messages: Path) -> bool:
    return "losetup" in messages.read_text()
