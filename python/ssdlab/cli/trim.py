"""`ssdlab trim`: discard what is free, and tell what reached the drive, layer by layer."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ssdlab.cli.output import write_out
from ssdlab.errors import TargetError
from ssdlab.units import format_size

if TYPE_CHECKING:
    from ssdlab.trim.trim import Trimmed

app = typer.Typer(add_completion=False)
_MOST = 0.5
"""Of what the file system says; less at the drives, and it did not get through."""


@app.command(name="trim", epilog="Example: sudo ssdlab trim /home")
def trim(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A directory on the file system.")],
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="No second pass, although ext4 left out what it remembers."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the verdict.")] = False,
) -> int:
    """Discard all that is free in a file system (as fstrim), and say what reached the drive.

    ext4 leaves out what it trimmed before in this mount; where that is most of what is free, it is
    made to forget and asked again. No data is touched. Exit status 1: it does not get through.
    """
    if not path.exists():
        raise TargetError(f"{path} does not exist: give a directory on the file system")
    from ssdlab.records import encode_json
    from ssdlab.trim.trim import trim as trim_now

    done = trim_now(path, force=not once)
    reaches = _reaches(done)
    if json:
        write_out(encode_json(_object(done, reaches=reaches)))
    else:
        _print(done, _verdict(done, reaches=reaches), quiet=quiet)
    return int(reaches is False)


def _reaches(done: Trimmed) -> bool | None:
    """Whether the drives were sent it; None: they do not count, or there was nothing to send."""
    if done.refused or done.stops is not None:
        return False
    asked = sum(done.passes)
    if not asked or done.reached is None:
        return None
    return done.reached >= _MOST * asked


def _verdict(done: Trimmed, *, reaches: bool | None) -> str:
    where = f"; {done.stops} stops it" if done.stops else ""
    if done.refused:
        return f"Nothing was discarded: {done.refused}{where}."
    asked = format_size(sum(done.passes))
    if reaches:
        came = format_size(done.reached or 0)
        return f"{asked} of discards were asked for, and {came} reached the drive."
    if reaches is False:
        got = "not known" if done.reached is None else format_size(done.reached)
        return f"A discard does not get through{where}: {asked} asked for, {got} at the drive."
    if not sum(done.passes):
        return "Nothing was left to discard, by the file system's own memory."
    return f"{asked} of discards were sent; the drive's driver does not count what came."


def _object(done: Trimmed, *, reaches: bool | None) -> dict[str, Any]:
    from importlib.metadata import version

    from ssdlab.records import Finding

    said = f"{done.fs_type} said {' and '.join(map(str, done.passes)) or 'nothing'} bytes"
    counted = "discards that the drives' drivers counted meanwhile"
    findings = {
        "reaches": Finding(reaches, "", None, None, _verdict(done, reaches=reaches)),
        "layer": Finding(done.stops, "", None, None, "the layer that declares it passes none"),
        "asked_bytes": Finding(sum(done.passes), "bytes", None, None, said),
        "reached_bytes": Finding(done.reached, "bytes", None, None, counted),
        "forced": Finding(
            done.forced, "", None, None, "a second pass after ext4 was made to forget"
        ),
    }
    return {
        "ssdlab": version("ssdlab"),
        "target": done.mount_point,
        "measures": [asdict(row) for row in done.layers],
        "findings": findings,
        "verdict": _verdict(done, reaches=reaches),
        "warnings": [],
    }


def _print(done: Trimmed, verdict: str, *, quiet: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ssdlab.wording import plain

    console = Console()
    if not quiet:
        lines = Table(box=None, padding=(0, 1), header_style="dim")
        for heading in ("Layer", "Device", "declares", "got", "in use below", "why"):
            lines.add_column(heading, overflow="fold", no_wrap=heading not in {"why", "Device"})
        for row in done.layers:
            got = "" if row.sent is None else format_size(row.sent)
            used = ""
            if row.used_before is not None and row.used_after is not None:
                used = f"{format_size(row.used_before)} -> {format_size(row.used_after)}"
            layer = f"({row.layer})" if row.below_file else row.layer
            cells = (layer, row.device, row.passes, got, used, row.why)
            lines.add_row(*(Text(plain(cell)) for cell in cells))
        console.print(lines)
        for number, size in enumerate(done.passes, 1):
            words = f"pass {number}: {format_size(size)} of {format_size(done.free)} free"
            why = " (after ext4 was made to forget)" if number == 2 else ""
            console.print(f" {words}, by the file system's own count{why}", highlight=False)
    console.print(Text(f" => {plain(verdict)}", "bold"))
