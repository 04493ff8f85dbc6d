"""Serves a small twin with the installed program, and runs cuts and clients on it."""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from director import CutOptions, Target, run, verdict
from history import Twin
from nvme_host import connect_line
from rig import PATIENCE_S, TWIN, Served, executable, wait_for


@dataclass(frozen=True)
class Run:
    """How the twin is served, and the options of the cuts."""

    options: CutOptions
    twin: Twin = Twin.VOLATILE
    pace: str = "none"
    in_file: bool = False
    program: str = field(default_factory=executable)
    """The `ssdlab` that serves."""


@dataclass(frozen=True)
class Outcome:
    """The tally, one line for each violation, and the standard error of the server."""

    tally: dict[str, Any]
    broken_rules: list[str]
    messages: str


def run_served(folder: Path, settings: Run) -> Outcome:
    """Starts the server, makes all cuts, stops the server."""
    began = time.monotonic()
    socket, messages = folder / "nbd", folder / "messages"
    with (
        messages.open("w") as stderr,
        subprocess.Popen(
            [
                settings.program,
                "serve",
                str(_profile(folder, settings.twin)),
                *_words(folder, settings),
            ],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            served = Served(socket, process, messages)
            wait_for(lambda: process.poll() is not None or _listens(messages), messages)
            assert _listens(messages), messages.read_text()
            target = Target(socket, f"{socket}.control", connect_line(served), settings.twin)
            result = run(target, settings.options)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=PATIENCE_S)
    log = messages.read_text()
    tally = {
        "pace": settings.pace,
        "data": "file" if settings.in_file else "memory",
        "seed": settings.options.seed,
        "clients": settings.options.clients,
        "seconds": round(time.monotonic() - began, 1),
        "server_failed": int(process.returncode != 0 or "panicked" in log),
        **verdict(result, settings.twin),
    }
    return Outcome(tally, result.broken_rules, log)


def _profile(folder: Path, twin: Twin) -> Path:
    profile = folder / "twin.toml"
    protected, honest = twin is Twin.PROTECTED, twin is not Twin.LYING
    # A long program time keeps writes volatile.
    text = TWIN.format(
        capacity="256 MiB",
        program="5 ms",
        protected=str(protected).lower(),
        honest=str(honest).lower(),
    )
    profile.write_text(text)
    return profile


def _words(folder: Path, settings: Run) -> list[str]:
    words = ["--unix", str(folder / "nbd"), "--nvme-tcp", "127.0.0.1:0", "--pace", settings.pace]
    words += ["--seed", str(settings.options.seed)]
    if settings.in_file:
        words += ["--data", str(folder / "content")]
    return words


def _listens(messages: Path) -> bool:
    return "losetup" in messages.read_text()
