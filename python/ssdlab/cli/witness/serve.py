"""`ssdlab witness serve`: records the writes that drives of other machines acknowledge."""

from __future__ import annotations

import random
import shlex
import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ssdlab.cli.output import write_out
from ssdlab.cli.witness import options
from ssdlab.cli.witness.options import FOLDER, SECRET, print_line
from ssdlab.errors import UsageError
from ssdlab.witness.limits import SUFFIX
from ssdlab.witness.protocol import PORT, make_secret, parse_address, read_secret

app = typer.Typer(add_completion=False)


@app.command(name="serve", epilog="Example: ssdlab witness serve --listen 0.0.0.0:5400")
def serve(
    *,
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on.")] = f"127.0.0.1:{PORT}",
    out: Annotated[Path, typer.Option(help="Folder of the journals and the secret.")] = FOLDER,
    secret: Annotated[
        Path | None,
        typer.Option(help="File with the secret [OUT/secret, created if it does not exist]."),
    ] = None,
    cut_after: Annotated[
        str | None,
        typer.Option(metavar="N|N-M", help="Run --cut-command after N (or N to M) flushes."),
    ] = None,
    cut_command: Annotated[
        str | None,
        typer.Option(help="Program that cuts the power, with a relay or a switched socket."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice from N-M.")] = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Record acknowledged writes of other machines, on a machine that keeps its power.

    Runs until Ctrl-C. Copy its secret to the tested machine. The journals survive a crash of this
    machine. With --cut-command it cuts the power itself, once per round, during the writes.
    """
    if (cut_after is None) != (cut_command is None):
        raise UsageError("give --cut-after and --cut-command together, or neither")
    secret_file = secret if secret is not None else out / SECRET
    if secret is None:
        make_secret(secret_file)
    address, key = parse_address(listen), read_secret(secret_file)
    console = Console(stderr=True)
    counts = None if cut_after is None else _parse_range(cut_after)
    words = None if cut_command is None else shlex.split(cut_command)
    if words == []:
        raise UsageError("--cut-command is empty; give the program that cuts the power")
    from ssdlab.records import encode_json
    from ssdlab.witness.server import CutTrigger, Server

    try:
        server = Server(out, key, address)
    except OSError as error:
        raise UsageError(
            f"--listen {listen}: cannot listen there ({error.strerror}); give an address of this "
            "machine and a free port"
        ) from error
    if counts is not None and words is not None:
        rng, (least, most) = random.Random(seed), counts
        server.cut_trigger = CutTrigger(
            lambda: rng.randint(least, most), lambda: _cut_power(words, console)
        )
    try:  # Ctrl-C may come as soon as the address is printed
        if not quiet:
            server.log = lambda line: print_line(console, line)
            host, port = server.address
            print_line(console, f"witness on {host}:{port}, journals in {out}, until Ctrl-C")
            print_line(
                console,
                f"  copy {secret_file} to the tested machine; there: ssdlab witness write TARGET",
            )
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()
        if json:
            runs = sorted(path.stem for path in out.glob(f"*{SUFFIX}"))
            write_out(encode_json({"folder": str(out), "runs": runs}))
    return 0


def _parse_range(text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    bounds = (low, high if dash else low)
    if not all(bound.isascii() and bound.isdecimal() and int(bound) for bound in bounds):
        raise UsageError(f"--cut-after is {text!r}; it must be N or N-M, such as 50-500")
    least, most = int(bounds[0]), int(bounds[1])
    if least > most:
        raise UsageError(f"--cut-after is {text!r}; in N-M, N must not exceed M")
    return least, most


def _cut_power(words: list[str], console: Console) -> None:
    print_line(console, f"cutting the power: {shlex.join(words)}")
    try:
        subprocess.Popen(words)
    except OSError as error:
        print_line(console, f"{words[0]} cannot be run ({error.strerror})")
