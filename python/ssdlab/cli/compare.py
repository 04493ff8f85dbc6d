"""`ssdlab compare`: finished runs, or targets measured in turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ssdlab.cli import exports, options
from ssdlab.cli.run import ConsentCommand
from ssdlab.errors import Interrupted, UsageError
from ssdlab.target import NO_CONSENT, RESULTS
from ssdlab.units import parse_duration, parse_size

if TYPE_CHECKING:
    from ssdlab.api.comparison import Comparison
    from ssdlab.experiments.workload import measure as workload
    from ssdlab.target import Target as AnyTarget

app = typer.Typer(add_completion=False)
DEPTH_MAX: Final = 1024
_FIO_PREFIXES: Final = {"random": "rand", "sequential": ""}
_JOB_OPTIONS: Final = ("op", "pattern", "block_size", "depth", "turn", "size")
_MEASURING_OPTIONS: Final = (
    *_JOB_OPTIONS, "fio", "number", "capacity", "destroy_data", "out", "seed",
)  # fmt: skip


@dataclass(frozen=True)
class ShortJob:
    """The job of a turn, as given by options instead of a fio file."""

    op: str
    pattern: str
    block_size: str
    depth: int
    turn: str
    size: str

    def to_fio(self) -> str:
        """The text of a fio job file.

        Raises:
            UsageError: an invalid value.
        """
        if self.op not in {"read", "write"}:
            raise UsageError(f"--op is {self.op!r}; give read or write")
        if self.pattern not in _FIO_PREFIXES:
            raise UsageError(f"--pattern is {self.pattern!r}; give random or sequential")
        turn_us = round(parse_duration(self.turn) * 1e6)
        block, size = parse_size(self.block_size), parse_size(self.size)
        if not turn_us or not block or size < block:
            raise UsageError(
                f"--turn {self.turn}, --block-size {self.block_size} and --size {self.size} must "
                "be above 0, and --size at least one block"
            )
        if not 1 <= self.depth <= DEPTH_MAX:
            raise UsageError(f"--depth is {self.depth}; give 1 to {DEPTH_MAX}")
        return (
            f"[{self.pattern} {self.op}]\nrw={_FIO_PREFIXES[self.pattern]}{self.op}\nbs={block}\n"
            f"size={size}\niodepth={self.depth}\nruntime={turn_us}us\ntime_based\n"
            "ioengine=io_uring\ndirect=1\nnorandommap\nrandrepeat=0\n"
        )


def complete_side(incomplete: str) -> list[str]:
    """Run folders, after a comma too, and twins."""
    before, comma, last = incomplete.rpartition(",")
    runs = [before + comma + run for run in options.complete_run(last)]
    return [*runs, *options.complete_twin(incomplete)]


@app.command(
    name="compare",
    cls=ConsentCommand,
    epilog="Example: ssdlab compare before,before-2 after,after-2 --html compare.html; "
    "ssdlab compare --interleave /mnt/a /mnt/b --block-size 4KiB --depth 8",
)
def run(
    context: typer.Context,
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="A B",
            help="Run folders, results folders of repeats, or JSON results of fio; separate "
            "several of one side by commas. With --interleave: targets, as for `ssdlab run`.",
            autocompletion=complete_side,
        ),
    ],
    *,
    settings: Annotated[
        bool, typer.Option("--settings", help="Allow parameters to differ, to compare settings.")
    ] = False,
    interleave: Annotated[
        bool, typer.Option("--interleave", help="Measure the targets now, in turns.")
    ] = False,
    fio: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="With --interleave: jobs of a turn; may be repeated."),
    ] = None,
    op: Annotated[str, typer.Option(help="With --interleave: read or write.")] = "read",
    pattern: Annotated[str, typer.Option(help="random or sequential.")] = "random",
    block_size: Annotated[str, typer.Option(help="Size of a request.")] = "4KiB",
    depth: Annotated[int, typer.Option(help="Queue depth.")] = 1,
    turn: Annotated[str, typer.Option(help="Duration of a turn.")] = "250ms",
    size: Annotated[str, typer.Option(help="Region to write first and measure in.")] = "64MiB",
    number: Annotated[int, typer.Option("--turns", help="Turns per side.")] = 20,
    capacity: options.Capacity = None,
    html: exports.Html = None,
    markdown: exports.Markdown = None,
    csv: exports.Csv = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Compare runs, drives or settings: faster, slower, or no difference shown.

    Each side is compared with the first, number by number: ratio, 95 % interval, verdict.
    Differences in the method are listed; different experiments or parameters are refused. With
    --interleave the targets are measured now, in turns, so that disturbances affect all equally;
    one target with several --fio compares settings.
    """
    from ssdlab.api.comparison import compare
    from ssdlab.api.target import Target
    from ssdlab.api.turns import SideOptions, compare_sides, measure_in_turns, plan_sides
    from ssdlab.cli.run_experiment import TerminalObserver
    from ssdlab.runner.run import SaveOptions

    files = exports.Exports(html, markdown, csv)
    files.check(json=json)
    if not interleave:
        _refuse_options(context, _MEASURING_OPTIONS, "needs --interleave")
        _print(compare(*map(_folders, sides), settings=settings), files, json=json)
        return 0
    if fio:
        _refuse_options(context, _JOB_OPTIONS, "cannot be used with --fio")
    job = ShortJob(op, pattern, block_size, depth, turn, size).to_fio()
    targets = [Target(target, destroy_data) for target in options.parse_targets(sides, capacity)]
    named = [(t, plan) for t in targets for plan in _job_plans(fio or [], job, t.parsed, seed)]
    plans = plan_sides([SideOptions(target, *plan) for target, plan in named], number)
    observer = TerminalObserver(options.OutputOptions(out, json, quiet))
    runs = measure_in_turns(plans, SaveOptions(out), observer)
    _print(compare_sides(plans, runs), files, json=json)
    was_interrupted = any(run.manifest.outcome == "interrupted" for run in runs)
    return Interrupted.exit_status if was_interrupted else 0


def _print(comparison: Comparison, files: exports.Exports, *, json: bool) -> None:
    """Write the files, then print JSON, or the report and the paths of the files."""
    from ssdlab.comparison.report import ComparisonReport

    page = ComparisonReport(comparison.found)
    rows = comparison.table().to_pylist()
    files.show(page, page.runs, rows, comparison.as_json() if json else None)


def _refuse_options(context: typer.Context, names: Sequence[str], why: str) -> None:
    """Refuse options that would have no effect.

    Raises:
        UsageError: one of them was given.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"{parameter.opts[0]} {why}")


def _folders(text: str) -> list[Path]:
    return [Path(word) for word in ([text] if Path(text).exists() else text.split(","))]


def _job_plans(
    files: Sequence[Path], job: str, target: AnyTarget, seed: int
) -> list[tuple[str, workload.Plan]]:
    """Name ("" for a single file) and jobs of each file; without files, `job`."""
    from ssdlab.experiments.workload import measure as workload

    if not files:
        return [("", workload.plan_of(job, "", target, seed=seed))]
    names = [file.stem if len(files) > 1 else "" for file in files]
    return [
        (name, workload.plan_of_file(file, target, seed=seed))
        for name, file in zip(names, files, strict=True)
    ]
