"""`ssdlab trim`: discards free space, and shows for each layer what reached it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ssdlab.cli.output import write_out
from ssdlab.errors import TargetError
from ssdlab.target import full_name, is_twin
from ssdlab.units import format_size

if TYPE_CHECKING:
    from ssdlab.trim import TrimResult
    from ssdlab.view import Table

app = typer.Typer(add_completion=False)
_REACHED_SHARE = 0.5
"""If the drives receive less than this share of the reported bytes, TRIM does not work."""


@app.command(name="trim", epilog="Example: sudo ssdlab trim /home")
def trim(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A directory on the file system.")],
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="No second pass if ext4 skips space that it trimmed before."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the verdict.")] = False,
) -> int:
    """Discard the free space of a file system, as fstrim does, and show what reached the drive.

    ext4 skips space that it has trimmed since it was mounted. If that is most of the free space, a
    second pass trims it again. No data is touched. Exit status 1: discards do not reach the drive.
    """
    if is_twin(full_name(str(path))):
        raise TargetError(
            f"{path} is a twin, which has no file system: give a directory, or use "
            f"ssdlab run trim {path}"
        )
    if not path.exists():
        raise TargetError(f"{path} does not exist: give a directory on the file system")
    from ssdlab.records import encode_json
    from ssdlab.trim import trim as trim_now

    result = trim_now(path, force=not once)
    reaches = reaches_drive(result)
    if json:
        write_out(encode_json(_object(result, reaches=reaches)))
    else:
        _print(result, verdict(result, reaches=reaches), quiet=quiet)
    return int(reaches is False)


def reaches_drive(result: TrimResult) -> bool | None:
    """Whether discards reached the drives; None if that cannot be known.

    The drives may not count them, none may have been sent, or the file of a loop device may have
    had nothing to free, or be on a file system that discards at another time.
    """
    if result.refused or result.stops is not None:
        return False
    expected, reached = result.expected, result.reached
    if not sum(result.passes) or not expected or reached is None:
        return None
    if reached >= _REACHED_SHARE * expected:
        return True
    return None if result.loops and result.keeps_until_later else False


def verdict(result: TrimResult, *, reaches: bool | None) -> str:
    """The result in a sentence: bytes sent, and bytes that the drives received."""
    where = f"; {result.stops} stops it" if result.stops else ""
    if result.refused:
        return f"Nothing was discarded: {result.refused}{where}."
    if not sum(result.passes):
        return "The file system has nothing left to discard: it has trimmed all free space before."
    sent = format_size(sum(result.passes))
    if result.loops and not where:
        return _verdict_of_loop(result, sent, reaches=reaches)
    if reaches:
        reached = format_size(result.reached or 0)
        return f"The file system sent discards for {sent}; {reached} reached the drive."
    if reaches is False:
        reached = "an unknown amount" if result.reached is None else format_size(result.reached)
        return f"Discards do not reach the drive{where}: {sent} sent, {reached} received."
    return f"The file system sent discards for {sent}; the drive's driver does not count them."


def _verdict_of_loop(result: TrimResult, sent: str, *, reaches: bool | None) -> str:
    """What the loop devices freed of their files, and what the drives below received of it."""
    loops, drives = (
        ", ".join(row.device for row in rows) for rows in (result.loops, result.drives)
    )
    freed = "an unknown amount" if result.expected is None else format_size(result.expected)
    text = f"The file system sent discards for {sent}; {loops} freed {freed} of its backing file"
    if not drives:
        return f"{text}. No drive is known below that file."
    if result.reached is None:
        return f"{text}; the driver of {drives} does not count discards."
    text += f"; the drive {drives} received {format_size(result.reached)}"
    if reaches:
        return f"{text}."
    if not result.expected:
        return f"{text}. This does not show whether discards reach the drive."
    now = f"; to send them now, run sudo ssdlab trim {result.keeps}"
    if reaches is None:
        return f"{text} so far. {result.keeps} sends discards later{now}."
    why = f". {result.keeps} does not send them on{now}" if result.keeps else ""
    return f"Discards do not reach the drive. {text}{why}."


def _object(result: TrimResult, *, reaches: bool | None) -> dict[str, Any]:
    from importlib.metadata import version

    from ssdlab.records import Finding

    passes = " and ".join(map(str, result.passes)) or "no"
    reported = f"{result.fs_type} reported {passes} bytes"
    counted = "discards that the drives' drivers counted during the trim"
    findings = {
        "reaches": Finding(reaches, "", None, None, verdict(result, reaches=reaches)),
        "layer": Finding(
            result.stops, "", None, None, "the layer that declares that it does not pass discards"
        ),
        "asked_bytes": Finding(sum(result.passes), "bytes", None, None, reported),
        "reached_bytes": Finding(result.reached, "bytes", None, None, counted),
        "forced": Finding(
            result.forced, "", None, None, "whether a second pass repeated what ext4 had skipped"
        ),
    }
    return {
        "ssdlab": version("ssdlab"),
        "target": result.mount_point,
        "measures": [asdict(row) for row in result.layers],
        "findings": findings,
        "verdict": verdict(result, reaches=reaches),
        "warnings": result.warnings,
    }


def _print(result: TrimResult, verdict: str, *, quiet: bool) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from ssdlab.report.table import print_table
    from ssdlab.wording import plain

    console = Console()
    if not quiet:
        print_table(_layers(result), console)
        for number, size in enumerate(result.passes, 1):
            sizes = f"pass {number}: {format_size(size)} of {format_size(result.free)} free"
            why = " (again what ext4 had skipped)" if number == 2 else ""
            if size > result.free:
                why += "; it trims space that it keeps for itself, too"
            line = Text(f"{sizes}, as the file system reports{why}")
            console.print(Padding(line, (0, 0, 0, 1)))
        for warning in result.warnings:
            line = Text(f"! before the trim: {warning.code}: {plain(warning.sentence)}")
            console.print(Padding(line, (0, 0, 0, 1)))
    console.print(Padding(Text(f"=> {plain(verdict)}", "bold"), (0, 0, 0, 1)))


def _layers(result: TrimResult) -> Table:
    from ssdlab.view import Column, Table
    from ssdlab.wording import plain

    columns = (
        Column("Layer", numeric=False),
        Column("Device", numeric=False),
        Column("declares", numeric=False),
        Column("received"),
        Column("in use below", minor=True),
        Column("why", numeric=False),
    )
    rows = []
    for row in result.layers:
        received = "" if row.sent is None else format_size(row.sent)
        used = ""
        if row.used_before is not None and row.used_after is not None:
            used = f"{format_size(row.used_before)} -> {format_size(row.used_after)}"
        layer = f"({row.layer})" if row.below_file else row.layer
        cells = (layer, row.device, row.passes, received, used, row.why)
        rows.append(tuple(plain(cell) for cell in cells))
    return Table(columns, tuple(rows))
