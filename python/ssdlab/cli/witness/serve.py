"""`ssdlab witness serve`: remembers on this machine what another one's drive acknowledged."""

from __future__ import annotations

import contextlib
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
from ssdlab.cli.witness.options import FOLDER, SECRET, say
from ssdlab.errors import UsageError
from ssdlab.records import encode_json
from ssdlab.witness.journal import SUFFIX
from ssdlab.witness.protocol import PORT, parse_address, read_secret
from ssdlab.witness.server import Server, Watch, make_secret

app = typer.Typer(add_completion=False)


@app.command(name="serve", epilog="Example: ssdlab witness serve --listen 0.0.0.0:5400")
def serve(
    *,
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on.")] = f"127.0.0.1:{PORT}",
    out: Annotated[Path, typer.Option(help="Folder of the journals and the secret.")] = FOLDER,
    secret: Annotated[
        Path | None, typer.Option(help="File with the secret [OUT/secret, made if missing].")
    ] = None,
    cut_after: Annotated[
        str | None, typer.Option(metavar="N|N-M", help="Run --cut-command after so many flushes.")
    ] = None,
    cut_command: Annotated[
        str | None, typer.Option(help="What cuts the power: of a relay, a switched socket ...")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides the moments of N-M.")] = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Remember, on a machine that keeps its power, what drives elsewhere acknowledge.

    Runs until Ctrl-C. Its journals survive a crash of its own; copy its secret to the tested
    machine. With --cut-command it cuts the power itself, once a round, in the midst of writing.
    """
    if (cut_after is None) != (cut_command is None):
        raise UsageError("give --cut-after and --cut-command together, or none of them")
    place = secret if secret is not None else out / SECRET
    if secret is None:
        make_secret(place)
    address = parse_address(listen)
    try:
        server = Server(out, read_secret(place), address)
    except OSError as error:
        raise UsageError(
            f"--listen {listen}: cannot be had ({error.strerror}); give an address of this machine "
            "and a port that is free"
        ) from error
    console = Console(stderr=True)
    if cut_after is not None and cut_command is not None:
        server.watch = _watch(cut_after, cut_command, seed, console)
    if not quiet:
        server.tell = lambda line: say(console, line)
        host, port = server.address
        say(console, f"witness on {host}:{port}, journals in {out}, until Ctrl-C")
        say(console, f"  copy {place} to the tested machine; there: ssdlab witness write TARGET")
    try:
        _wait()
    finally:
        server.stop()
        if json:
            runs = sorted(path.stem for path in out.glob(f"*{SUFFIX}"))
            write_out(encode_json({"folder": str(out), "runs": runs}))
    return 0


def _wait() -> None:
    """Until Ctrl-C, which is how a witness ends in good order."""
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            time.sleep(3600)


def _watch(after: str, command: str, seed: int, console: Console) -> Watch:
    low, dash, high = after.partition("-")
    bounds = (low, high if dash else low)
    if not all(text.isascii() and text.isdecimal() and int(text) for text in bounds):
        raise UsageError(f"--cut-after is {after!r}; it may be N or N-M, such as 50-500")
    least, most = int(bounds[0]), int(bounds[1])
    if least > most:
        raise UsageError(f"--cut-after is {after!r}; the first number may not be the larger one")
    words, choose = shlex.split(command), random.Random(seed)
    if not words:
        raise UsageError("--cut-command is empty; give the program that cuts the power")

    def cut() -> None:
        say(console, f"cutting the power: {command}")
        try:
            subprocess.Popen(words)
        except OSError as error:
            say(console, f"{words[0]} cannot be run ({error.strerror})")

    return Watch(lambda: choose.randint(least, most), cut)
