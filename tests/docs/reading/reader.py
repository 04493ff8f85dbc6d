"""A reader who types what a page shows: an empty folder, a shell, a Python, drives to test on."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pages.blocks import Block

HANGS_S = 600
"""A block that hangs ends here; no test looks at how long one took."""
CHECKOUT = Path(__file__).resolve().parents[3]
_OWN = ("README.md", "bench", "examples", "python", "tools")


@dataclass
class Reader:
    """What blocks before have left is there for the next: files, names in Python, what was printed.

    `drives` are what blocks call $DATA (a directory on a drive), $EXT4 (a mounted file system) and
    $LOOP (a block device): each is made when a block first names it.
    """

    folder: Path
    environment: dict[str, str]
    drives: dict[str, Callable[[], Path]]
    printed: str = ""
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    _groups: list[int] = field(default_factory=list)

    def leave(self) -> None:
        """Ends what blocks have left running: servers in the background."""
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def has(self, need: str) -> bool:
        """Whether a block that needs it can run: `root`, or a program."""
        if need == "root":
            return os.geteuid() == 0
        return shutil.which(need, path=self.environment["PATH"]) is not None

    def runs(self, block: Block) -> set[str]:
        """Runs a block and keeps what it printed; gives why it could not be had here, if so.

        Raises:
            AssertionError: it failed; with its place and its output.
        """
        script = block.marks.get("first", "") + "\n" + block.script
        try:
            self._make_drives(script)
        except pytest.skip.Exception as reason:
            return {str(reason)}
        self._open_checkout(script)
        if block.language == "python":
            self._interpret(block)
        else:
            self._type(block, script)
        return set()

    def _make_drives(self, script: str) -> None:
        for name, make in self.drives.items():
            if f"${name}" in script and name not in self.environment:
                self.environment[name] = str(make())

    def _open_checkout(self, script: str) -> None:
        """What of the checkout a block names is there, by links."""
        for name in _OWN:
            link = self.folder / name
            if f"{name}" in script and not link.exists():
                link.symlink_to(CHECKOUT / name)

    def _type(self, block: Block, script: str) -> None:
        shell = subprocess.Popen(
            ["bash", "-euc", script],
            cwd=self.folder,
            env=self.environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",  # without `file`, nbdinfo 1.14 prints random bytes as the content
        )
        self._groups.append(shell.pid)
        printed, _ = shell.communicate(timeout=HANGS_S)
        where = f"{block.file}:{block.line}: {shell.returncode}"
        assert shell.returncode == 0, f"{where}\n{printed}"
        self.printed += printed

    def _interpret(self, block: Block) -> None:
        code = compile("\n" * (block.line - 1) + block.script, str(block.file), "exec")
        printed = io.StringIO()
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
                exec(code, self.names)
        except Exception as error:
            where = f"{block.file}:{block.line}: {type(error).__name__}"
            raise AssertionError(f"{where}\n{traceback.format_exc()}") from error
        self.printed += printed.getvalue()
