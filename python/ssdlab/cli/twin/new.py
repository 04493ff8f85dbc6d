"""`ssdlab twin new`: a profile from what a data sheet says of a drive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.units import parse_size

if TYPE_CHECKING:
    from ssdlab.fit.generic_twin import RateRange
    from ssdlab.profiles.generic import GenericDrive, Number
    from ssdlab.view import Table

app = typer.Typer(add_completion=False)

DRAWS = 12
INTERFACES = ("nvme", "sata")
OPTIONS = {
    "rbps": "--read",
    "wbps": "--write",
    "rrandiops": "--read-iops",
    "wseqiops": "--write-iops",
}
"""The option of each rate."""
TESTS = {
    "rbps": "large sequential reads",
    "rseqiops": "sequential 4 KiB reads x64",
    "rrandiops": "4 KiB random reads x64",
    "wbps": "large sequential writes",
    "wseqiops": "sequential 4 KiB writes x64",
    "wrandiops": "4 KiB random writes x64",
}
"""What each rate is measured by, in words."""


@app.command(
    name="new",
    epilog="Example: ssdlab twin new --interface nvme --capacity 512GB --nand tlc "
    "--read 3500MB/s --out mine.toml",
)
def new(
    *,
    interface: Annotated[str, typer.Option(help="nvme or sata.")],
    capacity: Annotated[str, typer.Option(help="As sold, such as 512GB.")],
    nand: Annotated[str, typer.Option(help="Flash: slc, mlc, tlc or qlc.")] = "tlc",
    out: Annotated[Path, typer.Option(help="File for the profile.")],
    model: Annotated[str, typer.Option(help="The drive's name.")] = "",
    channels: Annotated[int | None, typer.Option(help="Channels, if known.")] = None,
    dies: Annotated[int | None, typer.Option(help="Dies, if known.")] = None,
    spare: Annotated[float | None, typer.Option(help="Hidden / all flash, if known.")] = None,
    protected: Annotated[
        bool, typer.Option("--protected", help="Capacitors protect the write buffer.")
    ] = False,
    read: Annotated[
        str | None, typer.Option(metavar="RATE", help="Sequential reads, such as 3500MB/s.")
    ] = None,
    write: Annotated[
        str | None, typer.Option(metavar="RATE", help="Sustained sequential writes.")
    ] = None,
    read_iops: Annotated[
        int | None, typer.Option(help="Random reads of 4 KiB at depth 64, requests/s.")
    ] = None,
    write_iops: Annotated[
        int | None, typer.Option(help="Sequential writes of 4 KiB at depth 64, requests/s.")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a generic twin from data-sheet figures: interface, capacity, flash, rates.

    All other numbers are those of usual drives; each entry of the profile names its source. The
    command then prints the range of each rate over such drives: it measures twelve twins, whose
    numbers it draws from the ranges of real drives.
    """
    if interface not in INTERFACES:
        raise UsageError(f"--interface is {interface!r}; it must be nvme or sata")
    from ssdlab.fit.generic_twin import make
    from ssdlab.profiles.generic import GenericDrive

    drive = GenericDrive(
        "nvme" if interface == "nvme" else "sata",
        parse_size(capacity),
        nand.lower(),
        model=model,
        channels=channels,
        dies=dies,
        spare=spare,
        protected=protected,
    )
    given = {"rbps": read, "wbps": write, "rrandiops": read_iops, "wseqiops": write_iops}
    rates = _rates(interface, given)
    profile = make(drive, rates, f"fit of the rates given for {drive.name}")
    try:
        out.write_text(profile, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written ({error.strerror}); give another --out"
        ) from error
    ranges = _measure_ranges(profile, drive, rates, quiet=quiet)
    if json:
        from ssdlab.records import encode_json

        write_out(encode_json(_document(out, _numbers(drive, profile), ranges)))
    else:
        _print(out, _numbers(drive, profile), ranges)


def _rates(interface: str, given: dict[str, str | int | None]) -> dict[str, float]:
    """The rates that are given, named as in `iocost.RATES`.

    Raises:
        UsageError: not a rate, or more than the interface carries.
    """
    from ssdlab.fit.iocost import MB, RATES, bytes_per_s, parse_rate
    from ssdlab.fit.parameters import LINK_MAX

    rates = {}
    for name, value in given.items():
        if value is None:
            continue
        option, is_rate = OPTIONS[name], RATES[name].unit == MB
        if is_rate and str(value).strip().replace(".", "", 1).isdigit():
            raise UsageError(f"{option} is {value}, without a unit; give {value}MB/s, for example")
        rates[name] = parse_rate(value, name, option)
        if bytes_per_s(name, rates[name]) > LINK_MAX[interface]:
            raise UsageError(
                f"{option} is {value}: more than {interface} carries "
                f"({LINK_MAX[interface] / 1e6:.0f} MB/s); correct it, or --interface"
            )
    return rates


def _numbers(drive: GenericDrive, profile: str) -> list[Number]:
    """The numbers of usual drives, with the values and kinds that the fit to the rates gave."""
    from dataclasses import replace

    from ssdlab.profiles.generic import numbers
    from ssdlab.profiles.toml_edit import list_values

    entries = {entry["key"]: entry for entry in list_values(profile)}
    return [
        replace(one, value=entries[one.key]["value"], kind=entries[one.key]["kind"])
        for one in numbers(drive)
        if one.key in entries
    ]


def _print(out: Path, numbers: list[Number], ranges: list[RateRange]) -> None:
    from ssdlab.report.table import print_table

    console = Console()
    print_table(_numbers_table(numbers), console)
    print_table(_rates_table(ranges), console)
    console.print(_conclusion(ranges, out), markup=False, highlight=False, soft_wrap=True)


def _measure_ranges(
    profile: str, drive: GenericDrive, rates: dict[str, float], *, quiet: bool
) -> list[RateRange]:
    from ssdlab.cli.bar import progress_bar
    from ssdlab.fit.generic_twin import rate_ranges
    from ssdlab.runner.progress import Report

    with progress_bar(Console(stderr=True), "drawing twins", quiet=quiet) as listener:

        def report(done: int) -> None:
            listener(Report(f"{done} of {DRAWS} twins", done / DRAWS, done / DRAWS, None))

        return rate_ranges(profile, drive, rates, DRAWS, report)


def _document(out: Path, numbers: list[Number], ranges: list[RateRange]) -> dict[str, Any]:
    from dataclasses import asdict

    from ssdlab.fit.iocost import RATES

    findings = {
        one.name: {
            "value": one.value,
            "unit": RATES[one.name].unit,
            "low": one.low,
            "high": one.high,
            "why": f"the extremes of {DRAWS} twins with numbers drawn from those of real drives",
        }
        for one in ranges
    }
    rows = [asdict(one) for one in numbers]
    return {"profile": str(out), "numbers": rows, "draws": DRAWS, "findings": findings}


def _numbers_table(numbers: list[Number]) -> Table:
    from ssdlab.view import Column, Table

    columns = (
        Column("Key", numeric=False),
        Column("Value"),
        Column("Range of real drives"),
        Column("Kind", numeric=False),
    )
    rows = [
        (
            one.key,
            _value(one.value),
            "" if one.low == one.high else f"{one.low} to {one.high}",
            one.kind,
        )
        for one in numbers
    ]
    return Table(columns, tuple(rows))


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _rates_table(ranges: list[RateRange]) -> Table:
    from ssdlab.fit.iocost import RATES
    from ssdlab.view import Column, Table
    from ssdlab.wording import number

    columns = (
        Column("Rate", numeric=False),
        Column("Unit", numeric=False),
        Column("Twin"),
        Column("Drives like it"),
    )
    rows = [
        (
            TESTS[one.name],
            RATES[one.name].unit,
            _digits(one.value),
            f"{number(float(_digits(one.low)))} to {number(float(_digits(one.high)))}",
        )
        for one in ranges
    ]
    return Table(columns, tuple(rows))


def _digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):g}" if value < 1000 else f"{float(f'{value:.3g}'):.0f}"


def _conclusion(ranges: list[RateRange], out: Path) -> str:
    widest = max(ranges, key=lambda one: one.high / one.low)
    return (
        f" {out}: the profile. Drives with the same data sheet differ: in {TESTS[widest.name]}, "
        f"by a factor of up to {widest.high / widest.low:.1f}. Measure yours, and use "
        "`ssdlab twin fit`."
    )
