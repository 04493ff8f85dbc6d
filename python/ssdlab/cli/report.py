"""`ssdlab report`: finished runs on the terminal, or as one self-contained HTML file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ssdlab.cli import exports, options
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError

if TYPE_CHECKING:
    from ssdlab.records import Run

app = typer.Typer(add_completion=False)


@app.command(name="report", epilog="Example: ssdlab report ssdlab-runs --html report.html")
def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN",
            help="Run folders, results folders, a sweep, or results of fio (JSON or logs).",
            autocompletion=options.complete_run,
        ),
    ] = None,
    *,
    out: options.OutAsFolder = None,
    html: exports.Html = None,
    markdown: exports.Markdown = None,
    csv: exports.Csv = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON object on stdout.")
    ] = False,
    fio: Annotated[
        bool, typer.Option("--fio", help="Print only a run's steps, as a fio job file.")
    ] = False,
) -> None:
    """Show finished runs: tables, curves, verdicts and warnings."""
    from ssdlab.report import as_fio
    from ssdlab.sweep.dataset import is_dataset

    runs = runs or ([] if out is None else [out])
    if not runs:
        raise UsageError("report needs a run; give a run folder, or a folder of them (ssdlab-runs)")
    files = exports.Exports(html, markdown, csv)
    files.check(json=json)
    sweeps = [path for path in runs if is_dataset(path)]
    if sweeps:
        if fio or len(runs) > 1:
            raise UsageError(f"{sweeps[0]} is a sweep; report it alone, without --fio")
        _report_sweep(sweeps[0], files, json=json)
        return
    records = [record for path in runs for record in _read(path)]
    if fio and (json or files.names or len(records) > 1):
        raise UsageError("--fio prints one run; give one RUN, and no other kind of output")
    written = files.write(records)
    if fio:
        write_out(as_fio(records[0]))
    elif json:
        write_out(_as_json(records))
    elif files.use_stdout:
        return
    elif written:
        typer.echo("\n".join(map(str, written)))
    else:
        _print(records)


def _read(path: Path) -> list[Run]:
    """The run in a folder or file, or all readable ones in a results folder and its checkups."""
    from ssdlab.experiments.stored_runs import is_fio_result, read_runs
    from ssdlab.records import find_runs, read_run, unfinished_runs

    if is_fio_result(path):
        return read_runs(path)
    folders = find_runs(path, in_checkups=True)
    if folders == [path]:
        return [read_run(path)]
    records, left_out = [], []
    for folder in folders:
        try:
            records.append(read_run(folder))
        except UsageError as error:
            left_out.append(error)
    if not records:
        raise left_out[0]
    for reason in left_out:
        typer.echo(f"left out: {reason}", err=True)
    for folder, _ in unfinished_runs(path):
        typer.echo(
            f"left out: {folder} was killed, or is still running; to resume it, ssdlab run resume "
            f"{shlex.quote(str(folder))}",
            err=True,
        )
    return records


def _report_sweep(folder: Path, files: exports.Exports, *, json: bool) -> None:
    from ssdlab.api.sweep import open_sweep
    from ssdlab.cli.sweep import print_sweep

    print_sweep(open_sweep(folder), files, json=json)


def _print(runs: list[Run]) -> None:
    from rich.console import Console

    from ssdlab.report import RunList, render
    from ssdlab.report.table import print_table

    console = Console()
    for run in runs:
        render(run, console)
    if len(runs) > 1:
        console.print()
        print_table(RunList(runs).table, console)


def _as_json(runs: list[Run]) -> str:
    import msgspec

    from ssdlab.records import encode_json

    if len(runs) == 1:
        return encode_json(runs[0].result)
    return encode_json({"runs": [msgspec.to_builtins(run.result) for run in runs]})
