"""`ssdlab sweep`: a grid or a sample of twins under loads, on all cores or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.errors import Interrupted
from ssdlab.units import format_size

if TYPE_CHECKING:
    from ssdlab.sweep.design import Order
    from ssdlab.sweep.spec import Spec

app = typer.Typer(add_completion=False)


@app.command(
    name="sweep",
    epilog="Example: ssdlab sweep examples/sweeps/spare.toml --html spare.html",
)
def run(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC.toml", help="What varies: see docs/sweep.md.")
    ],
    *,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes at a time (one a core, as far as memory goes)."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on this Dask cluster, such as tcp://HOST:8786."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs, and do none.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write ONE HTML file about it.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The dataset's folder; it is gone on with (ssdlab-sweeps/NAME)."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Run many twins: a grid or a sample over profile, policy and load, with repeats and seeds.

    Each run fills a twin, writes over it, reads it; a row each in one Parquet dataset. A sweep that
    was stopped goes on where it was; a run whose worker is lost is tried once more. The report says
    which parameter decides what, and which points none beats.
    """
    from ssdlab.api.sweep import Where, conduct
    from ssdlab.cli.run_experiment import TerminalObserver
    from ssdlab.cli.sweep.output import tell
    from ssdlab.sweep.design import orders
    from ssdlab.sweep.spec import read

    given = read(spec)
    if dry_run:
        _list(given[0], orders(given[0]), json=json)
        return 0
    audience = TerminalObserver(options.OutputOptions(json=json, quiet=quiet))
    sweep, stopped = conduct(given, Where(workers, dask), out, audience)
    tell(sweep, json=json, html=html)
    if stopped:
        return Interrupted.exit_status
    return 1 if sweep.summary.failed else 0


def _list(spec: Spec, found: list[Order], *, json: bool) -> None:
    """The runs of a spec."""
    from ssdlab.records import encode_json
    from ssdlab.sweep.work import memory_of

    if json:
        rows = [
            {
                **{name: getattr(order, name) for name in ("key", "point", "repeat", "values")},
                "seed": order.plan["seed"],
            }
            for order in found
        ]
        write_out(encode_json({"sweep": spec.name, "runs": rows}))
        return
    lines = []
    for order in found:
        values = ", ".join(f"{key}={_digits(value)}" for key, value in order.values.items())
        lines.append(f"{order.point}.{order.repeat}  seed {order.plan['seed']}  {values}\n")
    memory = format_size(max(memory_of(order) for order in found))
    write_out("".join(lines) + f"{len(found)} runs, up to {memory} of memory each\n")


def _digits(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
