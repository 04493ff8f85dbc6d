"""`ssdlab witness write`: writes, and tells the witness what the drive acknowledged."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ssdlab.cli.output import write_out
from ssdlab.cli.witness import options
from ssdlab.cli.witness.options import SECRET, named, open_target, say, sectors, witness_at
from ssdlab.errors import DeviceFailure, TargetError, UsageError
from ssdlab.records import encode_json
from ssdlab.storage_stack.blockdev import is_block_device
from ssdlab.units import format_size, parse_duration, parse_size
from ssdlab.witness.client import Link
from ssdlab.witness.controls import describe, flush_count
from ssdlab.witness.nbd import SCHEMES
from ssdlab.witness.stamps import SECTOR, SECTORS_MAX
from ssdlab.witness.target import SYNCS, Sync, Target, make_file, require_free
from ssdlab.witness.writer import THREADS_MAX, Plan, Writer, Written

app = typer.Typer(add_completion=False)

FILE_SIZE = 1 << 30
DRAIN_S = 60.0


@app.command(
    name="write",
    epilog="Example: ssdlab witness write /mnt/data/witness.bin --server 10.0.0.7 --secret secret",
)
def write(
    target: options.TargetName,
    *,
    server: options.Server,
    secret: options.Secret = SECRET,
    run: Annotated[str | None, typer.Option(help="Another round of this run.")] = None,
    size: Annotated[
        str | None, typer.Option(help="Region (1GiB of a file, all of a device).")
    ] = None,
    sync: Annotated[
        str, typer.Option(help="fsync, fdatasync, dsync, fua, or none (the positive control).")
    ] = "fdatasync",
    threads: Annotated[int, typer.Option(min=1, max=THREADS_MAX, help="Writers.")] = 4,
    smallest: Annotated[str, typer.Option(help="Smallest request.")] = "512B",
    largest: Annotated[str, typer.Option(help="Largest request.")] = "1MiB",
    batch: Annotated[int, typer.Option(min=1, help="Most requests between two flushes.")] = 8,
    duration: Annotated[str | None, typer.Option(help="End after this time.")] = None,
    requests: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    destroy_data: Annotated[
        bool, typer.Option("--destroy-data", help="Allow a block device to be overwritten.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Decides places and sizes.")] = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Write stamped requests at random until the power goes.

    Then cut the power AT THE DRIVE OR THE SOCKET. What does not count: reset button, reboot, kill,
    power off by software, stopping a guest: the drive keeps its power in all of them.
    """
    rest = {"threads": threads, "batch": batch, "requests": requests, "seed": seed}
    plan = _plan(run, sync, (smallest, largest), rest)
    seconds = math.inf if duration is None else parse_duration(duration)
    console = Console(stderr=True, quiet=quiet)
    wished = None if size is None else parse_size(size)
    witness = witness_at(server, secret)
    with _opened(target, plan.sync, wished, destroy_data=destroy_data) as opened:
        known = describe(target)
        for sentence in known["software"]:
            say(console, f"warning: {sentence}")
        link = Link(witness, _begin(target, plan, opened, known))
        told = False
        try:
            written, flushes = _round(Writer(opened, plan, link), target, seconds, console)
        finally:
            told = link.drain(DRAIN_S)
            link.close()
    _tell_end(console, target, written, flushes)
    if json:
        result = {
            "run": plan.run.hex(),
            "round": link.round,
            "target": named(target),
            "written": written,
            "flushes_seen_by_drives": flushes,
            "told": told,
            "software": known["software"],
        }
        write_out(encode_json(result))
    return 0


def _begin(target: str, plan: Plan, opened: Target, known: dict[str, Any]) -> dict[str, Any]:
    """What the witness keeps of a round."""
    return {
        "run": plan.run.hex(),
        "session": os.urandom(8).hex(),
        "target": named(target),
        "size_bytes": opened.size_bytes,
        "plan": {**asdict(plan), "run": plan.run.hex()},
        "known": known,
    }


def _plan(run: str | None, sync: str, sizes: tuple[str, str], rest: dict[str, Any]) -> Plan:
    if sync not in SYNCS:
        raise UsageError(f"--sync is {sync!r}; it may be one of {', '.join(SYNCS)}")
    smallest, largest = sectors("smallest", sizes[0]), sectors("largest", sizes[1])
    if not smallest <= largest <= SECTORS_MAX * SECTOR:
        raise UsageError(f"--smallest {sizes[0]} and --largest {sizes[1]}: in order, up to 1MiB")
    name = bytes.fromhex(_run_name(run))
    return Plan(run=name, sync=sync, smallest=smallest, largest=largest, **rest)


@contextlib.contextmanager
def _opened(target: str, sync: Sync, size: int | None, *, destroy_data: bool) -> Iterator[Target]:
    path = Path(target)
    if not target.startswith(SCHEMES):
        if is_block_device(path):
            require_free(path, destroy_data=destroy_data)
        elif path.is_dir():
            raise TargetError(f"{target} is a directory; name a file in it, to be made")
        elif size is not None or not path.exists():
            make_file(path, FILE_SIZE if size is None else size)
    opened = open_target(target, sync, size, writes=True)
    try:
        yield opened
    finally:
        opened.close()


def _round(
    writer: Writer, target: str, seconds: float, console: Console
) -> tuple[Written, int | None]:
    """Fills the region in a run's first round, then writes; with the flushes the drives counted."""
    say(console, f"run {writer.plan.run.hex()}, round {writer.link.round}")
    before = flush_count(target)
    with console.status("") as status:
        try:
            if writer.link.round == 1:
                writer.fill(lambda share: status.update(f"filling the region: {share:.0%}"))
            say(console, "writing: CUT THE POWER NOW, at the drive or the socket; Ctrl-C ends")
            written = writer.run(lambda so_far: status.update(_so_far(writer, so_far)), seconds)
        except DeviceFailure as error:
            writer.written.error = str(error)
            written = writer.written
    after = flush_count(target)
    return written, None if before is None or after is None else after - before


def _so_far(writer: Writer, written: Written) -> str:
    return (
        f"{written.requests} requests, {format_size(written.write_bytes)}, {written.flushes} "
        f"acknowledged; {writer.link.waiting} messages wait for the witness"
    )


def _tell_end(console: Console, target: str, written: Written, flushes: int | None) -> None:
    if written.error is not None:
        say(console, f"{target}: {written.error}; power it up and run `ssdlab witness verify`")
    if flushes == 0 and written.flushes:
        say(console, "warning: the drives counted no flush at all: the software sends none")


def _run_name(run: str | None) -> str:
    if run is None:
        return os.urandom(16).hex()
    if len(run) != 32 or any(digit not in "0123456789abcdef" for digit in run):
        raise UsageError(f"--run is {run!r}; a run has 32 hexadecimal digits")
    return run
