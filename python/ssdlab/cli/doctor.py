"""`ssdlab doctor`: checks the storage stack below a path; changes nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console

from ssdlab.cli.output import write_out
from ssdlab.doctor.checks import findings, judge, summary
from ssdlab.doctor.read_map import Budget, read_map
from ssdlab.doctor.report import Report, render, write_html
from ssdlab.errors import DeviceFailure, TargetError, UsageError
from ssdlab.input_files import read_bytes
from ssdlab.records import encode_json
from ssdlab.snapshot import File, Snapshot, Unread, decode
from ssdlab.storage_stack.snapshot import Probes, file_record, largest, read_snapshot
from ssdlab.storage_stack.trim import Roots, read_tables
from ssdlab.units import format_size, parse_size
from ssdlab.warning import MeasurementWarning

app = typer.Typer(add_completion=False)

LARGEST: Final = 3
SEARCH_S: Final = 5.0
READ_S: Final = 20.0
FILE_BYTES_MIN: Final = 8 << 20
"""Smaller files have too few pieces for a map."""


@dataclass(frozen=True)
class _MapOptions:
    """Which files to map, and how many bytes to read at most."""

    target: str
    files: tuple[Path, ...]
    read_bytes: int


@app.command(name="doctor", epilog="Example: ssdlab doctor /var/lib/postgresql")
def doctor(
    target: Annotated[
        str, typer.Argument(metavar="[PATH|DEVICE]", help="A file, a directory or a block device.")
    ] = ".",
    *,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="Read this file for the map of read speeds, instead of the largest; repeatable.",
        ),
    ] = None,
    read: Annotated[
        str, typer.Option(help="Bytes of files to read at most, past the page cache; 0: none.")
    ] = "512MiB",
    html: Annotated[
        Path | None, typer.Option(help="Also write one HTML file, and print its path on stderr.")
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--recorded",
            metavar="JSON",
            help="Check the output of an earlier --json, from this or another machine.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress; print only problems (BAD, WARN).")
    ] = False,
) -> int:
    """Check the whole storage stack below a path: read-only, a minute at most, root or not.

    Checks TRIM through each layer, alignment, write cache, health, spare, fragments, and which
    regions of files read slowly. The worst problems come first, with what to do. Exit status 1 if
    a problem is BAD.
    """
    started = time.monotonic()
    options = _MapOptions(target, tuple(files or ()), parse_size(read))
    stack = _read(options, quiet=quiet or json) if recorded is None else _recorded(recorded)
    report = _report(stack, time.monotonic() - started)
    if html is not None:
        write_html(report, html)
        typer.echo(html.resolve(), err=True)
    if json:
        write_out(encode_json(report))
    else:
        render(report, Console(), quiet=quiet)
    return int(any(verdict.severity == "bad" for verdict in report.verdicts))


def _recorded(path: Path) -> Snapshot:
    try:
        text = read_bytes(path)
        printed: Any = msgspec.json.decode(text)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path} cannot be read ({error}); give the output of --json") from error
    stack = printed.get("stack", printed) if isinstance(printed, dict) else printed
    return decode(msgspec.json.encode(stack))


def _read(options: _MapOptions, *, quiet: bool) -> Snapshot:
    probes = Probes()
    stack = read_snapshot(options.target, Roots(tables=read_tables()), probes)
    unread = list(stack.unread)
    paths = _select_files(options, stack, unread, quiet=quiet)
    records = _file_records(options, paths, unread, quiet=quiet)
    return msgspec.structs.replace(stack, files=tuple(records), unread=tuple(unread))


def _select_files(
    options: _MapOptions, stack: Snapshot, unread: list[Unread], *, quiet: bool
) -> Sequence[Path]:
    """The files to map: those named, the target itself, or the largest below it."""
    path = Path(options.target)
    if options.files or path.is_file():
        return options.files or (path,)
    if not stack.drives or not options.read_bytes:
        return ()
    if not path.is_dir():
        path = Path(stack.mounts[0].mount_point) if stack.mounts else path
        if not stack.mounts:
            return ()
    _print_progress(f"looking for the largest files in {path}", quiet=quiet)
    paths, is_complete = largest(path, LARGEST, SEARCH_S)
    if not is_complete:
        why = f"the search stopped after {SEARCH_S:.0f} s; other files may be larger"
        unread.append(Unread(f"all files in {path}", why, "ssdlab doctor --map FILE"))
    return paths


def _file_records(
    options: _MapOptions, paths: Sequence[Path], unread: list[Unread], *, quiet: bool
) -> list[File]:
    records = []
    budget = Budget(READ_S, options.read_bytes)
    for left, path in zip(range(len(paths), 0, -1), paths, strict=True):
        try:
            records.append(_mapped_record(path, budget, left, quiet=quiet))
        except (TargetError, DeviceFailure) as error:
            if path in options.files:
                raise
            unread.append(Unread(str(path), str(error)))
    return records


def _mapped_record(path: Path, budget: Budget, left: int, *, quiet: bool) -> File:
    """One file's record with its map, read with 1/`left` of the remaining budget."""
    record, extents = file_record(path)
    if record.size_bytes < FILE_BYTES_MIN:
        why = f"it is smaller than {format_size(FILE_BYTES_MIN)}"
        return msgspec.structs.replace(record, not_read=why)
    if budget.is_spent:
        why = "the time or byte limit was reached"
        return msgspec.structs.replace(record, not_read=why)
    share = budget.share(left)
    _print_progress(f"reading up to {format_size(share.bytes)} of {path}", quiet=quiet)
    try:
        speeds = read_map(path, extents, share)
    except TargetError as error:
        return msgspec.structs.replace(record, not_read=str(error))
    finally:
        budget.spend(share.spent)
    if speeds.through_cache:
        why = "the file system answered direct reads through the page cache"
        return msgspec.structs.replace(record, not_read=why)
    return msgspec.structs.replace(record, pieces=tuple(speeds.pieces), unsteady=speeds.unsteady)


def _report(stack: Snapshot, duration_s: float) -> Report:
    verdicts = judge(stack)
    measures = [row for mount in stack.mounts for row in mount.layers] or list(stack.layers)
    return Report(
        ssdlab=version("ssdlab"),
        target=stack.target,
        duration_s=duration_s,
        measures=[
            {"layer": r.layer, "device": r.device, "passes": r.passes, "why": r.why}
            for r in measures
        ],
        findings=findings(verdicts),
        verdict=summary(verdicts),
        verdicts=verdicts,
        warnings=[MeasurementWarning("unread", _sentence(unread)) for unread in stack.unread],
        stack=stack,
    )


def _sentence(unread: Unread) -> str:
    command = f"; {unread.command}" if unread.command else ""
    return f"{unread.what}: {unread.why}{command}"


def _print_progress(text: str, *, quiet: bool) -> None:
    if not quiet:
        Console(stderr=True).print(f"doctor: {text}", markup=False, highlight=False, soft_wrap=True)
