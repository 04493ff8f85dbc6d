"""`ssdlab sweep`: a grid or a sample of twins and loads, on all cores or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ssdlab.cli import exports, options
from ssdlab.cli.output import write_out
from ssdlab.errors import Interrupted
from ssdlab.units import format_size

if TYPE_CHECKING:
    from ssdlab.api.sweep import Sweep
    from ssdlab.sweep.spec import Spec, SweepRun


app = typer.Typer(add_completion=False)


@app.command(
    name="sweep",
    epilog="Example: ssdlab sweep examples/sweeps/spare.toml --html spare.html",
)
def run(
    spec: Annotated[
        Path,
        typer.Argument(metavar="SPEC.toml", help="The specification of the sweep: docs/sweep.md."),
    ],
    *,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes at a time (one for each core, fewer if memory is short)."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on this Dask cluster, such as tcp://HOST:8786."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs without executing them.")
    ] = False,
    html: exports.Html = None,
    markdown: exports.Markdown = None,
    csv: exports.Csv = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The dataset's folder, created or resumed (ssdlab-sweeps/NAME)."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Run many twins: a grid or a sample over profile, policy and load, with repeats and seeds.

    Each run fills a twin, overwrites it and reads it, and becomes one row of a Parquet dataset. The
    same command resumes a sweep that was stopped; a run whose worker is lost is retried once. The
    report has each parameter's share of the variance, and the Pareto-optimal points.
    """
    from ssdlab.sweep.spec import plan_runs, read_spec

    files = exports.Exports(html, markdown, csv)
    files.check(json=json)
    parsed, text = read_spec(spec)
    if dry_run:
        _print_runs(parsed, plan_runs(parsed), json=json)
        return 0
    from ssdlab.api.sweep import Where, execute_spec
    from ssdlab.cli.run_experiment import TerminalObserver
    from ssdlab.cli.sweep import print_sweep

    observer = TerminalObserver(options.OutputOptions(json=json, quiet=quiet))
    sweep, interrupted = execute_spec(parsed, text, Where(workers, dask), out, observer)
    print_sweep(sweep, files, json=json)
    if interrupted:
        ended = sweep.summary.done + len(sweep.summary.failed)
        observer.message(
            f"interrupted: {ended} of {sweep.summary.wanted} runs have ended; to run the rest, "
            "give the same command again"
        )
        return Interrupted.exit_status
    return 1 if sweep.summary.failed else 0


def _print_runs(spec: Spec, runs: list[SweepRun], *, json: bool) -> None:
    from ssdlab.records import encode_json
    from ssdlab.sweep.execute import memory_of

    if json:
        rows = [
            {
                **{name: getattr(run, name) for name in ("key", "point", "repeat", "values")},
                "seed": run.plan["seed"],
            }
            for run in runs
        ]
        write_out(encode_json({"sweep": spec.name, "runs": rows}))
        return
    lines = []
    for run in runs:
        values = ", ".join(f"{key}={_format(value)}" for key, value in run.values.items())
        lines.append(f"{run.point}.{run.repeat}  seed {run.plan['seed']}  {values}\n")
    memory = format_size(max(memory_of(run) for run in runs))
    write_out("".join(lines) + f"{len(runs)} runs, up to {memory} of memory each\n")


def _format(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_sweep(sweep: Sweep, files: exports.Exports, *, json: bool) -> None:
    """Prints the summary, or the JSON object; writes the files; a row of CSV is a run.

    Raises:
        UsageError: a file cannot be written.
    """
    from ssdlab.sweep.report import SweepPage

    document = sweep.as_json() if json else None
    rows = sweep.table().to_pylist()
    files.show(SweepPage(sweep.summary), [], rows, document, [str(sweep.folder)])
