"""`ssdlab runs`: what has been measured so far."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from ssdlab.api.runs import open_runs, table_of
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.records import Run, encode_json, write_parquet
from ssdlab.report import RunList
from ssdlab.report.table import print_table
from ssdlab.target import RESULTS
from ssdlab.wording import plain

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Wanted:
    """Which runs: what is None is not asked for. Words are looked for within, whatever their case.

    `since` and `until` are moments: a run began at or after the one, and before the other.
    """

    experiment: str | None = None
    target: str | None = None
    verdict: str | None = None
    label: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def has(self, run: Run) -> bool:
        """Whether a run is one of them."""
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
        return self._in_time(manifest.started)

    def _in_time(self, started: str) -> bool:
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
        Path, typer.Argument(metavar="FOLDER", help="A results folder, as --out named it.")
    ] = RESULTS,
    *,
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
        typer.Option(metavar="DATE", help="ResumedRun on this day or later: 2026-11-21."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="ResumedRun on this day or earlier (UTC).")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write them as one table, a row a run.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON object on stdout.")
    ] = False,
) -> None:
    """List the runs of a results folder, oldest first, each with its verdict.

    Those of a comparison in turns and of a what-if are in folders of their own and listed too.
    """
    wanted = Wanted(
        experiment, target, verdict, label, _day("--since", since), _day("--until", until, 1)
    )
    found = open_runs(folder)
    kept = [run.record for run in found if wanted.has(run.record)]
    if wanted != Wanted() and not kept:
        raise UsageError(f"{folder} holds no run {_told(wanted)}; ask for less")
    if parquet is not None:
        _write(parquet, kept)
    if json:
        write_out(encode_json({"runs": [_as_json(run) for run in kept]}))
        return
    _print(kept, found.unreadable)


def _day(option: str, text: str | None, later: int = 0) -> datetime | None:
    """The start of a day, or so many days later; of a moment the moment itself."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{option} is {text!r}; it may be a date such as 2026-11-21") from error
    is_day = len(text.strip()) <= len("2026-11-21")
    return _utc(moment) + timedelta(days=later if is_day else 0)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _told(wanted: Wanted) -> str:
    """What was asked for, in words."""
    said = {
        "of": wanted.experiment,
        "on": wanted.target,
        "that says": wanted.verdict,
        "labelled": wanted.label,
    }
    words = [f"{how} {what!r}" for how, what in said.items() if what is not None]
    if wanted.since or wanted.until:
        words.append("of that time")
    return ", ".join(words)


def _as_json(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    more = {"started": manifest.started, "label": manifest.label, "outcome": manifest.outcome}
    return {**msgspec.to_builtins(run.result), **more}


def _write(path: Path, kept: list[Run]) -> None:
    try:
        write_parquet(path, table_of(kept))
    except OSError as error:
        raise UsageError(
            f"{path}: no table can be written there ({error.strerror}); give a path that you may "
            "write to"
        ) from error


def _print(kept: list[Run], unreadable: tuple[str, ...]) -> None:
    print_table(RunList(kept).table, Console())
    for reason in unreadable:
        Console(stderr=True).print(f"left out: {plain(reason)}", markup=False, soft_wrap=True)
