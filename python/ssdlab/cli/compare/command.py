"""`ssdlab compare`: faster, slower, or no difference shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ssdlab.cli import options
from ssdlab.cli.run.group import ConsentCommand
from ssdlab.errors import Interrupted, UsageError
from ssdlab.target import NO_CONSENT, RESULTS
from ssdlab.units import parse_duration, parse_size

if TYPE_CHECKING:
    from ssdlab.experiments.workload import measure as workload

app = typer.Typer(add_completion=False)
DEPTH_MOST: Final = 1024
_KINDS: Final = {"random": "rand", "sequential": ""}
_SHORT: Final = ("op", "pattern", "block_size", "depth", "turn", "size")
_MEASURING: Final = (*_SHORT, "fio", "number", "capacity", "destroy_data", "out", "seed")
"""Parameters that say how to measure: of no use for runs that are there."""


@dataclass(frozen=True)
class Short:
    """A short job in the words of the command line."""

    op: str
    pattern: str
    block_size: str
    depth: int
    turn: str
    size: str

    def text(self) -> str:
        """The same as a fio job file.

        Raises:
            UsageError: a word or a number that it may not be.
        """
        if self.op not in {"read", "write"}:
            raise UsageError(f"--op is {self.op!r}; it may be read or write")
        if self.pattern not in _KINDS:
            raise UsageError(f"--pattern is {self.pattern!r}; it may be random or sequential")
        turn_us = round(parse_duration(self.turn) * 1e6)
        block, size = parse_size(self.block_size), parse_size(self.size)
        if not turn_us or not block or size < block:
            raise UsageError(
                f"--turn {self.turn}, --block-size {self.block_size} and --size {self.size} may "
                "be above 0, and a region holds a block"
            )
        if not 1 <= self.depth <= DEPTH_MOST:
            raise UsageError(f"--depth is {self.depth}; it may be 1 to {DEPTH_MOST}")
        return (
            f"[{self.pattern} {self.op}]\nrw={_KINDS[self.pattern]}{self.op}\nbs={block}\n"
            f"size={size}\niodepth={self.depth}\nruntime={turn_us}us\ntime_based\n"
            "ioengine=io_uring\ndirect=1\nnorandommap\nrandrepeat=0\n"
        )


@app.command(
    name="compare",
    cls=ConsentCommand,
    epilog="Example: ssdlab compare before,before-2 after,after-2 --html compare.html; "
    "ssdlab compare --interleave /mnt/a /mnt/b --block-size 4KiB --depth 8",
)
def run(
    context: typer.Context,
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...",
            help="Run folders, several of one side with commas between, or results folders "
            "with repeats in them. With --interleave: targets, as `ssdlab run` has them.",
        ),
    ],
    *,
    settings: Annotated[
        bool, typer.Option("--settings", help="Parameters may differ: they are what is compared.")
    ] = False,
    interleave: Annotated[
        bool, typer.Option("--interleave", help="Measure the targets now, in turns.")
    ] = False,
    fio: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Interleaved: the jobs of a turn; given several times, each is a setting.",
        ),
    ] = None,
    op: Annotated[str, typer.Option(help="Interleaved, without --fio: read or write.")] = "read",
    pattern: Annotated[str, typer.Option(help="random or sequential.")] = "random",
    block_size: Annotated[str, typer.Option(help="Length of a request.")] = "4KiB",
    depth: Annotated[int, typer.Option(help="Requests at a time.")] = 1,
    turn: Annotated[str, typer.Option(help="How long a turn lasts.")] = "250ms",
    size: Annotated[str, typer.Option(help="Region that is written first, and used.")] = "64MiB",
    number: Annotated[int, typer.Option("--turns", help="Turns of each side.")] = 20,
    capacity: options.Capacity = None,
    html: Annotated[Path | None, typer.Option(help="Write ONE HTML file about it.")] = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Compare runs, drives or settings: faster, slower, or no difference shown.

    Each side is held against the first, number by number: ratio, 95 % interval, verdict. What
    differs in the method is named; another experiment or other parameters are refused.
    With --interleave the targets are measured now, in turns, so that whatever else goes on hits
    all alike; one target with several --fio compares settings.
    """
    from ssdlab.api.comparison import compare
    from ssdlab.api.target import Target
    from ssdlab.api.turns import Given, compared_in_turns, measure_in_turns, sides_of
    from ssdlab.cli.compare.output import Telling, tell
    from ssdlab.cli.run_experiment import TerminalObserver
    from ssdlab.runner.run import SaveOptions

    telling = Telling(json, html)
    if not interleave:
        _refuse_unused(context, _MEASURING, "belongs to --interleave: it says how to measure")
        tell(compare(*map(_side, given), settings=settings), telling)
        return 0
    if fio:
        _refuse_unused(context, _SHORT, "is given beside --fio, which says it; give one of them")
    short = Short(op, pattern, block_size, depth, turn, size)
    plans = _settings(fio or [], short, seed)
    parsed = options.parse_targets(given, capacity)
    asked = sides_of(
        [Given(Target(each, destroy_data), *plan) for each in parsed for plan in plans], number
    )
    runs = measure_in_turns(
        asked, SaveOptions(out), TerminalObserver(options.OutputOptions(out, json, quiet))
    )
    tell(compared_in_turns(asked, runs), telling)
    interrupted = any(each.manifest.outcome == "interrupted" for each in runs)
    return Interrupted.exit_status if interrupted else 0


def _refuse_unused(context: typer.Context, names: Sequence[str], why: str) -> None:
    """Refuses an option that would be without effect.

    Raises:
        UsageError: one is given.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"{parameter.opts[0]} {why}")


def _side(text: str) -> list[Path]:
    """The folders of a side: one, or several with commas between."""
    return [Path(word) for word in ([text] if Path(text).exists() else text.split(","))]


def _settings(files: Sequence[Path], short: Short, seed: int) -> list[tuple[str, workload.Plan]]:
    """A setting for each job file, by the file's name if there are several; or the short job."""
    from ssdlab.experiments.workload import measure as workload

    if not files:
        return [("", workload.plan_of(short.text(), "", seed=seed))]
    names = [file.stem if len(files) > 1 else "" for file in files]
    return [
        (name, workload.plan_of_file(file, seed=seed))
        for name, file in zip(names, files, strict=True)
    ]
