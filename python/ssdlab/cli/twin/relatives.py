"""`ssdlab twin for` finds the twin of a drive or its nearest relatives; `diff` compares two."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ssdlab import profiles
from ssdlab.cli import options
from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.target import parse_profile
from ssdlab.wording import NOTHING

if TYPE_CHECKING:
    from ssdlab.profiles.difference import KeyDifference
    from ssdlab.profiles.relatives import DriveFacts, Fact, Relative
    from ssdlab.snapshot import Device
    from ssdlab.view import Table

app = typer.Typer(add_completion=False)

SHOWN = 3
"""How many relatives are shown."""
SERIES = "series"
"""The fact whose values are whole models: only their agreement is shown."""
WIDE = 70
"""Columns of a terminal from which two profiles are shown side by side."""
NEAR = 0.5
"""Twins below this nearness are not called near."""
_INTERFACES = {"nvme": "nvme", "sata": "sata"}


@app.command(
    name="for",
    epilog="Example: ssdlab twin for /dev/nvme0n1; "
    "ssdlab twin for --model 'Samsung SSD 970 EVO Plus 1TB'",
)
def twin_for(
    target: Annotated[
        str | None,
        typer.Argument(metavar="PATH|DEVICE", help="A block device, or a directory on a drive."),
    ] = None,
    *,
    model: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A drive's model instead of a drive.")
    ] = None,
    capacity: Annotated[
        str | None, typer.Option(help="With --model: its capacity, unless the model names it.")
    ] = None,
    interface: Annotated[str | None, typer.Option(help="With --model: nvme or sata.")] = None,
    json: options.Json = False,
) -> None:
    """Find the shipped twin of a drive's model, or the most similar twins.

    Compares what the drive reports and the profiles state: interface, maker, series and capacity.
    Drives report neither controller nor flash, and the profiles name no controller.
    """
    from ssdlab.profiles.relatives import relatives_of
    from ssdlab.records import encode_json

    if (target is None) == (model is None):
        raise UsageError("give either a drive (a device or a directory on it) or --model TEXT")
    if model is not None and not model.strip():
        raise UsageError(
            "--model is empty; give a drive's model, such as 'Samsung SSD 980 PRO 2TB'"
        )
    if model is None and (capacity or interface):
        raise UsageError("--capacity and --interface are for --model: a drive reports its own")
    drives = drives_at(str(target)) if model is None else [_facts(model, capacity, interface)]
    found = [(name, facts, relatives_of(facts)) for name, facts in drives]
    if json:
        write_out(encode_json({"drives": [_row(*each) for each in found]}))
        return
    for name, facts, relatives in found:
        _print(Console(), name, facts, relatives)


def _facts(model: str, capacity: str | None, interface: str | None) -> tuple[str, DriveFacts]:
    from ssdlab.profiles.relatives import DriveFacts, capacity_in

    if interface is not None and interface not in _INTERFACES:
        raise UsageError(f"--interface is {interface!r}; it must be nvme or sata")
    size = capacity_in(model) if capacity is None else options.size_of(capacity)
    if interface is None and "nvme" in model.lower():
        interface = "nvme"
    return model, DriveFacts(model, size, interface)


def drives_at(target: str) -> list[tuple[str, DriveFacts]]:
    """The drives under a path, by their kernel names.

    Raises:
        TargetError: there is no such path.
        UsageError: no drive below it names its model.
    """
    from ssdlab.profiles.relatives import DriveFacts
    from ssdlab.storage_stack.layers import Roots
    from ssdlab.storage_stack.snapshot import Probes, read_snapshot

    stack = read_snapshot(target, Roots(), Probes(run=lambda _command: None))
    if not stack.drives:
        raise UsageError(f"{target} is not on a drive of this machine; give --model TEXT")
    named = [drive for drive in stack.drives if drive.model and not drive.rotational]
    if not named:
        raise UsageError(
            f"{target}: {'; '.join(map(_why_unknown, stack.drives))}; give --model TEXT"
        )
    return [
        (
            drive.name,
            DriveFacts(
                " ".join(filter(None, (_vendor(drive), drive.model))),
                drive.size_bytes if not drive.is_partition else None,
                _INTERFACES.get(drive.transport),
            ),
        )
        for drive in named
    ]


def _vendor(drive: Device) -> str | None:
    """The vendor, unless it is the "ATA" that the kernel gives for SATA drives."""
    return None if drive.vendor in {"ATA", None} else drive.vendor


def _why_unknown(drive: Device) -> str:
    if drive.model:
        return f"{drive.name} ({drive.model}) is a spinning disk"
    return f"{drive.name} reports no model ({drive.transport})"


def _row(name: str, facts: DriveFacts, relatives: list[Relative]) -> dict[str, Any]:
    twins = [{**asdict(each), "nearness": each.nearness} for each in relatives]
    return {"name": name, **asdict(facts), "twins": twins}


def _print(console: Console, name: str, facts: DriveFacts, relatives: list[Relative]) -> None:
    from ssdlab.report.table import print_table

    own = [each for each in relatives if each.is_model]
    title = name if facts.model in name else f"{name}: {facts.model}"
    best = relatives[0]
    if own:
        verdict = f"its twin is {' or '.join(each.name for each in own)}."
    elif not best.nearness:
        _say(console, f"{title}: no twin of this model is shipped, and none is similar.")
        _say(
            console,
            "With --model, give --capacity and --interface too to find the nearest ones, or choose "
            "one from: ssdlab twin list",
        )
        return
    elif best.nearness < NEAR:
        verdict = "no twin of this model is shipped, and none is similar. The nearest:"
    else:
        verdict = f"no twin of this model is shipped. The most similar is {best.name}."
    _say(console, f"{title}: {verdict}")
    shown = [each for each in own or relatives if each.nearness][:SHOWN]
    print_table(_table(shown), console)
    if own:
        _say(console, f"Try it: ssdlab run aging twin:{best.name} --quick")
        return
    _say(
        console,
        "A twin of your own drive: run stripe, split and cache in a directory on it, then "
        f"ssdlab twin fit ssdlab-runs --start {best.name} --out mine.toml",
    )


def _table(shown: list[Relative]) -> Table:
    """A row for the drive, and one for each relative."""
    from ssdlab.view import Column, Table

    names = ("", *(each.name for each in shown))
    columns = [(Column("Twin", numeric=False), ["your drive", *names[1:]])]
    for at, fact in enumerate(shown[0].facts):
        own = NOTHING if fact.name == SERIES else fact.drive or "not known"
        column = Column(fact.name.capitalize(), numeric=False, minor=fact.name == "maker")
        columns.append((column, [own, *(_cell(each.facts[at]) for each in shown)]))
    percents = [f"{each.nearness * 100:.0f}" for each in shown]
    columns.insert(1, (Column("Nearness", "%"), [NOTHING, *percents]))
    return Table.of_columns(*columns)


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _cell(fact: Fact) -> str:
    if fact.agrees is None:
        return fact.twin
    agrees = {1.0: "same", 0.0: "other"}.get(fact.agrees, f"{fact.agrees:.0%}")
    return agrees if fact.name == SERIES else f"{fact.twin} ({agrees})"


@app.command(name="diff", epilog="Example: ssdlab twin diff samsung-pm981 samsung-980-pro")
def diff(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A name from `ssdlab twin list`, or FILE.toml.",
            autocompletion=options.complete_twin,
        ),
    ],
    second: Annotated[
        str, typer.Argument(metavar="B", help="Another.", autocompletion=options.complete_twin)
    ],
    *,
    json: options.Json = False,
) -> None:
    """Show the keys in which two twins differ, with both values, most important first.

    A dash means that the profile omits the key, so its default applies (see the reference of
    profile keys).
    """
    from ssdlab.device import describe_twin
    from ssdlab.profiles.difference import differences
    from ssdlab.records import encode_json
    from ssdlab.report.table import print_table

    names = [parse_profile(name) for name in (first, second)]
    texts = [profiles.load(name) for name in names]
    for name, text in zip(names, texts, strict=True):
        describe_twin(name, text)  # refuses an invalid profile
    rows = differences(*texts)
    if json:
        document = {"first": names[0], "second": names[1], "differences": [asdict(r) for r in rows]}
        write_out(encode_json(document))
        return
    console = Console()
    if not rows:
        console.print(f"{names[0]} and {names[1]} are the same.", markup=False, highlight=False)
        return
    shown = [row for row in rows if row.key != "drive.model"]
    if console.width >= WIDE:
        print_table(_difference_table(names, shown), console)
        return
    _say(console, f"{names[0]} -> {names[1]}")
    for row in shown:
        values = _value(row.first, row.first_kind), _value(row.second, row.second_kind)
        _say(console, f"{row.key}: {' -> '.join(values)}")


def _difference_table(names: list[str], rows: list[KeyDifference]) -> Table:
    from ssdlab.view import Column, Table

    ratios = [NOTHING if row.ratio is None else f"{row.ratio:.3g}" for row in rows]
    return Table.of_columns(
        (Column("Key", numeric=False), [row.key for row in rows]),
        (Column(names[0], numeric=False), [_value(row.first, row.first_kind) for row in rows]),
        (Column(names[1], numeric=False), [_value(row.second, row.second_kind) for row in rows]),
        (Column("B / A"), ratios),
    )


def _value(value: Any, kind: str) -> str:
    """The value; with the word "inherited" if a fitted profile has it from its start profile."""
    from ssdlab.profiles.toml_edit import INHERITED

    text = _plain_value(value)
    return f"{text} ({kind})" if kind == INHERITED else text


def _plain_value(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, list):
        return str(value)
    units = {str(part).partition(" ")[2] for part in value}
    if len(units) > 1:
        return ", ".join(map(str, value))
    return f"{', '.join(str(part).partition(' ')[0] for part in value)} {units.pop()}".rstrip()
