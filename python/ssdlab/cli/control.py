"""`ssdlab control`: one request to a served twin's control socket, and its answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from ssdlab.cli.output import write_out
from ssdlab.errors import UsageError
from ssdlab.units import parse_size

app = typer.Typer(add_completion=False)

_SIZE: Final = re.compile(r"\d+(\.\d+)?\s*[KMGT]?i?B", re.IGNORECASE)


@app.command(
    name="control",
    epilog="Example: ssdlab control /tmp/xg5.sock.control power-cut after_writes=100 on=true",
)
def run(
    socket: Annotated[
        Path, typer.Argument(metavar="SOCKET", help="Control socket of a running ssdlab serve.")
    ],
    do: Annotated[str, typer.Argument(metavar="DO", help="What it is to do, such as counters.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Its arguments; sizes as 1MiB, ranges as 0-1MiB."),
    ] = None,
) -> int:
    """Ask a served twin, or tell it: counters, power, faults; docs/serve.md has all requests.

    The answer is one JSON object.
    """
    from ssdlab.device import Control
    from ssdlab.records import encode_json

    given = dict(_argument(each) for each in more or [])
    with Control(socket) as control:
        answer = control.ask(do, **given)
    write_out(encode_json(answer))
    return 0


def _argument(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier() or key == "do":
        raise UsageError(f"{text!r} is no argument; it may be KEY=VALUE, such as after_writes=100")
    return key, _value(value)


def _value(text: str) -> Any:
    """JSON, a size, a range of sizes as [first, end], or else the text itself."""
    first, dash, end = text.partition("-")
    if dash and _is_size(first) and _is_size(end):
        return [parse_size(first), parse_size(end)]
    if _SIZE.fullmatch(text):
        return parse_size(text)
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _is_size(text: str) -> bool:
    return text.isdecimal() or _SIZE.fullmatch(text) is not None
