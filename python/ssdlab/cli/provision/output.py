"""The result of `ssdlab provision` as JSON or text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ssdlab.analysis.spare import SECTOR
from ssdlab.cli.output import write_out
from ssdlab.provision import RECOMMENDED_SPARE, DriveInfo, Gain, Method, ProgressCallback
from ssdlab.records import Finding, encode_json
from ssdlab.units import format_duration, format_size
from ssdlab.wording import plain


@dataclass(frozen=True)
class Result:
    """A drive, the simulated gains, and the plan for a spare of `share` of all flash."""

    drive: DriveInfo
    gains: Sequence[Gain]
    plan: Sequence[Method]
    share: float


def progress(*, quiet: bool) -> ProgressCallback | None:
    """Prints each message on stderr; None if `quiet`."""
    if quiet:
        return None
    console = Console(stderr=True)
    return lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_result(result: Result, *, json: bool) -> None:
    """Prints the result on stdout."""
    if json:
        write_out(encode_json(_object(result)))
    else:
        _print(result)


def _object(result: Result) -> dict[str, Any]:
    drive, gains, share = result.drive, result.gains, result.share
    area = drive.area
    sizes = f"{area.flash} bytes of flash ({drive.source}), {area.visible} visible"
    usable = f"so that {share:.4g} of all flash is spare"
    findings = {
        "spare": Finding(area.spare, "", None, None, f"hidden / all flash: {sizes}"),
        "overprovisioning": Finding(
            area.overprovisioning, "", None, None, f"hidden / visible: {sizes}"
        ),
        "usable_bytes": Finding(area.usable_for(share), "bytes", None, None, usable),
    }
    if len(gains) > 1:
        factor = gains[-1].writes_per_s / gains[0].writes_per_s
        why = f"on a twin, {gains[-1].spare:.1%} spare compared with {gains[0].spare:.1%}"
        findings["gain"] = Finding(round(factor, 2), "x", None, None, why)
    return {
        "ssdlab": version("ssdlab"),
        "target": drive.name,
        "measures": [asdict(gain) for gain in gains],
        "findings": findings,
        "verdict": _verdict(drive, gains),
        "plan": [asdict(method) for method in result.plan],
        "in_use": drive.uses,
        "warnings": drive.warnings,
    }


def _verdict(drive: DriveInfo, gains: Sequence[Gain]) -> str:
    area = drive.area
    text = f"Spare: {area.spare:.2%} of all flash (hidden / visible: {area.overprovisioning:.2%})"
    if len(gains) > 1:
        factor = gains[-1].writes_per_s / gains[0].writes_per_s
        text += f"; with {gains[-1].spare:.0%}, random writes to a full twin are {factor:.1f} x"
        text += " as fast"
    return text + "."


def _print(result: Result) -> None:
    console, drive = Console(), result.drive
    head = Text.assemble(("provision", "bold"), f"  {plain(drive.name)}  {plain(drive.model)}")
    console.print(Padding(head, (1, 0, 1, 1)))
    for use in drive.uses:
        what = plain(use.partition(": ")[0])  # not how to undo it: nothing is to be done yet
        console.print(Padding(Text(f"! in use: {what}", "yellow"), (0, 0, 0, 1)))
    _print_sizes(drive, console)
    _print_recommended(drive, console)
    _print_gains(result, console)
    if drive.uses:
        text = (
            f"{plain(drive.node)} is in use: methods that destroy all data are left out, and the "
            "commands below name /dev/NAME instead."
        )
        console.print(Padding(Text(text, "yellow"), (0, 0, 1, 1)))
    for method in result.plan:
        _print_method(method, console)
    text = f"The plan is for a spare of {result.share:.4g} of all flash (--spare)."
    console.print(Padding(Text(f"{text} Nothing was changed.", "dim"), (0, 0, 1, 1)))
    console.print(Padding(Text(f"=> {_verdict(drive, result.gains)}", "bold"), (0, 0, 1, 1)))


def _print_sizes(drive: DriveInfo, console: Console) -> None:
    area = drive.area
    lines = RichTable(box=None, show_header=False, padding=(0, 1))
    for name, value, why in (
        ("flash", f"{area.flash} B", f"{format_size(area.flash)}; {drive.source}"),
        ("visible", f"{area.visible} B", f"{area.visible // SECTOR} sectors of {SECTOR} bytes"),
        ("hidden", f"{area.hidden} B", format_size(area.hidden)),
        ("spare", f"{area.spare:.2%}", "hidden / ALL flash, as in published tests"),
        ("overprovisioning", f"{area.overprovisioning:.2%}", "hidden / visible, as in data sheets"),
    ):
        lines.add_row(name, Text(value, "bold", justify="right"), Text(plain(why), "dim"))
    console.print(lines)
    if drive.unpartitioned is not None:
        text = (
            f"after the last partition: {format_size(drive.unpartitioned)}; it is spare only if it "
            "was discarded and not written since"
        )
        console.print(Padding(Text(text), (0, 1)))
    for warning in drive.warnings:
        console.print(Padding(Text(f"! {warning.code}: {plain(warning.sentence)}"), (0, 1)))
    console.print()


def _print_recommended(drive: DriveInfo, console: Console) -> None:
    from ssdlab.report.table import print_table
    from ssdlab.view import Column, Table

    area = drive.area
    columns = tuple(map(Column, ("Spare", "to use", "to leave unused", "of the visible")))
    rows = []
    for share in RECOMMENDED_SPARE:
        usable = area.usable_for(share)
        left = area.visible - usable
        cells = (f"{share:.0%}", format_size(usable), format_size(left))
        rows.append((*cells, f"{left / area.visible:.1%}"))
    print_table(Table(columns, tuple(rows)), console)


def _print_gains(result: Result, console: Console) -> None:
    from ssdlab.report.table import print_table
    from ssdlab.view import Column, Table

    if not result.gains:
        text = "No twin simulates it: give --twin NAME (ssdlab twin list) to see the gain."
        console.print(Padding(Text(text, "dim"), (0, 0, 1, 1)))
        return
    columns = (
        Column("Spare"),
        Column("random 4 KiB writes/s"),
        Column("MiB/s", minor=True),
        Column("write amplification"),
        Column("p99"),
    )
    rows = []
    for gain in result.gains:
        rate = gain.writes_per_s
        p99 = "-" if gain.p99_s is None else format_duration(gain.p99_s)
        cells = (f"{gain.spare:.2%}", f"{rate:.0f}", f"{rate / 256:.1f}", f"{gain.waf:.2f}", p99)
        rows.append(cells)
    print_table(Table(columns, tuple(rows)), console)
    text = (
        f"simulated on twin:{plain(result.drive.twin)} scaled to 2 GiB: filled, overwritten at "
        "random 1.5 times, then measured"
    )
    console.print(Padding(Text(text, "dim"), (0, 0, 1, 1)))


def _print_method(method: Method, console: Console) -> None:
    head = Text.assemble((f"By {method.name}", "bold"), (f": {method.when}", "dim"))
    console.print(Padding(head, (0, 0, 0, 1)))
    for number, step in enumerate(method.steps, 1):
        console.print(Padding(Text(f"{number}. {step.does}"), (0, 0, 0, 3)))
        for command in step.commands:
            console.print(Padding(Text(command, "bold"), (0, 0, 0, 6)))
        if step.danger:
            console.print(Padding(Text(f"danger: {step.danger}", "yellow"), (0, 0, 0, 6)))
    console.print()
