"""`ssdlab runs`: lists the runs of a results folder."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.target import RESULTS

if TYPE_CHECKING:
    from ssdlab.records import Manifest, Run

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class RunFilter:
    """Selects runs; None matches any. Texts match case-insensitively anywhere in the field.

    `since` is the earliest start, inclusive; `until` the latest, exclusive.
    """

    experiment: str | None = None
    target: str | None = None
    verdict: str | None = None
    label: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, run: Run) -> bool:
        """Whether the run is selected."""
        manifest = run.manifest
        texts = (
            (self.target, manifest.target),
            (self.verdict, run.result.verdict),
            (self.label, manifest.label),
        )
        if self.experiment not in {None, manifest.experiment}:
            return False
        if any(word is not None and word.lower() not in text.lower() for word, text in texts):
            return False
        return self._is_in_period(manifest.started)

    def _is_in_period(self, started: str) -> bool:
        if self.since is None and self.until is None:
            return True
        try:
            moment = _utc(datetime.fromisoformat(started))
        except ValueError:
            return False
        return (self.since is None or moment >= self.since) and (
            self.until is None or moment < self.until
        )


@app.command(
    name="runs",
    epilog="Example: ssdlab runs ssdlab-runs --experiment aging --since 2026-11-01",
)
def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help=f"A results folder, as given to --out [{RESULTS}].",
            autocompletion=options.complete_run,
        ),
    ] = None,
    *,
    out: options.OutAsFolder = None,
    experiment: Annotated[
        str | None, typer.Option(help="Only runs of this experiment, such as aging.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Only targets that contain this.")] = None,
    verdict: Annotated[str | None, typer.Option(help="Only verdicts that contain this.")] = None,
    label: Annotated[
        str | None, typer.Option(help="Only labels that contain this (ssdlab run --label).")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Started on this day or later (UTC): 2026-11-21."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Started on this day or earlier (UTC).")
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a Parquet table, a row per run."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON object on stdout.")
    ] = False,
) -> None:
    """List the runs of a results folder, oldest first, each with its verdict.

    Runs in the folders of an interleaved comparison or of a what-if are listed too.
    """
    from ssdlab.api.run import Runs, open_runs
    from ssdlab.records import unfinished_runs

    folder = options.only_folder(folder, out) or RESULTS
    wanted = RunFilter(
        experiment, target, verdict, label, _day("--since", since), _day("--until", until, 1)
    )
    unfinished = unfinished_runs(folder) if wanted == RunFilter() else []
    try:
        all_runs = open_runs(folder)
    except UsageError:
        if not unfinished:
            raise
        all_runs = Runs((), ())
    selected = [run.record for run in all_runs if wanted.matches(run.record)]
    if wanted != RunFilter() and not selected:
        raise UsageError(f"{folder} holds no run {_describe(wanted)}; relax the filter")
    if parquet is not None:
        _write_parquet(parquet, selected)
    if json:
        _print_json(selected)
    else:
        _print(selected, all_runs.unreadable)
        _print_unfinished(unfinished)


def _print_unfinished(runs: list[tuple[Path, Manifest]]) -> None:
    from ssdlab.wording import plain

    for folder, manifest in runs:
        what = (
            f"{manifest.started[:16].replace('T', ' ')}  {manifest.experiment}  {manifest.target}"
        )
        typer.echo(f" {plain(what)}  killed, or still running")
        typer.echo(f"   to resume: ssdlab run resume {shlex.quote(str(folder))}")


def _day(option: str, text: str | None, later: int = 0) -> datetime | None:
    """The start of a date plus `later` days; a text with a time of day is taken as it is."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{option} is {text!r}; give a date such as 2026-11-21") from error
    is_day = len(text.strip()) <= len("2026-11-21")
    return _utc(moment) + timedelta(days=later if is_day else 0)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _describe(wanted: RunFilter) -> str:
    conditions = {
        "of": wanted.experiment,
        "on": wanted.target,
        "with verdict": wanted.verdict,
        "labelled": wanted.label,
    }
    words = [f"{name} {value!r}" for name, value in conditions.items() if value is not None]
    if wanted.since or wanted.until:
        words.append("of that time")
    return ", ".join(words)


def _print_json(runs: list[Run]) -> None:
    import msgspec

    from ssdlab.records import encode_json

    def row(run: Run) -> dict[str, Any]:
        manifest = run.manifest
        more = {"started": manifest.started, "label": manifest.label, "outcome": manifest.outcome}
        return {**msgspec.to_builtins(run.result), **more}

    write_out(encode_json({"runs": [row(run) for run in runs]}))


def _write_parquet(path: Path, runs: list[Run]) -> None:
    from ssdlab.api.run import runs_table
    from ssdlab.records import write_parquet

    try:
        write_parquet(path, runs_table(runs))
    except OSError as error:
        raise UsageError(
            f"{path}: the table cannot be written ({error.strerror}); give a path that you may "
            "write to"
        ) from error


def _print(runs: list[Run], unreadable: tuple[str, ...]) -> None:
    from rich.console import Console

    from ssdlab.report import RunList
    from ssdlab.report.table import print_table
    from ssdlab.wording import plain

    if runs:
        print_table(RunList(runs).table, Console())
    for reason in unreadable:
        Console(stderr=True).print(f"left out: {plain(reason)}", markup=False, soft_wrap=True)
