"""`ssdlab control`: sends a request to a served twin's control socket and prints the answer."""

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
    do: Annotated[str, typer.Argument(metavar="DO", help="The request, such as counters.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Its arguments; sizes as 1MiB, ranges as 0-1MiB."),
    ] = None,
) -> int:
    """Send a request to a served twin: counters, power, faults; docs/serve.md lists all.

    The answer is one JSON object.
    """
    values = dict(_parse_argument(argument) for argument in more or [])
    from ssdlab.device import Control
    from ssdlab.records import encode_json

    with Control(socket) as control:
        answer = control.request(do, **values)
    write_out(encode_json(answer))
    return 0


def _parse_argument(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier() or key == "do":
        raise UsageError(f"argument {text!r} must be KEY=VALUE, such as after_writes=100")
    return key, _parse_value(value)


def _parse_value(text: str) -> Any:
    """A range of sizes as [first, end], a size in bytes, a JSON value, or the text itself."""
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
