"""`ssdlab provision`: a drive's spare, what more would bring, how to leave it; changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ssdlab.analysis.spare import SECTOR
from ssdlab.cli.options import size_of
from ssdlab.cli.output import write_out
from ssdlab.errors import TargetError, UsageError
from ssdlab.provision.plan import WANTED, Gain, Subject, area_of, gains, of_device, of_twin
from ssdlab.provision.steps import Drive, Way, ways
from ssdlab.records import Finding, encode_json
from ssdlab.storage_stack.blockdev import device_at, is_block_device
from ssdlab.target import is_twin, parse_profile
from ssdlab.units import format_duration, format_size
from ssdlab.wording import plain

app = typer.Typer(add_completion=False)
_CHOSEN: Final = 0.27
"""Of all flash: what the plan's sizes are for, in the middle of what is recommended."""


@app.command(name="provision", epilog="Example: ssdlab provision twin:samsung-840-pro")
def provision(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[DEVICE|twin:NAME]", help="A whole drive, or a twin by its name."),
    ] = None,
    *,
    visible: Annotated[
        str | None, typer.Option(help="Without a target: what the drive shows, as 128GB.")
    ] = None,
    flash: Annotated[str | None, typer.Option(help="All flash in it, as 129GiB.")] = None,
    twin: Annotated[
        str | None, typer.Option(metavar="NAME", help="Simulate on this twin; none: not at all.")
    ] = None,
    spare: Annotated[
        float, typer.Option(help="Share of all flash that the plan is for, in percent.")
    ] = 100 * _CHOSEN,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Say a drive's spare by both definitions, what more takes and brings, and how to leave it.

    What it brings is simulated on a twin. Nothing is changed: it prints a plan with its order and
    its dangers.
    """
    subject = _subject(target, (size_of(visible), size_of(flash)), twin)
    share = _share(spare, subject)
    found = [] if twin == "none" else list(gains(subject, WANTED, _listener(quiet=quiet or json)))
    node = (subject.node, subject.transport, subject.sector)
    area = subject.area
    plan = ways(Drive(*node, visible=area.visible, usable=area.usable_for(share)))
    if json:
        write_out(encode_json(_object(subject, found, plan, share)))
    else:
        _print(subject, found, plan, share)


def _subject(target: str | None, sizes: tuple[int | None, int | None], twin: str | None) -> Subject:
    visible, flash = sizes
    if target is None:
        if visible is None or flash is None:
            raise UsageError("give a drive, twin:NAME, or both --visible and --flash, as 128GB")
        area = area_of(flash, visible)
        known = None if twin == "none" else twin
        return Subject("given", "not told", "unknown", "/dev/NAME", SECTOR, area, "as given", known)
    if visible is not None:
        raise UsageError("--visible goes without a target: a drive says itself what it shows")
    if is_twin(target):
        return of_twin(parse_profile(target), flash)
    path = Path(target)
    if not is_block_device(path):
        raise TargetError(
            f"{target} is no block device: give a drive, as /dev/nvme0n1, or twin:NAME"
        )
    return of_device(device_at(path), flash, None if twin == "none" else twin)


def _share(percent: float, subject: Subject) -> float:
    least = 100 * subject.area.spare
    if not least <= percent <= 90:
        raise UsageError(
            f"--spare is {percent:g} percent; it may be from {least:.4g}, what the drive hides "
            "itself, to 90"
        )
    return percent / 100


def _listener(*, quiet: bool) -> Any:
    console = Console(stderr=True)
    if quiet:
        return None
    return lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)


def _object(
    subject: Subject, found: Sequence[Gain], plan: Sequence[Way], share: float
) -> dict[str, Any]:
    area = subject.area
    said = f"{area.flash} bytes of flash ({subject.source}), {area.visible} visible"
    usable = f"so that {share:.4g} of all flash is spare"
    findings = {
        "spare": Finding(area.spare, "", None, None, f"hidden / all flash: {said}"),
        "overprovisioning": Finding(
            area.overprovisioning, "", None, None, f"hidden / visible: {said}"
        ),
        "usable_bytes": Finding(area.usable_for(share), "bytes", None, None, usable),
    }
    if len(found) > 1:
        times = found[-1].writes_per_s / found[0].writes_per_s
        why = f"on a twin, {found[-1].spare:.1%} against {found[0].spare:.1%} spare"
        findings["gain"] = Finding(round(times, 2), "x", None, None, why)
    return {
        "ssdlab": version("ssdlab"),
        "target": subject.name,
        "measures": [asdict(gain) for gain in found],
        "findings": findings,
        "verdict": _verdict(subject, found),
        "plan": [asdict(way) for way in plan],
        "warnings": [],
    }


def _verdict(subject: Subject, found: Sequence[Gain]) -> str:
    area = subject.area
    words = f"Spare: {area.spare:.2%} of all flash (hidden / visible: {area.overprovisioning:.2%})"
    if len(found) > 1:
        times = found[-1].writes_per_s / found[0].writes_per_s
        words += f"; with {found[-1].spare:.0%} a full twin writes at random {times:.1f} x as fast"
    return words + "."


def _print(subject: Subject, found: Sequence[Gain], plan: Sequence[Way], share: float) -> None:
    console = Console()
    head = Text.assemble(("provision", "bold"), f"  {plain(subject.name)}  {plain(subject.model)}")
    console.print(Padding(head, (1, 0, 1, 1)))
    _print_arithmetic(subject, console)
    _print_wanted(subject, console)
    _print_gains(subject, found, console)
    for way in plan:
        _print_way(way, console)
    text = f"The sizes of the plan are for {share:.4g} of all flash (--spare). Nothing was changed."
    console.print(Padding(Text(text, "dim"), (0, 0, 1, 1)))
    console.print(Padding(Text(f"=> {_verdict(subject, found)}", "bold"), (0, 0, 1, 1)))


def _print_arithmetic(subject: Subject, console: Console) -> None:
    area = subject.area
    lines = Table(box=None, show_header=False, padding=(0, 1))
    for name, value, why in (
        ("flash", f"{area.flash}", f"{format_size(area.flash)}; {subject.source}"),
        ("visible", f"{area.visible}", f"{area.visible // SECTOR} sectors of {SECTOR} bytes"),
        ("hidden", f"{area.hidden}", format_size(area.hidden)),
        ("spare", f"{area.spare:.2%}", "hidden / ALL flash: as published tests give it"),
        (
            "overprovisioning",
            f"{area.overprovisioning:.2%}",
            "hidden / visible: as data sheets give it",
        ),
    ):
        lines.add_row(name, Text(value, "bold", justify="right"), Text(plain(why), "dim"))
    console.print(lines)
    if subject.unpartitioned is not None:
        told = f"behind the last partition: {format_size(subject.unpartitioned)}; it is spare only "
        console.print(
            Padding(Text(told + "where it was discarded and never written since"), (0, 1))
        )
    console.print()


def _print_wanted(subject: Subject, console: Console) -> None:
    area = subject.area
    lines = Table(box=None, header_style="dim", padding=(0, 1))
    for heading in ("Spare wanted", "may be used", "to leave unused", "of the visible"):
        lines.add_column(heading, justify="right")
    for share in WANTED:
        usable = area.usable_for(share)
        left = area.visible - usable
        cells = (f"{share:.0%}", format_size(usable), format_size(left))
        lines.add_row(*cells, f"{left / area.visible:.1%}")
    console.print(lines)
    console.print()


def _print_gains(subject: Subject, found: Sequence[Gain], console: Console) -> None:
    if not found:
        words = "No twin is like it: give --twin NAME (ssdlab twin list) to see what it brings."
        console.print(Padding(Text(words, "dim"), (0, 0, 1, 1)))
        return
    lines = Table(box=None, header_style="dim", padding=(0, 1))
    headings = ("Spare", "random 4 KiB writes/s", "MiB/s", "write amplification", "p99")
    for heading in headings:
        lines.add_column(heading, justify="right")
    for gain in found:
        rate = gain.writes_per_s
        p99 = "-" if gain.p99_s is None else format_duration(gain.p99_s)
        cells = (f"{gain.spare:.2%}", f"{rate:.0f}", f"{rate / 256:.1f}", f"{gain.waf:.2f}", p99)
        lines.add_row(*cells)
    console.print(lines)
    told = (
        f"simulated on twin:{plain(subject.twin)} scaled to 2 GiB: filled, then written at random "
        "1.5 times over, all of what is used"
    )
    console.print(Padding(Text(told, "dim"), (0, 0, 1, 1)))


def _print_way(way: Way, console: Console) -> None:
    head = Text.assemble((f"By {way.name}", "bold"), (f": {way.when}", "dim"))
    console.print(Padding(head, (0, 0, 0, 1)))
    for number, step in enumerate(way.steps, 1):
        console.print(Padding(Text(f"{number}. {step.does}"), (0, 0, 0, 3)))
        for command in step.commands:
            console.print(Padding(Text(command, "bold"), (0, 0, 0, 6)))
        if step.danger:
            console.print(Padding(Text(f"danger: {step.danger}", "yellow"), (0, 0, 0, 6)))
    console.print()
