"""Asks targets a question for people at a terminal: progress, consent, results or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.console import Console

from ssdlab.cli import options
from ssdlab.cli.bar import progress_bar
from ssdlab.cli.options import OutputOptions
from ssdlab.cli.output import write_out
from ssdlab.errors import Interrupted
from ssdlab.experiments.registry import EXPERIMENTS, experiment_of
from ssdlab.records import Run, encode_json
from ssdlab.report import render
from ssdlab.runner.parameters import Parameters
from ssdlab.runner.progress import Listener
from ssdlab.runner.run import (
    RunObserver,
    RunRequest,
    SaveOptions,
    make_request,
    perform,
    resume_request,
)
from ssdlab.target import Consent, Target

_GATHERED: ContextVar[list[Run] | None] = ContextVar("gathered", default=None)


@contextmanager
def gathered() -> Iterator[list[Run]]:
    """Within it the commands of `ssdlab run` print no results: their runs come to this list."""
    runs: list[Run] = []
    token = _GATHERED.set(runs)
    try:
        yield runs
    finally:
        _GATHERED.reset(token)


class TerminalObserver(RunObserver):
    """People at a terminal: what a run costs and a bar go to stderr, and they can be asked."""

    def __init__(self, wishes: OutputOptions) -> None:
        """With their wishes."""
        super().__init__()
        self._wishes = wishes
        self._console = Console(stderr=True)

    def tell(self, sentence: str) -> None:
        """A line on stderr."""
        if not self._wishes.quiet:
            self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def agrees(self, sentence: str) -> bool | None:
        """Yes where --yes says so; otherwise asked, where there is a terminal to ask at."""
        if self._wishes.yes:
            return True
        if sys.stdin.isatty() and sys.stderr.isatty() and not self._wishes.json:
            return typer.confirm(f"{sentence}. Go on?", err=True)
        return None

    def watching(self, title: str) -> AbstractContextManager[Listener]:
        """A bar, or lines."""
        return progress_bar(self._console, title, quiet=self._wishes.quiet)


def conduct(
    parameters: Parameters,
    targets: Sequence[Target],
    consent: Consent,
    wishes: OutputOptions,
    seed: int,
) -> int:
    """Asks each target the question; returns the exit status.

    Raises:
        SsdlabError: what ends the work; what was measured until then is stored.
    """
    tasks = [
        make_request(experiment_of(parameters), parameters, target, consent, seed)
        for target in targets
    ]
    runs: list[Run] = []
    for task in tasks:
        runs.append(_run_one(task, wishes))
        if runs[-1].manifest.outcome == "interrupted":
            break
    if (wanted := _GATHERED.get()) is not None:
        wanted += runs
    elif wishes.json:
        _print_json(runs, several=len(targets) > 1)
    return _status(runs)


def go_on(folder: Path, consent: Consent, wishes: OutputOptions) -> int:
    """Goes on with a run in its folder; returns the exit status.

    Raises:
        SsdlabError: as `conduct`.
    """
    run = _run_one(resume_request(folder, consent, EXPERIMENTS), wishes)
    if wishes.json:
        _print_json([run], several=False)
    return _status([run])


def _status(runs: list[Run]) -> int:
    return Interrupted.exit_status if runs[-1].manifest.outcome == "interrupted" else 0


def _run_one(task: RunRequest, wishes: OutputOptions) -> Run:
    audience = TerminalObserver(wishes)
    run = perform(task, SaveOptions(wishes.out, options.LABEL.get()), audience)
    if not wishes.json and _GATHERED.get() is None:
        render(run, Console())
    if run.manifest.outcome == "interrupted":
        audience.tell(f"to go on: ssdlab run resume {run.folder}")
    return run


def _print_json(runs: list[Run], *, several: bool) -> None:
    if not several:
        write_out(encode_json(runs[0].result))
        return
    results: dict[str, Any] = {
        "ssdlab": runs[0].result.ssdlab,
        "runs": [msgspec.to_builtins(run.result) for run in runs],
    }
    write_out(encode_json(results))
