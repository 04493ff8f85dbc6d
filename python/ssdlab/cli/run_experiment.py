"""Runs an experiment for a user at a terminal: progress, confirmation, results or JSON."""

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

_COLLECTED: ContextVar[list[Run] | None] = ContextVar("collected", default=None)


@contextmanager
def collect_runs() -> Iterator[list[Run]]:
    """Inside this context `ssdlab run` appends its runs to the list instead of printing results."""
    runs: list[Run] = []
    token = _COLLECTED.set(runs)
    try:
        yield runs
    finally:
        _COLLECTED.reset(token)


class TerminalObserver(RunObserver):
    """Prints messages and progress to stderr, and asks for confirmation on a terminal."""

    def __init__(self, output: OutputOptions) -> None:
        """`output` says whether to be quiet, and whether to confirm everything."""
        super().__init__()
        self._output = output
        self._console = Console(stderr=True)

    def message(self, sentence: str) -> None:
        """Prints a line to stderr, unless --quiet."""
        if not self._output.quiet:
            self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def confirm(self, sentence: str) -> bool | None:
        """True with --yes; else the user's answer; None without a terminal or with --json."""
        if self._output.yes:
            return True
        if sys.stdin.isatty() and sys.stderr.isatty() and not self._output.json:
            return typer.confirm(f"{sentence}. Continue?", err=True)
        return None

    def progress(self, title: str) -> AbstractContextManager[Listener]:
        """A progress bar on a terminal, else lines."""
        return progress_bar(self._console, title, quiet=self._output.quiet)


def run_on_targets(
    parameters: Parameters,
    targets: Sequence[Target],
    consent: Consent,
    output: OutputOptions,
    seed: int,
) -> int:
    """Runs the experiment on one target after the other; returns the exit status.

    Raises:
        SsdlabError: the error that ended a run; the run's records up to then are stored.
    """
    requests = [
        make_request(experiment_of(parameters), parameters, target, consent, seed)
        for target in targets
    ]
    output.exports.check(json=output.json)
    runs: list[Run] = []
    for request in requests:
        runs.append(_run_one(request, output))
        if runs[-1].manifest.outcome == "interrupted":
            break
    if (collected := _COLLECTED.get()) is not None:
        collected += runs
    elif output.json:
        _print_json(runs, as_list=len(targets) > 1)
    _write_exports(runs, output)
    return _status(runs)


def resume_run(folder: Path, consent: Consent, output: OutputOptions) -> int:
    """Resumes the run in a folder; returns the exit status.

    Raises:
        SsdlabError: as `run_on_targets`.
    """
    request = resume_request(folder, consent, EXPERIMENTS)
    output.exports.check(json=output.json)
    run = _run_one(request, output)
    if output.json:
        _print_json([run], as_list=False)
    _write_exports([run], output)
    return _status([run])


def _write_exports(runs: list[Run], output: OutputOptions) -> None:
    """Writes the files of --html, --markdown and --csv, and names them."""
    for path in output.exports.write(runs):
        if not output.json and not output.exports.use_stdout:
            typer.echo(path)


def _status(runs: list[Run]) -> int:
    return Interrupted.exit_status if runs[-1].manifest.outcome == "interrupted" else 0


def _run_one(request: RunRequest, output: OutputOptions) -> Run:
    observer = TerminalObserver(output)
    run = perform(request, SaveOptions(output.out, options.LABEL.get()), observer)
    if not output.json and not output.exports.use_stdout and _COLLECTED.get() is None:
        render(run, Console())
    if run.manifest.outcome == "interrupted":
        observer.message(f"to resume: ssdlab run resume {run.folder}")
    return run


def _print_json(runs: list[Run], *, as_list: bool) -> None:
    if not as_list:
        write_out(encode_json(runs[0].result))
        return
    results: dict[str, Any] = {
        "ssdlab": runs[0].result.ssdlab,
        "runs": [msgspec.to_builtins(run.result) for run in runs],
    }
    write_out(encode_json(results))
