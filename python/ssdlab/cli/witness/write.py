"""`ssdlab witness write`: writes, and reports to the witness what the drive acknowledged."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ssdlab.cli.output import write_out
from ssdlab.cli.witness import options
from ssdlab.cli.witness.options import (
    SECRET,
    full_name,
    open_target,
    parse_sectors,
    print_line,
    witness_from,
)
from ssdlab.errors import DeviceFailure, TargetError, UsageError
from ssdlab.storage_stack.blockdev import is_block_device
from ssdlab.units import format_size, parse_duration, parse_size
from ssdlab.witness.limits import (
    NBD_SCHEMES,
    RUN_NAME,
    SECTOR,
    SECTORS_MAX,
    SYNCS,
    THREADS_MAX,
    Sync,
)
from ssdlab.witness.target import Target, make_file, require_unused

if TYPE_CHECKING:
    from ssdlab.witness.writer import WriteOptions, Writer, Written

app = typer.Typer(add_completion=False)

FILE_BYTES = 1 << 30
DRAIN_TIMEOUT_S = 60.0


@app.command(
    name="write",
    epilog="Example: ssdlab witness write /mnt/data/witness.bin --server 10.0.0.7 --secret secret",
)
def write(
    target: options.TargetName,
    *,
    server: options.Server,
    secret: options.Secret = SECRET,
    run: Annotated[str | None, typer.Option(help="Add a round to this run (default: new).")] = None,
    size: Annotated[
        str | None, typer.Option(help="Size of the region [1GiB of a file, all of a device].")
    ] = None,
    sync: Annotated[
        str, typer.Option(help="fsync, fdatasync, dsync, fua, or none (the positive control).")
    ] = "fdatasync",
    threads: Annotated[int, typer.Option(min=1, max=THREADS_MAX, help="Writing threads.")] = 4,
    smallest: Annotated[str, typer.Option(help="Smallest request.")] = "512B",
    largest: Annotated[str, typer.Option(help="Largest request.")] = "1MiB",
    batch: Annotated[int, typer.Option(min=1, help="Maximum requests between two flushes.")] = 8,
    duration: Annotated[str | None, typer.Option(help="Stop after this time.")] = None,
    requests: Annotated[
        int | None, typer.Option(min=1, help="Stop after this number of requests.")
    ] = None,
    destroy_data: Annotated[
        bool, typer.Option("--destroy-data", help="Allow a block device to be overwritten.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of offsets and sizes.")] = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Write stamped requests at random until the power is cut.

    Then cut the power AT THE DRIVE OR THE SOCKET. Reset button, reboot, kill, power off by software
    and stopping a guest do not count: the drive keeps its power in all of them.
    """
    if sync not in SYNCS:
        raise UsageError(f"--sync is {sync!r}; it must be one of {', '.join(SYNCS)}")
    sizes, run_id = _parse_sizes(smallest, largest), _parse_run(run)
    seconds = math.inf if duration is None else parse_duration(duration)
    console = Console(stderr=True, quiet=quiet)
    region = None if size is None else parse_size(size)
    witness = witness_from(server, secret)
    from ssdlab.records import encode_json
    from ssdlab.witness.client import MessageSender
    from ssdlab.witness.controls import describe
    from ssdlab.witness.writer import WriteOptions, Writer

    plan = WriteOptions(run_id, sync, threads, *sizes, batch, requests, seed)
    with _opened(target, sync, region, destroy_data=destroy_data) as opened:
        state = describe(target)
        for sentence in state["software"]:
            print_line(console, f"warning: {sentence}")
        sender = MessageSender(witness, _begin_request(target, opened.size_bytes, plan, state))
        try:
            written, flushes = _write_round(Writer(opened, plan, sender), target, seconds, console)
        finally:
            drained = sender.drain(DRAIN_TIMEOUT_S)
            sender.close()
    _print_end(console, target, written, flushes)
    if json:
        result = {
            "run": run_id.hex(),
            "round": sender.round,
            "target": full_name(target),
            "written": written,
            "flushes_seen_by_drives": flushes,
            "told": drained,
            "software": state["software"],
        }
        write_out(encode_json(result))
    return 0


def _begin_request(
    target: str, size_bytes: int, plan: WriteOptions, state: dict[str, Any]
) -> dict[str, Any]:
    return {
        "run": plan.run.hex(),
        "session": os.urandom(8).hex(),
        "target": full_name(target),
        "size_bytes": size_bytes,
        "plan": {**asdict(plan), "run": plan.run.hex()},
        "known": state,
    }


def _parse_run(run: str | None) -> bytes:
    if run is None:
        return os.urandom(16)
    if not RUN_NAME.fullmatch(run):
        raise UsageError(f"--run is {run!r}; a run has 32 hexadecimal digits, in lower case")
    return bytes.fromhex(run)


def _parse_sizes(smallest: str, largest: str) -> tuple[int, int]:
    low, high = parse_sectors("smallest", smallest), parse_sectors("largest", largest)
    if not low <= high <= SECTORS_MAX * SECTOR:
        raise UsageError(
            f"--smallest is {smallest} and --largest is {largest}; the smallest must not exceed "
            "the largest, nor the largest 1MiB"
        )
    return low, high


@contextlib.contextmanager
def _opened(target: str, sync: Sync, size: int | None, *, destroy_data: bool) -> Iterator[Target]:
    path = Path(target)
    if not target.startswith(NBD_SCHEMES):
        if is_block_device(path):
            require_unused(path, destroy_data=destroy_data)
        elif path.is_dir():
            raise TargetError(f"{target} is a directory; give the path of a new file in it")
        elif size is not None or not path.exists():
            make_file(path, FILE_BYTES if size is None else size)
    opened = open_target(target, sync, size, writes=True)
    try:
        yield opened
    finally:
        opened.close()


def _write_round(
    writer: Writer, target: str, seconds: float, console: Console
) -> tuple[Written, int | None]:
    """Fills the region in the first round, then writes. Also returns the drives' flush count."""
    from ssdlab.witness.controls import flush_count

    print_line(console, f"run {writer.options.run.hex()}, round {writer.sender.round}")
    before = flush_count(target)
    with console.status("") as status:
        try:
            if writer.sender.round == 1:
                writer.fill(lambda share: status.update(f"filling the region: {share:.0%}"))
            print_line(
                console, "writing: CUT THE POWER NOW, at the drive or the socket; Ctrl-C ends"
            )
            written = writer.run(lambda counts: status.update(_progress(writer, counts)), seconds)
        except DeviceFailure as error:
            writer.written.error = str(error)
            written = writer.written
    after = flush_count(target)
    return written, None if before is None or after is None else after - before


def _progress(writer: Writer, written: Written) -> str:
    return (
        f"{written.requests} requests, {format_size(written.write_bytes)}, {written.flushes} "
        f"flushes acknowledged; {writer.sender.queued} messages not yet at the witness"
    )


def _print_end(console: Console, target: str, written: Written, flushes: int | None) -> None:
    if written.error is not None:
        print_line(
            console, f"{target}: {written.error}; power it up and run `ssdlab witness verify`"
        )
    if flushes == 0 and written.flushes:
        print_line(
            console,
            "warning: the drives counted no flush: the software sends none; see "
            "/sys/block/*/queue/write_cache and the mount options",
        )
